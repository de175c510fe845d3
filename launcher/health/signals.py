"""Series that several rules look at, updated once a step: reward, entropy, validation."""

import math
from collections import deque
from collections.abc import Mapping, Sequence

from launcher.health import keys
from launcher.health.series import Baseline, Ema, log_sigma, median, sigma

_TELLING = 7  # values from which a smoothed rise is judged
_HALF = 20  # scores, which are compared with as many before them
_FEW = 4  # scores at the beginning, that all later ones are above
_TWO_ERRORS = 2 / 3  # of the difference between the medians of 20 scores and of 50, in sigmas
_LASTING = 10  # scores whose mean tells a loss that lasts


class Reward:
    """The score, its noise, its range and its best so far.

    `span` is the usual distance between the best and the worst response of a step: the unit in which the
    reward rules measure. A new `best` (from the 5th value on) must beat the old one by 0.005 span, in the smoothed
    score and in the median of the last five. It `rises` where the smoothed score does so clearly: within the last 20
    steps, slowly over the last 40, or with a new best in the last 20 by far more since the beginning; and in the first
    20 steps where the last four scores are above the first four.
    """

    def __init__(self) -> None:
        self._ema = Ema()
        self._scores: deque[float] = deque(maxlen=2 * _HALF)
        self._emas: deque[float] = deque(maxlen=21)
        self._past = Baseline(_HALF)
        self.lowest = math.inf  # score of any response so far
        self.highest = -math.inf
        self.start = math.nan  # smoothed score of the 5th step
        self._ranges: deque[float] = deque(maxlen=20)
        self._tops: deque[float] = deque(maxlen=20)
        self.score: float | None = None  # at this step
        self.span = 0.0
        self.sigma = 0.0
        self.best: float | None = None
        self.best_step = 0
        self.steps_since_best = 0
        self.rises = False  # what changes now pays

    @property
    def count(self) -> int:
        """Scores seen so far."""
        return self._ema.count

    @property
    def ema(self) -> float:
        """EMA5 of the score; nan before the first."""
        return self._ema.value

    @property
    def lasting(self) -> float:
        """Mean of the last ten scores, which has a third of the noise of one; the smoothed score where that is higher.

        The mean lags behind a reward that rises.
        """
        last = list(self._scores)[-_LASTING:]
        return max(self.ema, sum(last) / len(last))

    @property
    def recent_best(self) -> float:
        """Highest smoothed score of this step and the 20 before it; nan with fewer."""
        return max(self._emas) if len(self._emas) == self._emas.maxlen else math.nan

    @property
    def med3(self) -> float:
        """Median of the last three scores."""
        return median(list(self._scores)[-3:])

    def update(self, step: int, score: float | None, high: float | None, low: float | None) -> None:
        """Takes in one step; without a score nothing moves."""
        self.score = score
        if score is None:
            return
        self._emas.append(self._ema.add(score))
        self._scores.append(score)
        self._past.add(score)
        self.lowest = min(self.lowest, score if low is None else low)
        self.highest = max(self.highest, score if high is None else high)
        if high is not None and low is not None:
            self._tops.append(high)
            if high > low:  # where all score the same, the range of scores is as before
                self._ranges.append(high - low)
        self.sigma = sigma(self._scores, 2 * _HALF)
        self.span = self._span()
        if self.count == 5:
            self.start = self.ema
        level = min(self.ema, median(list(self._scores)[-5:]))  # a single lucky step is not what was reached
        if self.count >= 5 and (self.best is None or level > self.best + 0.005 * self.span):
            self.best, self.best_step, self.steps_since_best = level, step, 0
        else:
            self.steps_since_best += 1
        self.rises = self._rises()

    def _rises(self) -> bool:
        if self.count < _TELLING:
            return False
        if self.ema - min(self._emas) >= self.distance(0.10, 2) or self._slow_rise() >= self.distance(0.05, 1):
            return True
        if self._first_rise() >= 0.10 * self.span:
            return True
        return self.steps_since_best <= 20 and self.ema - self.start >= self.distance(0.25, 4)

    def _slow_rise(self) -> float:
        """How far the mean of 20 scores, and the smoothed score of this step, are above the mean of the 20 before them.

        The difference of two such means has a third of the noise of one score, which hides a slow rise. Nan with
        fewer scores.
        """
        if len(self._scores) < 2 * _HALF:
            return math.nan
        scores = list(self._scores)
        return min(sum(scores[_HALF:]) / _HALF, self.ema) - sum(scores[:_HALF]) / _HALF

    def _first_rise(self) -> float:
        """How far the mean of the last four scores is above that of the first four, if each of them does.

        The noise of so few scores is unknown, and a sudden rise looks like noise. Eight scores of one level are in
        this order once in 70 times. Nan otherwise, with fewer than 8 scores, and with more than 20.
        """
        if not 2 * _FEW <= self.count <= _HALF:
            return math.nan
        scores = list(self._scores)
        first, last = scores[:_FEW], scores[-_FEW:]
        return (sum(last) - sum(first)) / _FEW if min(last) > max(first) else math.nan

    @property
    def gained(self) -> bool:
        """Whether `gain` exceeds two standard errors."""
        return self.gain > _TWO_ERRORS * self.sigma

    @property
    def gain(self) -> float:
        """Median of the last 20 scores less that of 50 to 100 steps ago, or of the first ones; nan before the third."""
        return self._past.median - self._past.before

    @property
    def gained_slowly(self) -> bool:
        """Whether the last 20 scores exceed those of 50 to 100 steps ago by two errors; False before there are any."""
        return self._past.median - self._past.ago > _TWO_ERRORS * self.sigma

    @property
    def young(self) -> bool:
        """Whether there is a reward, with too few values to tell whether it rises."""
        return 0 < self.count < 2 * _FEW

    @property
    def judged(self) -> bool:
        """Whether there are enough values to tell whether it rises or falls."""
        return self.count >= 2 * _FEW

    def near_top(self, value: float) -> bool:
        """Whether `value` is within 5 % of the top of the score range; False when the range is unknown."""
        return self.room(value) <= 0.05 * self.span

    def room(self, value: float) -> float:
        """How far `value` is below the highest score of the last 20 steps; infinite when the range is unknown."""
        return max(self._tops) - value if self._tops else math.inf

    def distance(self, spans: float, sigmas: float) -> float:
        """The larger of so many spans and so many sigmas."""
        return max(spans * self.span, sigmas * self.sigma)

    def _span(self) -> float:
        return median(self._ranges) if self._ranges else max(self._scores) - min(self._scores)


class Entropy:
    """The entropy of the policy, smoothed, and where it started."""

    def __init__(self) -> None:
        self._ema = Ema()
        self._recent: deque[float] = deque(maxlen=23)
        self._first: list[float] = []
        self.value: float | None = None  # at this step
        self.start: float | None = None  # median of the first 10 values
        self.noise = 0.0  # of its logarithm

    @property
    def count(self) -> int:
        """Values seen so far."""
        return self._ema.count

    @property
    def ema(self) -> float:
        """EMA5; nan before the first value."""
        return self._ema.value

    def update(self, value: float | None) -> None:
        """Takes in one step; without a value nothing moves."""
        self.value = value
        if value is None:
            return
        self._ema.add(value)
        self._recent.append(value)
        self.noise = log_sigma(self._recent)
        if self.start is None:
            self._first.append(value)
            if len(self._first) == 10:
                self.start = median(self._first)

    def then(self, steps: int) -> float | None:
        """Median of the three values that ended so many steps ago; None when the history is too short."""
        recent = list(self._recent)
        end = len(recent) - steps
        return median(recent[end - 3 : end]) if end >= 3 else None


class Validation:
    """Validation scores: each is the mean over the headline scores of one validation."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=13)
        self._low = math.inf
        self._high = -math.inf
        self.count = 0
        self.fresh = False  # whether this record held a validation
        self.best = math.nan  # highest mean of two validations in a row
        self.best_index = 0  # number of the validation that ends the best pair, from 0
        self.best_step = 0
        self.best_score_ema = math.nan  # EMA5 of the training score at that validation
        self.drops: deque[float] = deque(maxlen=2)

    @property
    def value(self) -> float:
        """The latest validation."""
        return self._values[-1]

    @property
    def sigma(self) -> float:
        """Noise of the last 13 validations."""
        return sigma(self._values)

    def span(self, reward: Reward) -> float:
        """The unit for differences: the range of the validations or of the training reward."""
        return max(self._high - self._low, reward.span)

    def pair(self) -> float:
        """Mean of the last two validations (of the only one, at first)."""
        last = list(self._values)[-2:]
        return sum(last) / len(last)

    def update(self, step: int, data: Mapping[str, float], reward: Reward) -> None:
        """Takes in one record, which may hold a validation or not."""
        found = _scores(data)
        self.fresh = bool(found)
        if not found:
            return
        value = sum(found) / len(found)
        self.count += 1
        self._values.append(value)
        self._low, self._high = min(self._low, value), max(self._high, value)
        pair = self.pair()
        if self.count <= 2 or pair > self.best:
            self.best, self.best_index, self.best_step = pair, self.count - 1, step
            self.best_score_ema = reward.ema
        self.drops.append(self.best - value)


def _scores(data: Mapping[str, float]) -> Sequence[float]:
    return [
        value
        for key, value in data.items()
        if key.startswith(keys.VALIDATION) and keys.is_validation_score(key) and math.isfinite(value)
    ]


class Signals:
    """All shared series of a run."""

    def __init__(self) -> None:
        self.reward = Reward()
        self.entropy = Entropy()
        self.validation = Validation()
        self.harm = ""  # what damages the run at this step, in words

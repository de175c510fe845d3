"""Models of a run's metrics, updated once per step: reward, validation and every metric that a rule reads."""

import math
from collections import deque
from collections.abc import Mapping
from operator import itemgetter

from launcher.health import derived, keys
from launcher.health.config import RunConfig
from launcher.health.frame import Frame
from launcher.health.metric import KEPT, USUAL, Metric, Noise, median
from launcher.verl.config import BATCH, CRITIC_ALONE

_TELLING = 7  # values from which a smoothed rise is judged
_JUDGED = 8  # scores from which it is known whether the reward rises or falls
_NO_KL = 0.001  # nats; estimates of a KL near 0 may be negative
_ALIKE = 0.15  # relative change of prompt length beyond which prompts may be easier
_FEW = 4  # scores at the beginning, that all later ones are above
_TWO_ERRORS = 2 / 3  # share of the difference between the medians of 20 and of 50 scores, in sigmas


class Reward(Metric):
    """The score, its range and its best value.

    `span`: usual distance between the best and worst response of a step, the unit of the reward rules. A new `best`
    (from the 5th value on) must exceed the old one by 0.005 span, in the smoothed score and in the median of the last
    five. `rises`: the smoothed score rises clearly within 20 steps, slowly over 40, or with a new best within 20 steps
    and a far larger rise since the start; in the first 20 steps, if the last four scores exceed the first four.
    """

    noisy = KEPT

    def __init__(self) -> None:
        super().__init__()
        self._smooths: deque[float] = deque(maxlen=21)
        self._fifth = math.nan  # smoothed score of the 5th step
        self._ranges: deque[float] = deque(maxlen=20)
        self._tops: deque[float] = deque(maxlen=20)
        self.lowest_ever = math.inf  # score of any response so far
        self.highest_ever = -math.inf
        self.span = 0.0
        self.best: float | None = None
        self.best_step = 0
        self.since_best = 0  # steps
        self.peak = math.nan  # the last best that beat the one before it by a step's noise
        self.peak_step = 0
        self.since_peak = 0  # steps
        self.rises = False  # whether the reward rises, so that a change pays
        self.unrewarded = 0  # steps in a row with next to no reward
        self.flat = True  # whether the reward never clearly rose above its first value
        self.lost = False  # whether REW-1 finds too large a loss

    def update(self, step: int, score: float | None, high: float | None, low: float | None) -> None:
        """Takes in one step; a missing score changes nothing."""
        self.lost = False
        self.see(score)
        if score is None:
            return
        self._smooths.append(self.smooth)
        self.lowest_ever = min(self.lowest_ever, score if low is None else low)
        self.highest_ever = max(self.highest_ever, score if high is None else high)
        if high is not None and low is not None:
            self._tops.append(high)
            if high > low:  # with equal scores, the score range stays
                self._ranges.append(high - low)
        self.span = median(self._ranges) if self._ranges else self.highest(KEPT) - self.lowest(KEPT)
        if self.count == 5:
            self._fifth = self.smooth
        level = min(self.smooth, self.median(5))  # a single lucky step does not count as reached
        if self.count >= 5 and (self.best is None or level > self.best + 0.005 * self.span):
            self.best, self.best_step, self.since_best = level, step, 0
        else:
            self.since_best += 1
        if not self.since_best and not level <= self.peak + self.noise:
            self.peak, self.peak_step, self.since_peak = level, step, 0
        else:
            self.since_peak += 1
        self.rises = self._rises()
        nothing = self.smooth - self.lowest_ever < 0.05 * self.span
        self.unrewarded = self.unrewarded + 1 if nothing else 0
        if self.flat and self.count >= _TELLING:
            self.flat = self.smooth - self.origin <= self.distance(0.10, 2)

    @property
    def lasting(self) -> float:
        """Mean of the last ten scores, with a third of the noise; the smoothed score if higher, as the mean lags."""
        return max(self.smooth, self.mean(10))

    @property
    def widest(self) -> float:
        """The widest score range of the last 20 steps; if unknown, the usual one."""
        return max(self._ranges, default=self.span)

    @property
    def recent_best(self) -> float:
        """Highest smoothed score of this step and the 20 before; nan with fewer."""
        return max(self._smooths) if len(self._smooths) == self._smooths.maxlen else math.nan

    def _rises(self) -> bool:
        if self.count < _TELLING:
            return False
        if self.smooth - min(self._smooths) >= self.distance(0.10, 2) or self._slow_rise() >= self.distance(0.05, 1):
            return True
        if self._first_rise() >= 0.10 * self.span:
            return True
        return self.since_best <= 20 and self.smooth - self._fifth >= self.distance(0.25, 4)

    def _slow_rise(self) -> float:
        """The smaller rise of two: the mean of 20 scores, and the smoothed score, over the mean of the 20 scores
        before.

        The difference of two such means has a third of the noise of one score, which would hide a slow rise. Nan with
        fewer scores.
        """
        if self.count < KEPT:
            return math.nan
        before = self.last(USUAL, USUAL)
        return min(self.mean(USUAL), self.smooth) - sum(before) / USUAL

    def _first_rise(self) -> float:
        """The rise from the mean of the first four scores to that of the last four, if all four exceed the first ones.

        The noise of so few scores is unknown, and a sudden rise looks like noise. Random scores have this order once in
        70 cases. Nan otherwise, with fewer than 8 and with more than 20 scores.
        """
        if not 2 * _FEW <= self.count <= USUAL:
            return math.nan
        scores = self.last(USUAL)
        first, last = scores[:_FEW], scores[-_FEW:]
        return (sum(last) - sum(first)) / _FEW if min(last) > max(first) else math.nan

    @property
    def gained(self) -> bool:
        """Whether `gain` exceeds two standard errors."""
        return self.gain > _TWO_ERRORS * self.noise

    @property
    def gained_slowly(self) -> bool:
        """Whether the last 20 scores exceed those of 50 to 100 steps ago by two standard errors; else False."""
        return self.median(USUAL) - self.ago > _TWO_ERRORS * self.noise

    @property
    def young(self) -> bool:
        """Whether a reward exists, with too few values to judge its direction."""
        return 0 < self.count < _JUDGED

    @property
    def judged(self) -> bool:
        """Whether the reward has enough values to judge its direction."""
        return self.count >= _JUDGED

    def error(self, answers: float) -> float:
        """The maximum standard error of a mean score over `answers` answers."""
        return 0.5 * self.widest / math.sqrt(max(answers, 1))

    @property
    def waited(self) -> float:
        """Steps since the best score; nan within 5 % of the maximum, where no better score is possible."""
        return math.nan if self.near_top(self.smooth) else self.since_peak

    def near_top(self, value: float) -> bool:
        """Whether `value` is within 5 % of the top of the score range; False if the range is unknown."""
        return self.room(value) <= 0.05 * self.span

    def room(self, value: float) -> float:
        """The distance from `value` to the highest score of the last 20 steps; infinite if the range is unknown."""
        return max(self._tops) - value if self._tops else math.inf

    def distance(self, spans: float, sigmas: float) -> float:
        """The larger of `spans` times the score range and `sigmas` times the noise."""
        return max(spans * self.span, sigmas * self.noise)


class Validation:
    """Validation scores: the mean over the headline scores per validation."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=2)
        self._noise = Noise(13)
        self._low = math.inf
        self._high = -math.inf
        self.count = 0
        self.fresh = False  # whether this record has a validation
        self.best = math.nan  # highest mean of two validations in a row
        self.best_index = 0
        self.best_step = 0
        self.best_score = math.nan  # smoothed training score at that validation
        self.drops: deque[float] = deque(maxlen=2)
        self.past: deque[tuple[float, Mapping[str, float], float]] = deque(
            maxlen=10
        )  # training score, validation, prompts

    @property
    def value(self) -> float:
        """The latest validation score."""
        return self._values[-1]

    @property
    def noise(self) -> float:
        """Noise of the last 13 validation scores."""
        return self._noise.size

    def span(self, reward: Reward) -> float:
        """The unit of differences: the range of validation scores or of the training reward."""
        return max(self._high - self._low, reward.span)

    def pair(self) -> float:
        """Mean of the last two validation scores (of one, at first)."""
        return sum(self._values) / len(self._values)

    def update(self, step: int, found: Mapping[str, float], reward: Reward, prompt: float) -> None:
        """Takes in the scores of a record with or without a validation."""
        self.fresh = bool(found)
        if not found:
            return
        value = sum(found.values()) / len(found)
        self.count += 1
        self._values.append(value)
        self._noise.add(value)
        self._low, self._high = min(self._low, value), max(self._high, value)
        pair = self.pair()
        if self.count <= 2 or pair > self.best:
            self.best, self.best_index, self.best_step = pair, self.count - 1, step
            self.best_score = reward.smooth
        self.drops.append(self.best - value)
        self.past.append((reward.smooth, found, prompt))

    def gains(self, reward: Reward) -> tuple[float, float, bool]:
        """The gains of training and validation since the lowest training score of the last ten validations.

        Of the last two validations, the smaller gain of training and the larger gain of validation, for the data source
        with the largest gain: the training source is unknown. Also returns whether the prompt length is about equal.
        The validation before the first step belongs to the first scores. Nan with fewer than 3.
        """
        if len(self.past) < 3:
            return math.nan, math.nan, False
        points = [(reward.first if math.isnan(score) else score, found, long) for score, found, long in self.past]
        *earlier, before, last = points
        score, then, length = min(earlier, key=itemgetter(0))
        gains = (now[1][key] - value for now in (before, last) for key, value in then.items() if key in now[1])
        alike = math.isnan(length) or abs(last[2] - length) <= _ALIKE * length
        return min(before[0], last[0]) - score, max(gains, default=math.nan), alike


class Signals:
    """The models of a run's metrics, and the current harm."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._models: dict[str, tuple[derived.Source, Metric]] = {}
        self._fed: list[tuple[derived.Source, Metric]] | None = None  # models that a step's metrics may feed
        self._scores: list[str] = []  # validation scores among these metrics
        self.reward = Reward()
        self.validation = Validation()
        self._prompt = math.nan  # mean length at the last step
        self.harm = ""  # the run's damage at this step, in words
        self.first_step: tuple[float, float | None] | None = (
            None  # when it began, and the seconds that it usually takes
        )
        self.written_here: bool | None = None  # whether a local process writes the followed log; None: not followed

    def of(self, name: str) -> Metric:
        """The model of a metric of `keys` or `derived`; all rules share it."""
        if name == "SCORE":
            return self.reward
        if name not in self._models:
            self._models[name], self._fed = (self._source(name), self._model(name)), None
        return self._models[name][1]

    def _model(self, name: str) -> Metric:
        if name == "TRUNCATED":
            return Metric(sample=self._config.number(BATCH))
        return Metric(_NO_KL) if name == "KL" else Metric()

    def update(self, frame: Frame, training: bool, others: bool) -> None:
        """Updates the signals from a record; a validation, its own only. `others`: whether metrics differ."""
        if others:
            self._fed, self._scores = None, list(filter(keys.is_validation_score, frame.data))
        if training:
            if self._fed is None:
                self._fed = [each for name, each in self._models.items() if self._is_fed(name, each[1], frame)]
            self.reward.update(frame.step, *map(frame.get, (keys.SCORE, keys.SCORE_MAX, keys.SCORE_MIN)))
            for source, metric in self._fed:
                metric.see(source(frame))
            self._prompt = frame.get(keys.PROMPT) or math.nan
        scores = {key: x for key in self._scores if math.isfinite(x := frame.data[key])}
        self.validation.update(frame.step, scores, self.reward, self._prompt)

    @staticmethod
    def _is_fed(name: str, metric: Metric, frame: Frame) -> bool:
        """Whether a record with these metrics can change a model's value."""
        missing = name not in derived.METRICS and frame.data.keys().isdisjoint(derived.keys_of(name))
        return not missing or not math.isnan(metric.now)

    def _source(self, name: str) -> derived.Source:
        if name in derived.METRICS:
            return derived.METRICS[name].of(self._config)
        names = derived.keys_of(name)
        if name == "KL" and (alone := self._config.number(CRITIC_ALONE) or 0):  # the policy does not move yet
            return lambda frame: frame.get(names) if frame.step > alone else None
        return lambda frame: frame.get(names)

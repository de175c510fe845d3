"""REW-1, REW-4 and SIG-1: the reward and its signal."""

import math
from collections import deque
from collections.abc import Sequence

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Measure, Rung, Values, ladder, rungs
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, distinct, lasting
from launcher.health.state import Reading
from launcher.record.levels import CRITICAL, FLAGS, NOTICE, WARN

_HAD = 10  # steps with signal after which its absence is a loss
_SMOOTH, _MEAN, _BEST, _MIDDLE = (
    Measure(words, keys.SCORE) for words in ("smoothed", "mean of 10 steps", "best of 20 steps", "median of 3 steps")
)
_IN_A_ROW = Measure("consecutive steps without a signal", span=POSITIVE)
_AMONG = Measure("steps without a signal, of the last 10", span=(0, 10))


class RewardDrop(Rule):
    """Compares the smoothed score with its best (REW-1).

    The allowed drop is a share of the score range or, if smaller, of the rise from the lowest to the best score: so
    halving a small reward is also flagged. It is at least a multiple of the noise.
    """

    id = "REW-1"
    worse = -1
    needs = (keys.SCORE,)

    def rate(self, frame: Frame, score: float) -> Reading:
        reward = self.reward
        if reward.count < 10:
            return self.warming(10 - reward.count)
        smooth, best, step = reward.smooth, reward.best, reward.best_step

        def message(reading: Reading) -> str:
            below = best is not None and smooth < best and number(smooth) != number(best)
            known = f", best {number(best)} at {self.config.numbering.place(step)}; the lasting best" if below else ""
            return f"smoothed reward {number(smooth)}{known}"

        reading = self.compare(message, self._drop)
        reward.lost = reading.raw >= WARN
        return reading

    def _drop(self, limits: Values) -> Sequence[Clause]:
        reward = self.reward
        if reward.best is None:
            return ()
        best, gained, span, noise = reward.best, reward.best - reward.lowest_ever, reward.span, reward.noise

        def below(sigmas: str) -> list[Rung]:
            return rungs(
                limits, "<", lambda at: best - max(min(at["span"] * span, at["share"] * gained), at[sigmas] * noise)
            )

        slowly = below("lasting")
        unrecovered = (CRITICAL, *slowly[0][1:])  # WARN limits, for all of the last steps
        return [
            (reward.smooth, below("sigmas"), _SMOOTH),
            (reward.lasting, slowly, _MEAN),
            (reward.recent_best, [unrecovered], _BEST),
        ]


class RewardLeap(Rule):
    """Flags scores far above the usual score, or above every single response (REW-4)."""

    id = "REW-4"
    needs = (keys.SCORE,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # the highest and the lowest score of a response until three steps ago, while the rule was content
        self._highest, self._lowest = -math.inf, math.inf
        self._ends: deque[tuple[float, float]] = deque(maxlen=4)

    def rate(self, frame: Frame, score: float) -> Reading:
        reward = self.reward
        found = [x for names in (keys.SCORE, keys.SCORE_MAX, keys.SCORE_MIN) if (x := frame.get(names)) is not None]
        self._ends.append((max(found), min(found)))
        if reward.lost:
            reward.refuse()
        usual, now = reward.usual, reward.then(0)
        if reward.count < 10:
            self._widen()
            return self.warming(10 - reward.count)
        reading = self.compare(
            lambda reading: f"reward {' vs usual '.join(distinct(now, usual))}; median of 3",
            lambda limits: [self._leap(limits, now, usual)],
            reward,
        )
        if reading.raw < WARN:
            self._widen()
        return reading

    def _widen(self) -> None:
        high, low = self._ends[0]
        self._highest, self._lowest = max(self._highest, high), min(self._lowest, low)

    def _leap(self, limits: Values, now: float, usual: float) -> Clause:
        leap = self.reward.distance(limits["notice.span"], limits["notice.sigmas"])
        above = [(NOTICE, ">", usual + leap)]
        if (span := self._highest - self._lowest) > 0:
            above.append((WARN, ">", self._lowest + limits["warn.scale"] * span))
        return now, above, _MIDDLE


class Signal(Rule):
    """Counts steps with equal rewards or equal advantages (SIG-1)."""

    id = "SIG-1"
    needs = ((*keys.SCORE_MAX, *keys.ADVANTAGE_MAX), (*keys.SCORE_MIN, *keys.ADVANTAGE_MIN))

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._run = 0  # flat steps up to now
        self._had = 0  # steps with signal so far
        self._flat = 0  # steps without, before the current ones in a row
        self._last: deque[bool] = deque(maxlen=10)
        self._solved = False

    def judge(self, frame: Frame) -> Reading | None:
        same_score, flat = frame.same_scores, frame.no_signal
        if flat is None:
            return None
        self._last.append(flat)
        if not flat:
            self._flat += self._run
        self._run = self._run + 1 if flat else 0
        self._had += not flat
        best = self.reward.lowest_ever < self.reward.now >= self.reward.highest_ever
        self._solved = bool(same_score) and best  # every response is as good as any ever was
        case = "solved" if self._solved else "had" if self._had >= _HAD else "never"
        among = math.nan if flat else sum(self._last)
        run, last = self._run, len(self._last)

        def message(reading: Reading) -> str:
            of = self.config.numbering
            if not flat:
                some = f"{number(of.span(among))} of the last {of.count(last)} had no learning signal"
                return some if reading.level else "rewards differ"
            if same_score:
                return f"all rewards are {number(frame.get(keys.SCORE_MAX))} for {of.count(run)}"
            return f"all advantages are 0 for {of.count(run)}; equal rewards within each group"

        reading = self.compare(message, lambda limits: self._missing(limits, case, among))
        return lasting(reading) if flat else reading

    def harms(self) -> bool:
        return not self._solved  # there is nothing left to learn

    def _missing(self, limits: Values, case: str, among: float) -> Sequence[Clause]:
        """Consecutive steps without signal; at a step with signal, the run of such steps before it."""
        missing = ladder(limits, case)
        if case == "had":  # if flat steps are common, a few in a row are chance
            share = math.log((self._flat + 0.5) / (self._flat + self._had + 1))
            missing = rungs(limits, ">=", lambda at: max(at["had"], math.log(at["chance"]) / share), FLAGS)
        return [(self._run, missing, _IN_A_ROW), (among, ladder(limits, "mostly"), _AMONG)]

"""REW-1, REW-2, REW-4 and SIG-1: the reward itself, and whether it says anything."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Rung, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, lasting, moved, warming
from launcher.health.series import Baseline
from launcher.health.signals import Reward
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, SERIOUS, Level

_RANGES = ((keys.SCORE_MAX, keys.SCORE_MIN), (keys.ADVANTAGE_MAX, keys.ADVANTAGE_MIN))
_HAD = 10  # steps with signal after which its absence is a loss


class RewardDrop(Rule):
    """The smoothed score against its best so far; where the loss lasts, less of it is beyond the noise.

    The loss is measured by the range of the scores, and by how far the best lies above the lowest score ever: half of
    a small reward is much.
    """

    id = "REW-1"
    needs = (keys.SCORE,)

    def judge(self, frame: Frame) -> Reading | None:
        reward = frame.signals.reward
        if reward.score is None:
            return None
        if reward.count < 10:
            return warming(10 - reward.count)
        best = f"best so far {number(reward.best)} at step {reward.best_step}"
        return self.compare(f"reward {number(reward.ema)}, {best}", lambda limits: self._drop(limits, reward))

    @staticmethod
    def _drop(limits: Mapping[str, float], reward: Reward) -> Sequence[Clause]:
        if reward.best is None:
            return ()
        best, gained = reward.best, reward.best - reward.lowest
        drops = [
            (level, name, min(limits[f"{name}.span"] * reward.span, limits[f"{name}.share"] * gained))
            for level, name in SERIOUS
        ]

        def below(sigmas: str) -> list[Rung]:
            return [
                Rung(level, "<", best - max(drop, limits[f"{name}.{sigmas}"] * reward.sigma))
                for level, name, drop in drops
            ]

        slowly = below("lasting")
        unrecovered = slowly[0]._replace(level=Level.CRITICAL)  # what is a WARN, for all of the last steps
        return [
            Clause(reward.ema, below("sigmas"), "smoothed", keys.SCORE),
            Clause(reward.lasting, slowly, "mean of 10 steps", keys.SCORE),
            Clause(reward.recent_best, [unrecovered], "best of 20 steps", keys.SCORE),
        ]


class RewardPlateau(Rule):
    """A long time without a new best, unless there is nothing better to reach."""

    id = "REW-2"
    needs = (keys.SCORE,)

    def judge(self, frame: Frame) -> Reading | None:
        reward = frame.signals.reward
        if reward.score is None:
            return None
        if reward.count < 120:
            return warming(120 - reward.count)
        waited = reward.steps_since_best
        best = f"(best {number(reward.best)} at step {reward.best_step})"
        counted = math.nan if reward.near_top(reward.ema) else waited
        reading = self.compare(
            f"last new best {waited} steps ago {best}",
            lambda limits: [Clause(counted, ladder(limits, "steps"), "steps without a new best", span=POSITIVE)],
        )
        return replace(reading, message=f"no new best reward for {waited} steps {best}") if reading.raw else reading


class RewardLeap(Rule):
    """A score far above its usual: sudden success is often a loophole in the parser or the format.

    One far beyond anything that any response had is another scale, and not success.
    """

    id = "REW-4"
    needs = (keys.SCORE,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)
        self._scale = 0.0  # largest score of a response until three steps ago, while the rule was content
        self._sizes: deque[float] = deque(maxlen=4)

    def judge(self, frame: Frame) -> Reading | None:
        reward = frame.signals.reward
        if reward.score is None:
            return None
        found = (keys.SCORE, keys.SCORE_MAX, keys.SCORE_MIN)
        self._sizes.append(max(abs(frame.get(names) or 0.0) for names in found))
        refused = frame.raw.get("REW-1", Level.OK) >= Level.WARN
        if reward.count < 10:
            self._usual.add(reward.score, refused)
            self._scale = max(self._scale, self._sizes[0])
            return warming(10 - reward.count)
        usual, now = self._usual.median, reward.med3
        verb = "rose" if now > usual else "went"
        reading = self.compare(
            f"reward {moved(verb, usual, now)}", lambda limits: [self._leap(limits, reward, now, usual)]
        )
        if reading.raw < Level.WARN:
            self._scale = max(self._scale, self._sizes[0])
        self._usual.add(reward.score, refused or reading.raw >= Level.WARN)
        return reading

    def _leap(self, limits: Mapping[str, float], reward: Reward, now: float, usual: float) -> Clause:
        leap = reward.distance(limits["notice.span"], limits["notice.sigmas"])
        rungs = [Rung(Level.NOTICE, ">", usual + leap)]
        if self._scale > 0:
            rungs.append(Rung(Level.WARN, ">", limits["warn.scale"] * self._scale))
        return Clause(now, rungs, "median of 3 steps", keys.SCORE)


class Signal(Rule):
    """Steps on which all responses got the same reward, or all advantages are equal: they teach nothing."""

    id = "SIG-1"
    needs = ((*keys.SCORE_MAX, *keys.ADVANTAGE_MAX), (*keys.SCORE_MIN, *keys.ADVANTAGE_MIN))

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._run = 0  # flat steps up to now
        self._had = 0  # steps with signal so far
        self._flat = 0  # steps without, before the present ones in a row
        self._last: deque[bool] = deque(maxlen=10)

    def judge(self, frame: Frame) -> Reading | None:
        if not any(_given(frame, *ends) for ends in _RANGES):
            return None
        same_score, flat = frame.same_scores(), frame.no_signal()
        self._last.append(flat)
        if not flat:
            self._flat += self._run
        self._run = self._run + 1 if flat else 0
        self._had += not flat
        steps = f"{self._run} step{'s' if self._run != 1 else ''}"
        message = f"all advantages are 0 (equal rewards within each group) for {steps}"
        if same_score:
            shown = number(frame.get(keys.SCORE_MAX))
            message = f"all samples have the same reward ({shown}) for {steps}"
        solved = same_score and _solved(frame.signals.reward)
        case = "solved" if solved else "had" if self._had >= _HAD else "never"
        among = math.nan if flat else sum(self._last)
        reading = self.compare(message, lambda limits: self._missing(limits, case, among))
        if flat:
            return lasting(reading)
        scattered = f"{among} of the last {len(self._last)} steps had no learning signal"
        return replace(reading, message=scattered if reading.raw else "rewards differ")

    def _missing(self, limits: Mapping[str, float], case: str, among: float) -> Sequence[Clause]:
        """Steps without signal in a row, and at a step with signal those before it."""
        rungs = ladder(limits, case)
        if case == "had":  # where flat steps are common, a few in a row are chance
            share = math.log((self._flat + 0.5) / (self._flat + self._had + 1))
            rungs = [
                Rung(level, ">=", max(limits[f"{name}.had"], math.log(limits[f"{name}.chance"]) / share))
                for level, name in FLAGS
            ]
        return [
            Clause(self._run, rungs, "consecutive steps without a signal", span=POSITIVE),
            Clause(among, ladder(limits, "mostly"), "steps without a signal, of the last 10", span=(0, 10)),
        ]


def _solved(reward: Reward) -> bool:
    """Whether equal rewards mean that every response is as good as any ever was."""
    score, best = reward.score, reward.best
    return score is not None and score > 0 and (best is None or score >= best)


def _given(frame: Frame, high: Sequence[str], low: Sequence[str]) -> bool:
    return frame.get(high) is not None and frame.get(low) is not None

"""REW-1, REW-2, REW-4 and SIG-1: the reward itself, and whether it says anything."""

from collections import deque
from collections.abc import Mapping, Sequence

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, ladder, lasting, moved, warming
from launcher.health.series import Baseline
from launcher.health.signals import Reward
from launcher.health.state import Reading
from launcher.record.levels import SERIOUS, Bound, Level, worst

_SAME = 1e-9  # a range this small is no range
_HAD = 10  # steps with signal after which its absence is a loss


class RewardDrop(Rule):
    """The smoothed score against its best so far."""

    id = "REW-1"
    question = "Is the reward falling?"
    family = "reward"
    needs = (keys.SCORE,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._reward: Reward | None = None

    def judge(self, frame: Frame) -> Reading | None:
        reward = self._reward = frame.signals.reward
        if reward.score is None:
            return None
        if reward.count < 10:
            return warming(10 - reward.count)
        best = f"best so far {number(reward.best)} at step {reward.best_step}"
        return self.compare(reward.ema, f"reward {number(reward.ema)}, {best}")

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        reward = self._reward
        if reward is None or reward.best is None:
            return ()
        return [
            Bound(level, "<", reward.best - reward.distance(limits[f"{name}.span"], limits[f"{name}.sigmas"]))
            for level, name in SERIOUS
        ]


class RewardPlateau(Rule):
    """A long time without a new best, unless there is nothing better to reach."""

    id = "REW-2"
    question = "Is the reward still improving?"
    family = "reward"
    needs = (keys.SCORE,)

    def judge(self, frame: Frame) -> Reading | None:
        reward = frame.signals.reward
        if reward.score is None:
            return None
        if reward.count < 120:
            return warming(120 - reward.count)
        waited = reward.steps_since_best
        best = f"(best {number(reward.best)} at step {reward.best_step})"
        if waited >= self.limits.raising["notice.steps"] and not reward.near_top(reward.ema):
            return Reading(Level.NOTICE, f"no new best reward for {waited} steps {best}")
        return Reading(Level.OK, f"last new best {waited} steps ago {best}")


class RewardLeap(Rule):
    """A score far above its usual: sudden success is often a loophole in the parser or the format."""

    id = "REW-4"
    question = "Did the reward jump?"
    family = "reward"
    needs = (keys.SCORE,)
    on_chart = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._usual = Baseline(20)
        self._reward: Reward | None = None

    def judge(self, frame: Frame) -> Reading | None:
        reward = self._reward = frame.signals.reward
        if reward.score is None:
            return None
        refused = frame.raw.get("REW-1", Level.OK) >= Level.WARN
        if reward.count < 10:
            self._usual.add(reward.score, refused)
            return warming(10 - reward.count)
        usual, now = self._usual.median, reward.med3
        verb = "rose" if now > usual else "went"
        reading = self.compare(now, f"reward {moved(verb, usual, now)}")
        self._usual.add(reward.score, refused)
        return reading

    def bounds(self, limits: Mapping[str, float]) -> Sequence[Bound]:
        if self._reward is None:
            return ()
        leap = self._reward.distance(limits["notice.span"], limits["notice.sigmas"])
        return [Bound(Level.NOTICE, ">", self._usual.median + leap)]


class Signal(Rule):
    """Steps on which all responses got the same reward, or all advantages are equal: they teach nothing."""

    id = "SIG-1"
    question = "Is there anything to learn from?"
    family = "reward"
    needs = ((*keys.SCORE_MAX, *keys.ADVANTAGE_MAX), (*keys.SCORE_MIN, *keys.ADVANTAGE_MIN))

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._run = 0  # flat steps up to now
        self._had = 0  # steps with signal so far
        self._last: deque[bool] = deque(maxlen=10)

    def judge(self, frame: Frame) -> Reading | None:
        score = _range(frame, keys.SCORE_MAX, keys.SCORE_MIN)
        advantage = _range(frame, keys.ADVANTAGE_MAX, keys.ADVANTAGE_MIN)
        if score is None and advantage is None:
            return None
        same_score = score is not None and score <= _SAME
        flat = same_score or (advantage is not None and advantage <= _SAME)
        self._last.append(flat)
        if not flat:
            self._run, self._had = 0, self._had + 1
            return self._scattered()
        self._run += 1
        steps = f"{self._run} step{'s' if self._run != 1 else ''}"
        message = f"all advantages are 0 (each group has equal rewards) for {steps}"
        if same_score:
            shown = number(frame.get(keys.SCORE_MAX))
            message = f"every sample got the same reward ({shown}) for {steps}"
        solved = same_score and _solved(frame.signals.reward)
        case = "solved" if solved else "had" if self._had >= _HAD else "never"
        level = worst(self._run, ladder(self.limits.raising, case))
        return lasting(level, message)

    def _scattered(self) -> Reading:
        """A step with signal, among many without."""
        flat = sum(self._last)
        if flat >= self.limits.raising["warn.mostly"]:
            return Reading(Level.WARN, f"{flat} of the last {len(self._last)} steps had nothing to learn from")
        return Reading(Level.OK, "rewards differ")


def _solved(reward: Reward) -> bool:
    """Whether equal rewards mean that every response is as good as any ever was."""
    score, best = reward.score, reward.best
    return score is not None and score > 0 and (best is None or score >= best)


def _range(frame: Frame, high: Sequence[str], low: Sequence[str]) -> float | None:
    top, bottom = frame.get(high), frame.get(low)
    return None if top is None or bottom is None else top - bottom

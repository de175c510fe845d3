"""EVICT-1, WAIT-1 and TURN-1: what becomes of the rollout, and who waits for whom.

Their limits are not calibrated on failing runs: nothing here is more than a NOTICE.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, SHARE, Clause, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, not_judged, warming
from launcher.health.series import median
from launcher.health.state import Reading
from launcher.verl.config import BATCH, ROLLOUT

_REASONS = (  # name of the limit, what the groups were, the keys that count them
    ("unvaried", "had equal rewards", keys.FILTERED),
    ("stale", "were too old", keys.EVICTED),
    ("failed", "failed", keys.FAILED),
    ("surplus", "did not fit in the batch", keys.SURPLUS),
)
_RECENT = 5  # steps that a share is the median of
_MODE = "trainer.v1.trainer_mode"
_TOOLS = tuple(f"{ROLLOUT}.multi_turn.{name}" for name in ("tool_config_path", "function_tool_path"))


class DiscardedGroups(Rule):
    """Groups of responses that were generated and not trained on, as a share of all that were, by reason.

    veRL logs a count only at steps where it is above 0: from the first one on, a step without it has none.
    """

    id = "EVICT-1"
    needs = (keys.FILTERED + keys.EVICTED + keys.FAILED + keys.SURPLUS,)
    also = tuple(found for _, _, found in _REASONS)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._batch = setup.config.number(BATCH) or 0.0
        self._last: dict[str, deque[float]] = {}

    def not_applicable(self) -> str | None:
        return None if self._batch > 0 else f"{BATCH} is unknown"

    def judge(self, frame: Frame) -> Reading | None:
        counts = {name: max(frame.get(found) or 0.0, 0.0) for name, _, found in _REASONS}
        if not (self._last or any(counts.values())):
            return None
        everything = self._batch + sum(counts.values())
        for name, count in counts.items():
            self._last.setdefault(name, deque(maxlen=_RECENT)).append(count / everything)
        shares = {name: median(last) for name, last in self._last.items()}
        reading = self.compare("", lambda limits: self._clauses(limits, shares))
        said = [f"{number(100 * shares[name])} % {what}" for name, what, _ in _REASONS if shares[name] > 0]
        message = f"of the generated groups {', '.join(said)}" if said else "all generated groups are trained on"
        return replace(reading, message=message)

    @staticmethod
    def _clauses(limits: Mapping[str, float], shares: Mapping[str, float]) -> Sequence[Clause]:
        return [
            Clause(shares[name], ladder(limits, name, ">"), f"share that {what}, median of {_RECENT}", span=SHARE)
            for name, what, _ in _REASONS
        ]


class Waiting(Rule):
    """Trainer and rollout on GPUs of their own: the share of the time in which one waits for the other.

    While the trainer's GPUs are lent to the rollout (`timing_s/switch_wait`) they do not wait.
    """

    id = "WAIT-1"
    needs = (keys.GENERATION, keys.STEP_TIME)
    also = (keys.ROLLOUT_IDLE,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._trainer: deque[float] = deque(maxlen=_RECENT)
        self._rollout: deque[float] = deque(maxlen=_RECENT)
        self._separate = setup.config.text(_MODE) == "separate_async"

    def not_applicable(self) -> str | None:
        if self.config.text(_MODE) in (None, "separate_async"):
            return None
        return "trainer and rollout share their GPUs"

    def judge(self, frame: Frame) -> Reading | None:
        self._separate = self._separate or any(key.startswith(keys.SEPARATE) for key in frame.data)
        if not self._separate:
            return not_judged("trainer and rollout share their GPUs")
        waited, whole = frame.get(keys.GENERATION), frame.get(keys.STEP_TIME)
        if waited is None or whole is None or whole <= 0:
            return None
        self._trainer.append(min(waited / whole, 1.0))
        if (idle := frame.get(keys.ROLLOUT_IDLE)) is not None:
            self._rollout.append(idle)
        if len(self._trainer) < _RECENT:
            return warming(_RECENT - len(self._trainer))
        trainer = median(self._trainer)
        rollout = median(self._rollout) if self._rollout else math.nan
        message = f"the trainer waits for responses {number(100 * trainer)} % of the time"
        if self._rollout:
            message += f", the rollout for the trainer {number(100 * rollout)} %"
        return self.compare(message, lambda limits: self._clauses(limits, trainer, rollout))

    @staticmethod
    def _clauses(limits: Mapping[str, float], trainer: float, rollout: float) -> Sequence[Clause]:
        return [
            Clause(value, ladder(limits, name, ">"), f"share of waiting of the {name}", span=SHARE)
            for name, value in (("trainer", trainer), ("rollout", rollout))
        ]


class UnusedTools(Rule):
    """Chats that stay at one prompt and one response while tools are on: the model never calls one."""

    id = "TURN-1"
    needs = (keys.TURNS,)
    also = (keys.TOOL_CALLS,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._without = 0  # steps in a row

    def not_applicable(self) -> str | None:
        if not any(self.config.text(key) for key in _TOOLS):
            return "no tools in this run (actor_rollout_ref.rollout.multi_turn.tool_config_path)"
        return None

    def rate(self, frame: Frame, longest: float) -> Reading:
        self._without = self._without + 1 if longest <= 2 else 0
        steps = f"{self._without} step{'s' if self._without != 1 else ''}"
        turns = f"chats of up to {number(longest)} turns"
        message = f"no response calls a tool for {steps}" if self._without else turns
        return self.compare(
            message,
            lambda limits: [Clause(self._without, ladder(limits, "steps"), "steps without a tool call", span=POSITIVE)],
        )

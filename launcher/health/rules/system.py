"""THR-1, MEM-1 and MEM-2: speed and memory."""

import math
from collections import deque
from typing import ClassVar

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Memory, Rule, Setup, ladder, warming
from launcher.health.series import Baseline
from launcher.health.state import Reading
from launcher.record.levels import Level, worst

_THIRD = 10  # steps; memory creeps when it rises in each of three such parts
_FULL_FOR = 30.0  # seconds


class StepTime(Rule):
    """The time of a step, without validation and saving, for its tokens."""

    id = "THR-1"
    question = "Has training slowed down?"
    family = "speed"
    needs = (keys.STEP_TIME,)
    limit = ("ratio", ">")
    also = (keys.TOKENS,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._times = Baseline(20)
        self._costs = Baseline(20)  # time per token

    def judge(self, frame: Frame) -> Reading | None:
        core = _core_time(frame)
        if core is None or core <= 0:
            return None
        if frame.count == 1:  # it pays for compilation and caches
            return warming(9)
        tokens = frame.get(keys.TOKENS)
        cost = core / tokens if tokens is not None and tokens > 0 else None
        if len(self._times) < 8:
            self._add(core, cost)
            return warming(9 - len(self._times))
        ratio = core / self._times.median
        if cost is not None and len(self._costs):
            ratio = min(ratio, cost / self._costs.median)  # shorter or longer responses are no slow-down
        reading = self.compare(ratio, f"steps take {number(ratio)}× the usual time ({number(core)} s)")
        self._add(core, cost, refused=reading.raw >= Level.WARN)
        return reading

    def _add(self, core: float, cost: float | None, refused: bool = False) -> None:
        self._times.add(core, refused)
        if cost is not None:
            self._costs.add(cost, refused)


def _core_time(frame: Frame) -> float | None:
    """Seconds of a step without validation and saving."""
    whole = frame.get(keys.STEP_TIME)
    if whole is None:
        parts = [value for key, value in frame.data.items() if key.startswith(keys.OLD_PARTS)]
        if not parts or not math.isfinite(sum(parts)):
            return None
        whole = sum(parts)
    return whole - (frame.get(keys.VALIDATION_TIME) or 0.0) - (frame.get(keys.SAVING_TIME) or 0.0)


class _MemoryRule(Rule):
    """Memory in use against all there is, and whether it creeps towards the ceiling."""

    family = "memory"
    ceiling: ClassVar[float]  # share at which the creep is over
    words: ClassVar[str]

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._total: float | None = None
        self._last: deque[float] = deque(maxlen=3 * _THIRD + 1)
        self._count = 0
        self._full_since: float | None = None
        self._was_full = False  # between the last step and this one

    def judge(self, frame: Frame) -> Reading | None:
        used = self._used(frame)
        if used is None or self._total is None:
            return None
        self._count += 1
        self._last.append(used)
        level = worst(used / self._total, ladder(self.limits.raising, "share"))
        message = f"{number(used)} of {number(self._total)} GB {self.words}"
        left, last = self._left(), self.config.total_steps
        if left is not None:
            outlived = last is not None and frame.step + left > last  # steps that never come fill nothing
            soon = left < self.limits.raising["warn.steps"] and not outlived
            level = max(level, Level.WARN if soon else Level.NOTICE)
            message += f", growing; full in about {number(max(0, round(left)))} steps"
            message += ", after the last one" if outlived else ""
        elif level == Level.OK and self._was_full:
            level = Level.NOTICE
            message += ", but nearly all of it was in use between the steps"
        self._was_full = False
        return Reading(level, message)

    def _used(self, frame: Frame) -> float | None:
        raise NotImplementedError

    def _left(self) -> float | None:
        """Steps until the ceiling; None while memory does not rise in each third of the last 30 steps."""
        if self._count < 40 or self._total is None:
            return None
        rises = [self._last[end] - self._last[end - _THIRD] for end in range(_THIRD, len(self._last), _THIRD)]
        if min(rises) <= self.limits.raising["notice.creep"] * self._total:
            return None
        return (self.ceiling * self._total - self._last[-1]) / (sum(rises) / (3 * _THIRD))

    def _sampled(self, now: float, share: float | None) -> None:
        """Notes memory that is full for half a minute, which steps do not show."""
        if share is None or share < self.limits.raising["notice.sampled"]:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        elif now - self._full_since >= _FULL_FOR:
            self._was_full = True


class GpuMemory(_MemoryRule):
    """Peak of what training has reserved on the GPU. A running peak: it never falls, so only growth tells."""

    id = "MEM-1"
    question = "Will the GPU run out of memory?"
    needs = (tuple(key for row in keys.GPU_MEMORY for key in row),)
    ceiling = 0.98
    words = "reserved"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._total = setup.gpu_total_gb

    def not_applicable(self) -> str | None:
        return None if self._total else "the size of the GPU is not known"

    def tick(self, now: float, memory: Memory) -> None:
        self._sampled(now, memory.gpu)

    def _used(self, frame: Frame) -> float | None:
        for row in keys.GPU_MEMORY:
            found = [value for key in row if (value := frame.get((key,))) is not None]
            if found:
                return max(found)
        return None


class HostMemory(_MemoryRule):
    """Memory of the host, which all processes on it share."""

    id = "MEM-2"
    question = "Is host memory filling up?"
    needs = (keys.HOST_MEMORY,)
    ceiling = 0.95
    words = "of host memory in use"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._total = setup.host_total_gb

    def not_applicable(self) -> str | None:
        return None if self._total else "the size of the host's memory is not known"

    def tick(self, now: float, memory: Memory) -> None:
        self._sampled(now, memory.host)

    def _used(self, frame: Frame) -> float | None:
        return frame.get(keys.HOST_MEMORY)

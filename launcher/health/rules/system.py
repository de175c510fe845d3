"""THR-1, STALL-1, MEM-1 and MEM-2: speed and memory."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

from launcher.core.format import duration, number
from launcher.health import keys
from launcher.health.catalogue import shared_advice
from launcher.health.clauses import POSITIVE, Clause, Measure, Rung, Values, ladder, rungs, worst
from launcher.health.derived import DROPPED
from launcher.health.frame import Frame
from launcher.health.metric import FIRST, Metric, median
from launcher.health.rules.base import Rule, Setup
from launcher.health.state import Reading
from launcher.metrics.host import LOAD, HostLoad, slow_together
from launcher.metrics.timing import PARTS
from launcher.record.fix import Fix
from launcher.record.levels import NOTICE, OK, WARN
from launcher.verl.config import BATCH

_THIRD = 10  # steps; memory creeps if it rises in each of three such periods
_FIRST, _FAST = 12, 8  # steps after the first ones, in each of which memory that fills quickly grows
_FULL_FOR = 30.0  # seconds
_RATIO = Measure("× usual time", span=POSITIVE)
_AGO = Measure("× the time 50 to 100 steps ago", span=POSITIVE)
_NO_STEP = Measure("seconds without a step", span=POSITIVE)
_OPENING = Measure("seconds of the first step", span=POSITIVE)
_SILENCE = Measure("seconds since the last step", span=POSITIVE)
_BETWEEN = Measure("seconds above {} % between steps", span=POSITIVE)
_GROWTH, _LEFT = Measure("smallest growth"), Measure("steps until full")
_FILTER = "algorithm.filter_groups.enable"
_BOTH = frozenset(names[0].removeprefix(keys.PARTS) for names in (keys.VALIDATION_TIME, keys.SAVING_TIME))


class StepTime(Rule):
    """The time per step, without validation and saving, relative to its tokens."""

    id = "THR-1"
    needs = (keys.STEP_TIME,)
    also = (keys.TOKENS, LOAD)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._time, self._cost = Metric(), Metric()  # time per step, and per token
        self._stages = {(f"timing_s/{name}",): Metric() for _, names in PARTS for name in names}
        self._host_first = False  # whether the last slow step was slow as a whole, as far as the host is known

    def fixes(self) -> Sequence[Fix]:
        advice = super().fixes()
        return (*shared_advice("host-load"), *advice) if self._host_first else advice

    def judge(self, frame: Frame) -> Reading | None:
        whole = _whole_time(frame)
        core = None if whole is None else self._core_time(frame, whole)
        if whole is None or core is None or core <= 0:
            return None
        if frame.count == 1:  # includes compilation and caches
            return self.warming(FIRST + 1)
        tokens, time, cost = self._generated(frame), self._time, self._cost
        time.see(core)
        cost.see(core / tokens if tokens is not None and tokens > 0 else None)
        for names, stage in self._stages.items():
            stage.see(frame.get(names))
        if time.known < FIRST:
            return self.warming(FIRST + 1 - time.known)
        ratio, beyond = self._times(core, "usual", "usual ")
        ago, long = self._times(core, "ago", "earlier ", f"; of {self.since(time)}")
        host = HostLoad.of(frame.data)
        crowded = host is not None and host.crowded
        ending = f"; {host.words}" if host is not None and crowded and self._together() else ""

        def message(reading: Reading) -> str:
            rest = any(frame.get(names) for names in (keys.VALIDATION_TIME, keys.SAVING_TIME))
            apart = "; without validation and saving" if rest else ""
            times = beyond() if reading.about(0, 1) else long()
            return f"step {number(core)} s, {times}{apart}{ending}"

        reading = self.compare(
            message,
            lambda limits: [(ratio, ladder(limits, "ratio", ">"), _RATIO), (ago, ladder(limits, "ago", ">"), _AGO)],
            time,
        )
        if reading.raw > OK:
            self._host_first = (host is None or crowded) and self._together()
        if reading.raw >= WARN:
            for each in (cost, *self._stages.values()):
                each.refuse()
        return reading

    def _together(self) -> bool:
        """Whether all stages of this step took longer than usual."""
        known = {names[0]: each for names, each in self._stages.items() if each.known and math.isfinite(each.now)}
        now, usual = ({name: getattr(each, of) for name, each in known.items()} for of in ("now", "usual"))
        return slow_together(now, usual)

    def _times(self, core: float, of: str, name: str, when: str = "") -> tuple[float, Callable[[], str]]:
        """The step time as a multiple of an estimate; per token if smaller, as longer responses are not slow."""
        then, cost = getattr(self._time, of), self._cost
        ratio = core / then
        if cost.known and math.isfinite(cost.now) and (of_token := cost.now / getattr(cost, of)) < ratio:
            return of_token, lambda: f"{number(of_token)}× the {name}time per token{when}"
        return ratio, lambda: f"{number(ratio)}× the {name}{number(then)} s{when}"

    def _core_time(self, frame: Frame, whole: float) -> float | None:
        """Seconds without validation and saving; None if the total may or may not contain them."""
        for names in (keys.VALIDATION_TIME, keys.SAVING_TIME):
            if seconds := frame.get(names):
                old = any(key.startswith(keys.OLD_PARTS) for key in frame.data)
                contained = _BOTH if old else self.config.step_contains
                if contained is None:
                    return None
                whole -= seconds if names[0].removeprefix(keys.PARTS) in contained else 0.0
        return whole

    def _generated(self, frame: Frame) -> float | None:
        """Tokens of the step, including dropped and regenerated groups, which veRL leaves out."""
        tokens, batch = frame.get(keys.TOKENS), self.config.number(BATCH)
        if tokens is None or not batch:
            return tokens
        dropped = sum(frame.get(names) or 0.0 for names in DROPPED)
        return tokens * (1 + max(dropped, 0.0) / batch)


def _whole_time(frame: Frame) -> float | None:
    """Seconds per step as veRL logs them; for old versions the sum of all parts."""
    if (whole := frame.get(keys.STEP_TIME)) is not None:
        return whole
    parts = [value for key, value in frame.data.items() if key.startswith(keys.OLD_PARTS)]
    return sum(parts) if parts and math.isfinite(sum(parts)) else None


class _MemoryRule(Rule):
    """Used memory as a share of the total, and whether the run's own memory (`also`) grows towards it."""

    place: ClassVar[str]
    ceiling: ClassVar[float]  # share at which the creep is over
    words: ClassVar[str]
    own_only: ClassVar[bool] = False  # whether growth counts only if it is known to be the run's

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._total = setup.memory[self.place] or 0.0
        self._use = Measure("GB in use", self.needs[0], POSITIVE, fixed=True)
        self._between = _BETWEEN._replace(than=100 * self.limits.raising["notice.sampled"])
        self._last: deque[float] = deque(maxlen=3 * _THIRD + 1)
        self._count = 0
        self._own = False  # whether `_last` is the run's memory alone
        self._full_since: float | None = None
        self._full_for = 0.0  # seconds of full memory since the last step

    def judge(self, frame: Frame) -> Reading | None:
        used = self._used(frame)
        if used is None:
            return None
        self._count += 1
        own = frame.get(self.also[0]) if self.also else None
        if self._own is not (own is not None):
            self._own = not self._own
            self._last.clear()
        self._last.append(used if own is None else own)
        rises = self._rises()
        left = self._left(used, rises)
        outlived = left is not None and frame.step + left > (self.config.total_steps or math.inf)
        sampled = self._full_for >= _FULL_FOR

        def message(reading: Reading) -> str:
            words = f"{number(used)} of {number(self._total)} GB {self.words}"
            if left is not None:
                words += f", full in {self.config.numbering.count(max(0, round(left)))}; growing"
                return words + ("; after the last step" if outlived else "")
            between = sampled and worst(reading.clauses[:1]) == OK
            return words + ("; nearly full between steps" if between else "")

        def clauses(limits: Values) -> Sequence[Clause]:
            found: list[Clause] = [
                (used, ladder(limits, "share", unit=self._total), self._use),
                (self._full_for, [(NOTICE, ">=", _FULL_FOR)], self._between),
            ]
            if rises:
                full = math.nan if left is None or outlived else left
                found.append((min(rises), [(NOTICE, ">", limits["notice.creep"] * self._total)], _GROWTH))
                found.append((full, ladder(limits, "steps", "<"), _LEFT))
            return found

        reading = self.compare(message, clauses)
        self._full_for = 0.0
        return reading

    @classmethod
    def not_applicable(cls, setup: Setup) -> str | None:
        return None if setup.memory[cls.place] else f"{cls.place} memory size is unknown"

    def tick(self, now: float, used: Mapping[str, float | None]) -> None:
        """Flags memory that is full for half a minute, which steps do not show."""
        share = used[self.place]
        if share is None or share < self.limits.raising["notice.sampled"]:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        else:
            self._full_for = max(self._full_for, now - self._full_since)

    def _used(self, frame: Frame) -> float | None:
        return frame.get(self.needs[0])

    def _rises(self) -> list[float]:
        """Growth per 10 steps: of the last 8 if all are fast, otherwise of thirds of the last 30; empty with fewer."""
        last = list(self._last)
        if self.own_only and self._count > _FIRST:  # training reserves a GPU's memory in as few steps
            fast = [_THIRD * (after - before) for before, after in pairwise(last[-_FAST - 1 :])]
            at = self.limits.raising.at["notice"]
            if min(fast, default=0.0) > min(at["fast"] * self._total, at["fast_gb"]):
                return fast
        if (self.own_only and not self._own) or self._count < 40 or len(last) <= 3 * _THIRD:
            return []
        return [last[end] - last[end - _THIRD] for end in range(_THIRD, len(last), _THIRD)]

    def _left(self, used: float, rises: Sequence[float]) -> float | None:
        """Steps until memory is full; None unless memory rises in all thirds of the last 30 steps."""
        if not rises or not min(rises) > self.limits.raising["notice.creep"] * self._total:
            return None
        # the median, as a single jump is no slope
        return (self.ceiling * self._total - used) / (median(rises) / _THIRD)


class GpuMemory(_MemoryRule):
    """Peak memory that training reserved on the GPU. It never falls, so only its growth counts."""

    id = "MEM-1"
    needs = (tuple(key for row in keys.GPU_MEMORY for key in row),)
    place = "GPU"
    ceiling = 0.98
    words = "reserved"

    def _used(self, frame: Frame) -> float | None:
        rows = ([value for key in row if (value := frame.get((key,))) is not None] for row in keys.GPU_MEMORY)
        return next((max(found) for found in rows if found), None)


class HostMemory(_MemoryRule):
    """Host memory, shared by all processes: only the growth of the run's own is judged."""

    id = "MEM-2"
    needs = (keys.HOST_MEMORY,)
    also = (keys.RUN_MEMORY,)
    place = "host"
    ceiling = 0.95
    words = "host RAM"
    own_only = True


class Stall(Rule):
    """The time since the last step, compared with the usual interval (with saving and validation)."""

    id = "STALL-1"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._gaps: deque[float] = deque(maxlen=20)
        self._waiting_since: float | None = None
        self._last_step: float | None = None
        self._live = False

    @classmethod
    def not_applicable(cls, setup: Setup) -> str | None:
        return None if setup.clock else "a log file does not show whether its run is still alive"

    def judge(self, frame: Frame) -> Reading:
        if frame.t is not None:
            if self._last_step is not None and frame.t > self._last_step:  # otherwise they were read at once
                self._gaps.append(frame.t - self._last_step)
            self._last_step = self._waiting_since = frame.t
        ended = f"{self.config.numbering.place(frame.step)} finished"
        return self.compare(ended, lambda limits: self._silence(limits, 0.0))

    def tick(self, now: float, used: Mapping[str, float | None]) -> Reading:
        followed = self.signals.written_here is not None
        if not self._live:  # steps before this are of an earlier attempt: the pause since then is no gap
            self._live, self._waiting_since = True, self._waiting_since if followed else now
            self._last_step = self._last_step if followed else None
        waited = now - (now if self._waiting_since is None else self._waiting_since)
        opened, usual = (None if self._gaps else self.signals.first_step) or (math.nan, None)
        opening = now - opened
        reading = self.compare(
            "", lambda limits: [*self._silence(limits, waited), self._opening(limits, opening, usual)]
        )
        seen = ", no writer is seen here" if reading.raw and self.signals.written_here is False else ""
        if self._last_step is None or not self._gaps:
            if reading.raw and not reading.about(0, 1):
                known = "" if usual is None else f" (usual {duration(usual)})"
                filtered = "; the filter may drop most groups" if self.config.flag(_FILTER) else ""
                reading.message = f"the first step has taken {duration(opening)}{known}{filtered}"
                return reading
            begun = "the start" if self._last_step is None else "the last step"
            reading.message = f"{'no step for ' if reading.raw else ''}{duration(waited)} since {begun}{seen}"
            return reading
        said = f"no new step for {duration(waited)}" if reading.raw else f"{duration(waited)} since the last step"
        reading.message = f"{said} (usual {duration(median(self._gaps))}){seen}"
        return reading

    def _silence(self, limits: Values, waited: float) -> Sequence[Clause]:
        if self._last_step is None or not self._gaps:
            return [(waited, self._known(ladder(limits, "start", ">")), _NO_STEP)]
        usual, longest = median(self._gaps), max(self._gaps)
        silent = rungs(limits, ">", lambda at: max(at["median"] * usual, at["longest"] * longest, at["seconds"]))
        return [(waited, self._known(silent), _SILENCE)]

    def _opening(self, limits: Values, seconds: float, usual: float | None) -> Clause:
        """The duration of the first step, which may be the only one."""
        at = limits.at["warn"]
        most = at["first_unknown"] if usual is None else max(at["first"] * usual, at["first_seconds"])
        return seconds, self._known([(WARN, ">", most)]), _OPENING

    def _known(self, rungs: Sequence[Rung]) -> Sequence[Rung]:
        """The limits; WARN becomes a NOTICE without a known writer."""
        if self.signals.written_here is not False:
            return rungs
        return [(NOTICE, side, value) for level, side, value in rungs if level == WARN]

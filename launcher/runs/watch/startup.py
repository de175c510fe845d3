"""The start of a run: the stages up to its first step, with their times and usual times on this machine."""

import contextlib
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise

from launcher.console.phases import IN_STEP, PHASES
from launcher.core.format import duration
from launcher.metrics.records import StepRecord
from launcher.record.events import Event, PhaseChange, StateChange, read_events
from launcher.record.info import Head
from launcher.record.json import RARE, Record
from launcher.record.layout import AttemptDir, RunDir, all_runs
from launcher.record.standstill import StageWork, StartupWork
from launcher.record.state import RunState

NAMES = {
    "config": "configuration",
    "ray": "Ray",
    "trainer": "trainer",
    "data": "data",
    "workers": "workers",
    "model": "models",
    "engine": "engine",
    "graphs": "CUDA graphs",
    "checkpoint-load": "checkpoint",
    "validate-first": "first validation",
    "rollout": "first step",
}
STAGES = tuple(NAMES)
"""Phases of `launcher.console.phases` up to the first step, which the last one contains."""
_EXPECTED = frozenset(STAGES) - {"graphs"}
_STEP = ("rollout", "reward", "update")  # phases of the first step that have usual times
_STARTS = 5  # earlier starts that determine usual times
_LOOKED_AT = 40  # maximum number of runs searched for earlier starts
_HEAD = 1 << 16  # bytes of events.jsonl that hold a start
_LONG, _LONG_BY = 1.5, 5.0  # factor and seconds beyond the usual time that are reported
_DOWNLOAD, _COMPILES = 10 << 20, 10.0  # bytes, and seconds of CPU, that are always reported
_SLOW_DISK = 200e6  # bytes per second of a disk that is not slow
UNEXPLAINED = "reason unknown: no recorded data explains it"
_WORTH = 0.3  # minimum share of the stage's time for an explanation

DONE, RUNNING, WAITING, ENDED, UNREACHED = "done", "running", "waiting", "ended here", "not reached"
"""The states of a stage."""

Span = tuple[float, float]
"""Minimum and maximum seconds."""


@dataclass(frozen=True, slots=True)
class Stage(Record):
    """A stage: `begun` and `seconds` count from the start, once it runs. `slow`: far beyond `usual`.

    `why`: the reason for the time of a slow, downloading or compiling stage.
    """

    stage: str
    state: str
    begun: float | None = field(default=None, metadata=RARE)
    seconds: float | None = field(default=None, metadata=RARE)
    usual: Span | None = field(default=None, metadata=RARE)
    slow: bool = field(default=False, metadata=RARE)
    why: str | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class Startup(Record):
    """A start before the first step.

    `usual_starts`: number of earlier starts whose medians are the usual times; 0: from the table in
    `launcher.console.phases`.
    """

    stages: tuple[Stage, ...] = ()
    seconds: float | None = None
    usual_starts: int = 0

    @property
    def usual(self) -> float | None:
        """Time of all stages together in earlier starts; None without any."""
        return sum(stage.usual[0] for stage in self.stages if stage.usual) if self.usual_starts else None


@dataclass(frozen=True, slots=True)
class Usual:
    """Seconds of each stage, and the number of earlier starts behind the medians; 0: from the table.

    `work`: the work of the processes in these starts, newest first.
    """

    spans: Mapping[str, Span]
    starts: int = 0
    work: Sequence[StartupWork] = ()


@dataclass(slots=True)
class _Start:
    """The starting times of an attempt and its stages, from the events."""

    begun: float
    stages: dict[str, float]

    def taken(self, stepped: float) -> dict[str, float]:
        """Seconds of each stage, if the first step ended at `stepped`."""
        times = [*self.stages.items(), ("", stepped)]
        return {stage: after - at for (stage, at), (_, after) in pairwise(times)}


def startup(
    events: Iterable[Event],
    state: RunState,
    usual: Usual,
    now: float | None,
    *,
    before: int = 0,
    work: StartupWork | None = None,
) -> Startup | None:
    """The start of the newest attempt at `now`.

    None after its first step after `before`, and for an imported log or one without phases. The validation before
    training is logged as the step `before`.
    """
    if (state.step is not None and state.step > before) or state.state == "imported" or state.phase == "":
        return None
    start, begun = next(reversed(_starts(events)), None), state.started or state.created or 0.0
    if start is None or start.begun < begun:  # the newest attempt has no event yet
        start = _Start(begun, {})
    known = dict(start.stages) or {STAGES[0]: start.begun}
    at = _stage(state.phase) or next(reversed(known))
    known.setdefault(at, state.phase_since or start.begun)
    now = now if state.live else (state.exit and state.exit.t) or state.ended or now
    ends = [*list(known.values())[1:], now]
    stages = []
    for stage in STAGES:
        if stage in known:
            begun, end = known[stage], ends[list(known).index(stage)]
            seconds = None if end is None else max(0.0, end - begun)
            running = RUNNING if state.live else ENDED
            progress = running if stage == at else DONE
            span = usual.spans.get(stage)
            slow = _slow(seconds, span)
            why = _why(stage, seconds, span, work, usual) or (UNEXPLAINED if slow and progress == RUNNING else None)
            stages.append(Stage(stage, progress, max(0.0, begun - start.begun), seconds, span, slow, why))
        elif STAGES.index(stage) > STAGES.index(at) and stage in (usual.spans if usual.starts else _EXPECTED):
            to_come = Stage(stage, WAITING, usual=usual.spans.get(stage))
            stages.append(to_come if state.live else Stage(stage, UNREACHED))
    return Startup(tuple(stages), None if now is None else max(0.0, now - start.begun), usual.starts)


def startup_of(run: RunDir, state: RunState) -> Startup | None:
    """As `startup`, for a run that nobody follows, at its supervisor's last record."""
    before = step_before(run, state.attempt)
    if startup((), state, Usual({}), None, before=before) is None:  # usual times take longer to find
        return None
    usual = usual_start(run, run.read_head())
    return startup(
        read_events(run.events), state, usual, state.heartbeat, before=before, work=work_of(run, state.attempt)
    )


def work_of(run: RunDir, attempt: int | None) -> StartupWork | None:
    """The work of an attempt's processes per stage of its start."""
    return StartupWork.read(run.attempt(attempt).startup) if attempt is not None else None


def step_before(run: RunDir, attempt: int | None) -> int:
    """The checkpoint step that an attempt began with; 0 without one."""
    return (run.attempt(attempt).read_launch().resume_step if attempt is not None else None) or 0


def usual_start(run: RunDir, head: Head) -> Usual:
    """Usual times of the stages, from the newest completed starts of the run's preset on its machine, or from the
    table.

    A log from elsewhere has none, because it is read at another pace.
    """
    if head.from_log:
        return Usual({})
    preset, taken, starts = head.of_preset, defaultdict[str, list[float]](list), 0
    work: list[StartupWork] = []
    host = _host(run)
    for other in all_runs()[:_LOOKED_AT]:
        its = other.read_head()
        if its.of_preset != preset or its.from_log or _host(other) != host:
            continue
        for number, times in islice(_taken(other), _STARTS - starts):
            starts += 1
            work += filter(None, [work_of(other, number)])
            for stage, seconds in times.items():
                taken[stage].append(seconds)
    medians = {stage: statistics.median(seconds) for stage, seconds in taken.items()}
    if medians:
        return Usual({stage: (seconds, seconds) for stage, seconds in medians.items()}, starts, work)
    return Usual(
        {stage: _from_table(_STEP if stage == STAGES[-1] else (stage,), on_cpu=head.on_cpu) for stage in STAGES}
    )


def start_times(run: RunDir) -> tuple[int, Mapping[str, float]]:
    """The newest attempt that reached its first step, with seconds per stage; 0 and empty for external logs."""
    found = {} if run.read_head().from_log else dict(_taken(run))
    return max(found.items(), default=(0, {}))


def start_words(times: Mapping[str, float], attempt: int = 1) -> str:
    """`2m 55s to the end of the first step: engine 1m 28s, models 28s`, longest first; empty without times."""
    longest = sorted(((seconds, stage) for stage, seconds in times.items() if seconds >= 1), reverse=True)
    parts = ", ".join(f"{NAMES[stage]} {duration(seconds)}" for seconds, stage in longest)
    of = f" of attempt {attempt}" if attempt > 1 else ""
    return f"{duration(sum(times.values()))} to the end of the first step{of}: {parts}" if parts else ""


def usual_words(span: Span | None) -> str:
    """`28s`, `15s–3m 00s`; empty if unknown."""
    if span is None:
        return ""
    return "–".join(dict.fromkeys(duration(seconds) if seconds >= 1 else "<1s" for seconds in span))


def origin_words(start: Startup, *, on_cpu: bool) -> str:
    """The source of the usual times; empty without any."""
    if all(stage.usual is None for stage in start.stages):
        return ""
    if start.usual_starts:
        several = start.usual_starts > 1
        return (
            f"median of the last {start.usual_starts} starts of this preset"
            if several
            else "the last start of this preset"
        )
    return "toy-cpu on two idle cores" if on_cpu else "135M to 7B models; the upper ends are estimates"


def stage_lines(start: Startup, *, on_cpu: bool) -> list[str]:
    """The stages as lines of text: name, state, time and usual time."""
    lines = []
    for stage in start.stages:
        word = "longer than usual" if stage.slow and stage.state == RUNNING else stage.state
        seconds = duration(stage.seconds) if stage.seconds is not None else ""
        usual = f"  usually {usual_words(stage.usual)}" if stage.usual else ""
        lines.append(f"{NAMES[stage.stage]:<18}{word:<18}{seconds:>7}{usual}".rstrip())
        if stage.why:
            lines.append(f"  {stage.why}")
    origin = origin_words(start, on_cpu=on_cpu)
    return [*lines, *([f"usual times: {origin}"] if origin else [])]


def _from_table(phases: Iterable[str], *, on_cpu: bool) -> Span:
    spans = [PHASES[phase].cpu if on_cpu else PHASES[phase].gpu for phase in phases]
    return float(sum(least for least, _ in spans)), float(sum(most for _, most in spans))


def _slow(seconds: float | None, usual: Span | None) -> bool:
    return seconds is not None and usual is not None and seconds > max(_LONG * usual[1], usual[1] + _LONG_BY)


def _why(stage: str, seconds: float | None, span: Span | None, work: StartupWork | None, usual: Usual) -> str | None:
    """The reason for the time, if worth reporting; None if unknown."""
    done = work.of(stage) if work is not None else None
    if done is None or seconds is None:
        return None
    earlier = [found for each in usual.work if (found := each.of(stage)) is not None]
    if done.downloaded >= _DOWNLOAD:
        rate = done.downloaded / max(done.seconds, 1.0)
        return f"downloaded {_size(done.downloaded)} ({_size(rate)} per second)"
    if done.compiled >= _COMPILES:
        before = f", usually {duration(_median(earlier, 'compiled'))}" if earlier else ""
        return f"compilers used {duration(done.compiled)} of CPU{before}: no matching compile cache"
    if not _slow(seconds, span):
        return None
    parts = {
        f"read {_size(done.fetched)} from a slow disk ({done.disk})": done.fetched / _SLOW_DISK,
        f"the machine is busy: waited {duration(done.starved)} for a free CPU": done.starved,
        f"did nothing for {duration(done.quiet)}": done.quiet,
        f"used {duration(done.cpu)} of CPU, usually {duration(_median(earlier, 'cpu'))}": (
            done.cpu - _LONG * _median(earlier, "cpu") if earlier else 0.0
        ),
    }
    words, most = max(parts.items(), key=lambda part: part[1])
    return words if most >= _WORTH * seconds else None


def _median(work: Iterable[StageWork], name: str) -> float:
    return statistics.median([float(getattr(each, name)) for each in work] or [0.0])


def _size(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _stage(phase: str | None) -> str | None:
    if phase in IN_STEP - {"validate", "save"}:
        return STAGES[-1]
    return phase if phase in STAGES else None


def _starts(events: Iterable[Event]) -> list[_Start]:
    """The starts of all attempts, oldest first; the configuration stage begins with the process, not its first line."""
    starts: list[_Start] = []
    for event in events:
        match event.what:
            case StateChange(after="starting"):
                starts.append(_Start(event.t, {STAGES[0]: event.t}))
            case PhaseChange(phase) if starts and (stage := _stage(phase)):
                starts[-1].stages.setdefault(stage, event.t)
    return starts


def _taken(run: RunDir) -> Iterator[tuple[int, dict[str, float]]]:
    """Number and seconds per stage of each attempt that made a step."""
    for number, start in enumerate(_starts(_first_events(run)), 1):
        if (stepped := _first_step(run.attempt(number), step_before(run, number))) is not None:
            yield number, start.taken(stepped)


def _first_step(attempt: AttemptDir, before: int) -> float | None:
    """The end of the first step after `before`."""
    with contextlib.suppress(OSError), attempt.steps.open("rb") as file:
        for line in islice(file, 2):
            if (record := StepRecord.from_line(line)) is not None and record.step > before:
                return record.t
    return None


def _first_events(run: RunDir) -> list[Event]:
    with contextlib.suppress(OSError), run.events.open("rb") as file:
        return [event for line in file.read(_HEAD).splitlines() if (event := Event.from_line(line)) is not None]
    return []


def _host(run: RunDir) -> str | None:
    return run.attempt(1).read_launch().host

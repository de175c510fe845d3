"""Imports logs from elsewhere as ended runs."""

import contextlib
import dataclasses
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.console.diagnose import diagnose
from launcher.core.errors import UserError
from launcher.core.progress import Progress, unseen
from launcher.metrics.frameworks import Framework, described, reference
from launcher.preset.resolved import Resolved, from_config
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import EventLog, Note
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir, appearing
from launcher.record.state import RunState, StateFile
from launcher.runs.judge.monitor import Monitor
from launcher.runs.judge.run_checklist import LogClock, checklist_maker, read_attempt, settings_of
from launcher.runs.supervise.disk import DiskSink
from launcher.runs.watch.check_words import coverage
from launcher.runs.watch.source import LogFile, chunks, log_file, records
from launcher.runs.watch.steps import earlier_steps, scored, steps
from launcher.runs.watch.tracker_files import is_tracker, read
from launcher.runs.watch.tracker_run import TrackerClock, TrackerFiles, no_metrics


@dataclass
class _Attempt:
    """The files of one attempt and the steps they span; `tracked` is the tracker's run from which they come."""

    console: Path | None
    metrics: Path | None
    first: int | None = None
    last: int | None = None
    tracked: TrackerFiles | None = None
    framework: Framework | None = None

    @property
    def sources(self) -> list[str]:
        paths = [self.tracked.path] if self.tracked else [self.console, self.metrics]
        return [str(path.absolute()) for path in paths if path]

    def clock(self) -> LogClock | TrackerClock:
        return self.tracked.clock() if self.tracked else LogClock(self.console, self.metrics)

    def settings(self) -> Resolved:
        """The preset of the tracker's configuration, or else of the one in the console."""
        if self.framework is not None:
            return Resolved()
        if self.tracked and (found := from_config(self.tracked.config, self.tracked.folder)).preset:
            return found
        return settings_of(self.console) if self.console else Resolved()

    @property
    def name(self) -> str:
        if self.tracked:
            return self.tracked.name
        return stem(self.console or self.metrics or Path("run"))


def import_logs(
    words: Sequence[str],
    settings: Mapping[str, Any] | None = None,
    names: Mapping[str, Any] | None = None,
    progress: Progress = unseen,
) -> list[RunDir]:
    """Makes runs of these logs and files of trackers. `names` is a table of the user, `settings` are veRL keys.

    `progress` gets how far the files of each tracker are read.

    Logs whose steps continue each other, or that have the same name, become attempts of one run.
    """
    paths, own = [Path(word).expanduser() for word in words], described(names)
    attempts = _pair([log_file(word, own) for word, path in zip(words, paths, strict=True) if not is_tracker(path)])
    with tempfile.TemporaryDirectory(prefix="ppo-tui-tracker-") as folder:
        for tracked in (each for path in paths if is_tracker(path) for each in read(path, own, progress)):
            attempts.append(_of_tracker(tracked, Path(folder) / f"{len(attempts)}.jsonl"))
        return [_import_run(group, names, settings or {}) for group in _group(attempts)]


def _of_tracker(tracked: TrackerFiles, metrics: Path) -> _Attempt:
    """Writes the metrics as veRL's file logger does; the console counts if it is veRL's."""
    records = sorted(tracked.steps.values(), key=lambda record: record.step)
    metrics.write_bytes(b"".join(record.to_line() for record in records))
    console = None
    if tracked.console:
        with contextlib.suppress(UserError):
            console = log_file(str(tracked.console), tracked.framework).path
    first, last = (records[0].step, records[-1].step) if records else (None, None)
    if console is None and not records:
        raise no_metrics(tracked.path, tracked.notes)
    return _Attempt(console, metrics if records else None, first, last, tracked, tracked.framework)


def _group(attempts: Sequence[_Attempt]) -> list[list[_Attempt]]:
    runs: list[list[_Attempt]] = []
    for attempt in attempts:
        before = runs[-1][-1] if runs else None
        if before is not None and _continues(before, attempt):
            runs[-1].append(attempt)
        else:
            runs.append([attempt])
    return runs


def import_text(log: str) -> RunDir:
    """Makes a run of a pasted log, whose secrets `launcher.scripts.pasted` has removed."""
    with tempfile.TemporaryDirectory(prefix="ppo-tui-pasted-") as folder:
        path = Path(folder) / "pasted.log"
        path.write_text(log, "utf-8")
        return import_logs([str(path)])[0]


def _pair(files: list[LogFile]) -> list[_Attempt]:
    attempts: dict[str, _Attempt] = {}
    for file in files:
        name = str(file.path.parent / stem(file.path))
        attempt = attempts.setdefault(name, _Attempt(None, None, framework=file.framework))
        if (attempt.metrics if file.file_logger else attempt.console) is not None:
            raise UserError(f"'{file.path}' is listed twice", "name each file once")
        if file.file_logger:
            attempt.metrics = file.path
        else:
            attempt.console = file.path
    for attempt in attempts.values():
        for path, file_logger in ((attempt.metrics, True), (attempt.console, False)):
            for _, record in (
                steps(LogFile(path, file_logger, attempt.framework)) if path and attempt.first is None else ()
            ):
                attempt.first = record.step if attempt.first is None else min(attempt.first, record.step)
                attempt.last = record.step if attempt.last is None else max(attempt.last, record.step)
    return list(attempts.values())


def _continues(before: _Attempt, after: _Attempt) -> bool:
    """Whether `after` resumed `before`: its first step is inside that one's steps or directly after them, and not 0 or
    1.
    """
    if before.first is None or before.last is None or after.first is None:
        return False
    return max(before.first, 1) < after.first <= before.last + 1


def _import_run(group: list[_Attempt], names: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> RunDir:
    with appearing(group[0].name) as (run, hidden):
        _fill(hidden, group, names, settings)
    return run


def _fill(run: RunDir, group: list[_Attempt], names: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> None:
    events, now = EventLog(run.events), time.time()
    state = RunState("imported")
    for source in group:
        state = dataclasses.replace(_fill_attempt(run, source, events, settings), created=now)
    sources = [path for source in group for path in source.sources]
    resolved = next((found for source in reversed(group) if (found := source.settings()).preset), Resolved())
    info = RunInfo(
        run.id,
        group[0].name,
        now,
        preset=resolved.preset,
        preset_notes=resolved.notes,
        imported_from=tuple(sources),
        framework=reference(group[-1].framework, names),
    )
    info.write(run.run_yaml)
    StateFile(run).write(scored(run, state))


def _fill_attempt(run: RunDir, source: _Attempt, events: EventLog, settings: Mapping[str, Any]) -> RunState:
    """Copies and judges the logs of the next attempt."""
    attempt, framework, tracked = run.add_attempt(), source.framework, source.tracked
    if source.console is not None:
        _copy(source.console, attempt.console)
    if source.metrics is not None:
        _copy(source.metrics, attempt.metrics, None if tracked else framework)
    console = attempt.console if source.console else None
    metrics = attempt.metrics if source.metrics else None
    clock, keys = source.clock(), {**(tracked.config if tracked else {}), **settings}
    sink, checklist, both = (
        DiskSink(attempt, events),
        checklist_maker(RunInfo(), {}, framework),
        bool(console and metrics),
    )
    monitor = Monitor(sink, checklist, keys, file_logger=both, framework=framework, pinned=settings, clock=clock)
    started = clock.now
    resumed = source.first - 1 if source.first is not None and attempt.number > 1 else None
    monitor.history(earlier_steps(run, attempt.number, resumed))
    read_attempt(monitor, console, metrics, clock)
    code = tracked.exit_code if tracked else None
    kept = dict(monitor.keys) if framework else keys
    LaunchRecord(created=started, resume_step=resumed, keys=kept).write(attempt.launch)
    Exit(code=code, t=clock.now).write(attempt.exit)
    for note in tracked.notes if tracked else ():
        events.add(Note(note), clock.now)
    if framework is not None:
        events.add(Note(coverage(framework.title, monitor.checklist.checks())), clock.now)
    state = _ended(
        RunState("imported", attempt=attempt.number, started=started, ended=clock.now), source, attempt, code
    )
    return dataclasses.replace(monitor.state(state, clock.now), eta=None, stalled=False, stall=None)


def _ended(state: RunState, source: _Attempt, attempt: AttemptDir, code: int | None) -> RunState:
    """The state with how the attempt ended, by its console or the tracker's exit code."""
    if source.console is not None:
        result = diagnose(chunks(attempt.console), framework=source.framework)
        outcome = "failed" if result.failed else result.cause
        error = result.title if result.failed else None
        state = dataclasses.replace(state, outcome=outcome, cause=result.cause, error=error)
    if code is not None and state.outcome in (None, "running"):
        state = dataclasses.replace(state, outcome="failed" if code else "finished")
    return state


def _copy(source: Path, target: Path, framework: Framework | None = None) -> None:
    """Copies a log; rows of another framework's file become lines of a metrics.jsonl."""
    with target.open("wb") as file:
        file.writelines((line + b"\n" for line in records(source, framework)) if framework else chunks(source))


def stem(path: Path) -> str:
    """The name of a log without its endings."""
    name = path.name.removesuffix(".gz")
    for suffix in (".log", ".jsonl", ".txt", ".json", ".csv"):
        name = name.removesuffix(suffix)
    return name

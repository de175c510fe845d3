"""Imports logs from elsewhere as ended runs."""

import dataclasses
import functools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from launcher.console.diagnose import diagnose
from launcher.core.errors import UserError
from launcher.core.progress import Progress, unseen
from launcher.metrics.frameworks import Settings, described, reference
from launcher.preset.resolved import Resolved, from_config
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import EventLog, Note
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir, appearing
from launcher.record.state import RunState, StateFile
from launcher.runs.judge.monitor import Monitor
from launcher.runs.judge.run_checklist import checklist_maker, clock_of, meter_of, read_attempt, settings_of
from launcher.runs.supervise.disk import DiskSink
from launcher.runs.watch.check_words import coverage
from launcher.runs.watch.source import LogFile, chunks, log_file, of_tracker, records
from launcher.runs.watch.steps import earlier_steps, scored, steps
from launcher.runs.watch.tracker_files import is_tracker, read
from launcher.runs.watch.tracker_run import TrackerFiles


@dataclass
class _Attempt:
    """The logs of one attempt, a console last."""

    logs: list[LogFile]

    @functools.cached_property
    def span(self) -> tuple[int, int] | None:
        """The first and the last step."""
        found = next(filter(None, ([record.step for _, record in steps(log)] for log in self.logs)), None)
        return (min(found), max(found)) if found else None

    @property
    def tracked(self) -> TrackerFiles | None:
        return self.logs[0].tracked

    @property
    def console(self) -> Path | None:
        return next(filter(None, (log.console for log in self.logs)), None)

    def settings(self) -> Resolved:
        """The preset of the tracker's configuration, or else of the one in the console."""
        if self.logs[0].framework is not None:
            return Resolved()
        if self.tracked and (found := from_config(self.tracked.config, self.tracked.folder)).preset:
            return found
        return settings_of(self.console) if self.console else Resolved()

    @property
    def name(self) -> str:
        return self.tracked.name if self.tracked else stem(self.console or self.logs[0].path)


def import_logs(
    words: Sequence[str],
    settings: Mapping[str, Any] | None = None,
    names: Mapping[str, Any] | None = None,
    progress: Progress = unseen,
    made: Callable[[RunDir], None] = lambda run: None,
) -> list[RunDir]:
    """Makes runs of these logs and files of trackers. `names` is a table of the user, `settings` are veRL keys.

    Logs whose steps continue each other, or that have the same name, become attempts of one run. `made` gets each run.
    """
    own, runs, logs = described(names), list[RunDir](), list[LogFile]()
    for word in words:
        path = Path(word).expanduser()
        logs += map(of_tracker, read(path, own, progress)) if is_tracker(path) else [log_file(word, own)]
    for group in _group(_pair(logs)):
        with appearing(group[0].name) as (run, hidden):
            _fill(hidden, group, reference(group[-1].logs[0].framework, names), settings or {}, progress)
        runs.append(run)
        made(run)
    return runs


def _group(attempts: Sequence[_Attempt]) -> list[list[_Attempt]]:
    runs: list[list[_Attempt]] = []
    for attempt in attempts:
        if runs and _continues(runs[-1][-1], attempt):
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


def _pair(logs: list[LogFile]) -> list[_Attempt]:
    attempts: dict[str, _Attempt] = {}
    for log in logs:
        name = f"{id(log)}" if log.tracked else str(log.path.parent / stem(log.path))
        attempt = attempts.setdefault(name, _Attempt([]))
        if any(each.file_logger == log.file_logger for each in attempt.logs):
            raise UserError(f"'{log.path}' is listed twice", "name each file once")
        attempt.logs.insert(0 if log.file_logger else 1, log)
    return list(attempts.values())


def _continues(before: _Attempt, after: _Attempt) -> bool:
    """Whether `after` resumed `before`: its first step is inside or directly after that one's, and not 0 or 1."""
    earlier, later = before.span, after.span
    return bool(earlier and later and max(earlier[0], 1) < later[0] <= earlier[1] + 1)


def _fill(
    run: RunDir, group: list[_Attempt], framework: Settings | None, settings: Mapping[str, Any], progress: Progress
) -> None:
    events, now = EventLog(run.events), time.time()
    state = RunState("imported")
    for source in group:
        state = dataclasses.replace(_fill_attempt(run, source, events, settings, progress), created=now)
    sources = [str(log.path.absolute()) for source in group for log in reversed(source.logs)]
    resolved = next((found for source in reversed(group) if (found := source.settings()).preset), Resolved())
    info = RunInfo(
        run.id,
        group[0].name,
        now,
        preset=resolved.preset,
        preset_notes=resolved.notes,
        imported_from=tuple(sources),
        framework=framework,
    )
    info.write(run.run_yaml)
    StateFile(run).write(scored(run, state))


def _fill_attempt(
    run: RunDir, source: _Attempt, events: EventLog, settings: Mapping[str, Any], progress: Progress
) -> RunState:
    """Copies and judges the logs of the next attempt."""
    attempt, framework, tracked = run.add_attempt(), source.logs[0].framework, source.tracked
    _copy(source, attempt)
    console, metrics = attempt.logs()
    clock, keys = clock_of(source.logs[-1]), {**(tracked.config if tracked else {}), **settings}
    sink, both = DiskSink(attempt, events), bool(console and metrics)
    checklist = checklist_maker(RunInfo(), {}, framework)
    monitor = Monitor(sink, checklist, keys, file_logger=both, framework=framework, pinned=settings, clock=clock)
    started = clock.now
    resumed = source.span[0] - 1 if source.span and attempt.number > 1 else None
    monitor.history(earlier_steps(run, attempt.number, resumed))
    meter = meter_of(progress, console, metrics)
    read_attempt(monitor, console, records(metrics, meter=meter) if metrics else (), clock, meter)
    code = tracked.exit_code if tracked else None
    kept = dict(monitor.keys) if framework else keys
    LaunchRecord(created=started, resume_step=resumed, keys=kept).write(attempt.launch)
    Exit(code=code, t=clock.now).write(attempt.exit)
    for note in chain.from_iterable(log.notes for log in source.logs):
        events.add(Note(note), clock.now)
    if framework is not None:
        events.add(Note(coverage(framework.title, monitor.checklist.checks())), clock.now)
    state = RunState("imported", attempt=attempt.number, started=started, ended=clock.now)
    state = _ended(state, source, attempt, code)
    return dataclasses.replace(monitor.state(state, clock.now), eta=None, stalled=False, stall=None)


def _ended(state: RunState, source: _Attempt, attempt: AttemptDir, code: int | None) -> RunState:
    """The state with how the attempt ended, by its console or the tracker's exit code."""
    if source.console is not None or code is not None:
        result = diagnose(chunks(attempt.console), exit_code=code, framework=source.logs[0].framework)
        outcome = "failed" if result.failed else result.cause
        error = result.title if result.failed else None
        state = dataclasses.replace(state, outcome=outcome, cause=result.cause, error=error)
    return state


def _copy(source: _Attempt, attempt: AttemptDir) -> None:
    for log in source.logs:
        if log.console is not None:
            with attempt.console.open("wb") as file:
                file.writelines(chunks(log.console))
        if log.file_logger and not (log.tracked and not log.tracked.steps):
            with attempt.metrics.open("wb") as file:
                file.writelines(line + b"\n" for line in log.lines())


def stem(path: Path) -> str:
    """The name of a log without its endings."""
    name = path.name.removesuffix(".gz")
    for suffix in (".log", ".jsonl", ".txt", ".json", ".csv"):
        name = name.removesuffix(suffix)
    return name

"""Imports logs from elsewhere as ended runs."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from launcher.console.diagnose import diagnose
from launcher.console.reader import ConfigDump, ConsoleReader, StepLine
from launcher.core.errors import UserError
from launcher.core.files import make_folder
from launcher.core.progress import Progress, unseen
from launcher.metrics.frameworks import Settings, described, reference
from launcher.preset.resolved import Resolved, from_config
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import EventLog, Note
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, appearing
from launcher.record.state import RunState, StateFile
from launcher.runs.judge.run_checklist import judge_log
from launcher.runs.supervise.disk import DiskSink
from launcher.runs.watch.check_words import coverage
from launcher.runs.watch.log import Log, newest, open_logs
from launcher.runs.watch.steps import earlier_steps, scored


def import_logs(
    words: Sequence[str],
    settings: Mapping[str, Any] | None = None,
    names: Mapping[str, Any] | None = None,
    progress: Progress = unseen,
    made: Callable[[RunDir], None] = lambda run: None,
    every: int | None = None,
) -> list[RunDir]:
    """Makes runs from logs and tracker files. `names`: a user's table. `settings`: veRL keys. `made` receives each run.

    Logs with consecutive steps or equal names become attempts of one run. `every`: as in `Log.number`.
    """
    own, runs, groups = described(names), list[RunDir](), list[list[Log]]()
    for log in _pair([log for word in words for log in open_logs(word, own, progress)]):
        log.number(every)
        if groups and _continues(groups[-1][-1], log):
            groups[-1].append(log)
        else:
            log.notes += filter(None, [log.numbers_note])
            groups.append([log])
    for group in groups:
        with appearing(group[0].name) as (run, hidden):
            _fill(hidden, group, reference(group[-1].framework, names), settings or {}, progress)
        runs.append(run)
        made(run)
    return runs


def unlisted(path: Path, folder: str) -> RunDir:
    """A run of a log in an empty folder of the caller, which no list has."""
    run, log = RunDir(Path(folder) / path.name), newest(str(path))
    for each in (run.control, run.attempts):
        make_folder(each)
    _fill(run, [log], reference(log.framework), {}, unseen)
    return run


def import_text(log: str) -> RunDir:
    """Makes a run of a pasted log, after `launcher.scripts.pasted` removed its secrets."""
    with tempfile.TemporaryDirectory(prefix="ppo-tui-pasted-") as folder:
        path = Path(folder) / "pasted.log"
        path.write_text(log, "utf-8")
        return import_logs([str(path)])[0]


def _pair(logs: Sequence[Log]) -> list[Log]:
    """The logs; a console and metrics with equal names become one."""
    found: dict[object, Log] = {}
    for log in logs:
        key = id(log) if log.kind == "tracker" else log.path.parent / log.name
        before = found.get(key, log)
        if before is not log and (before.table is None) == (log.table is None):
            raise UserError(f"'{log.path}' is listed twice", "name each file once")
        rows = log if log.table is not None else before
        found[key] = replace(rows, console=before.console or log.console)
    return list(found.values())


def _continues(before: Log, after: Log) -> bool:
    """Whether `after` resumed `before`: its first step is within or directly after the steps of `before`, and not 0 or
    1.

    Without step numbers, counters that grow with the steps decide; a note reports this.
    """
    if (lines := before.counted) is not None and (more := after.counted) is not None:
        place = lines.place(more)
        after.before, continues = before.before + (place or 0), place is not None
        if continues and before.numbering.every:
            after.known = before.numbering
        words = "continues" if continues else "does not continue"
        after.notes.append(f"{after.path.name} {words} {before.path.name}: {lines.compared(more)}")
        return continues
    earlier, later = before.span, after.span
    return bool(earlier and later and max(earlier[0], 1) < later[0] <= earlier[1] + 1)


def _fill(
    run: RunDir, group: list[Log], framework: Settings | None, settings: Mapping[str, Any], progress: Progress
) -> None:
    events, now = EventLog(run.events), time.time()
    for log in group:
        state = replace(_fill_attempt(run, log, events, settings, progress), created=now)
    resolved = next((found for log in reversed(group) if (found := preset_of(log)).preset), Resolved())
    info = RunInfo(
        run.id,
        group[0].name,
        now,
        preset=resolved.preset,
        preset_notes=resolved.notes,
        imported_from=tuple(str(file.absolute()) for log in group for file in log.files),
        framework=framework,
    )
    info.write(run.run_yaml)
    StateFile(run).write(scored(run, state))


def _fill_attempt(
    run: RunDir, source: Log, events: EventLog, settings: Mapping[str, Any], progress: Progress
) -> RunState:
    """Copies and judges the log of the next attempt."""
    attempt, framework, code = run.add_attempt(), source.framework, source.exit_code
    log, clock = source.copy(attempt), source.clock()
    started = clock.now
    resumed = source.before or source.span[0] - 1 if attempt.number > 1 and source.span else None
    before = earlier_steps(run, attempt.number, resumed)
    monitor = judge_log(log, DiskSink(attempt, events), {}, settings, clock, progress, before)
    kept = dict(monitor.keys) if framework else {**log.config, **settings}
    LaunchRecord(created=started, resume_step=resumed, keys=kept).write(attempt.launch)
    Exit(code=code, t=clock.now).write(attempt.exit)
    for note in log.notes:
        events.add(Note(note), clock.now)
    if framework is not None:
        events.add(Note(coverage(framework, monitor.checklist.checks())), clock.now)
    state = RunState("imported", attempt=attempt.number, started=started, ended=clock.now)
    if log.console is not None or code is not None:
        result = diagnose(log.text(), exit_code=code, framework=framework)
        outcome, error = ("failed", result.title) if result.failed else (result.cause, None)
        state = replace(state, outcome=outcome, cause=result.cause, error=error)
    return replace(monitor.state(state, clock.now), eta=None, stalled=False, stall=None)


def preset_of(log: Log) -> Resolved:
    """The preset built from a tracker's configuration; without one, from veRL's console."""
    if log.framework is not None:
        return Resolved()
    if log.config and (found := from_config(log.config, log.folder)).preset:
        return found
    reader = ConsoleReader()
    for event in (event for chunk in log.text() for event in reader.feed(chunk)):
        if isinstance(event, ConfigDump):
            return from_config(event.keys, (log.console or log.path).absolute().parent)
        if isinstance(event, StepLine):  # printed before the first step
            break
    return Resolved()

"""Why a run or a log ended."""

import contextlib
import time
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.console.diagnose import diagnose, errors_so_far
from launcher.console.diagnosis import Diagnosis
from launcher.console.endings import LOST
from launcher.core.format import SHORT_ID
from launcher.preset.remedy import Remedy, configuration, open_fixes, remedy
from launcher.record.attempt import Exit
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.ray_session import RaySession
from launcher.record.state import current
from launcher.runs.watch.run_settings import last_settings
from launcher.runs.watch.source import LogFile, chunks

_LATEST = "/tmp/ray/session_latest"  # as the fixes of causes name it


@dataclass(frozen=True)
class Outcome:
    """State of the ended run, the diagnosis' cause, and one sentence where something had gone wrong."""

    state: str
    cause: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Explanation:
    """A diagnosis, and the changes of each fix in the run's preset; None for a fix about something else."""

    diagnosis: Diagnosis
    remedies: tuple[Remedy | None, ...] = ()


def outcome(attempt: AttemptDir, record: Exit, steps_total: int | None = None) -> Outcome:
    """The outcome of an attempt with this exit record, from the console if the exit code is unknown. A requested stop
    is never a failure, but earlier errors are still reported.
    """
    if record.code == 0:
        return Outcome("finished", "finished")
    asked = record.requested_by
    result = diagnose(
        chunks(attempt.console),
        exit_code=record.code,
        requested_by=asked,
        alive=False,
        steps_total=steps_total,
        machine=record.machine,
    )
    if record.code is None and not asked and result.cause == "finished":
        return Outcome("finished", "finished")
    if record.code is None and not asked and result.title == LOST:
        return Outcome("lost", result.cause, result.title)
    if result.cause == "stopped" or (asked and result.cause in ("finished", "unknown")):
        return Outcome("stopped", "stopped")  # asked for, or SIGTERM from somebody else
    return Outcome("stopped" if asked else "failed", result.cause, result.title)


def diagnosis(source: RunDir | LogFile) -> Diagnosis:
    """Why a source ended, or that it runs."""
    if isinstance(source, LogFile):
        return diagnose(() if source.file_logger else chunks(source.path))
    attempt, state = source.last_attempt(), current(source)
    if attempt is None:
        return diagnose(())
    if state.state == "imported":
        return _of_run(diagnose(chunks(attempt.console)), source, attempt)
    ended = attempt.read_exit() or Exit()
    result = diagnose(
        chunks(attempt.console),
        exit_code=ended.code,
        requested_by=ended.requested_by,
        alive=state.going,
        stalled_for=_age(attempt.console),
        steps_total=state.total,
        machine=ended.machine,
    )
    return _of_run(result, source, attempt)


def explanation(run: RunDir) -> Explanation | None:
    """Why a run failed, or the cause of a live run's errors so far.

    None if there is nothing to explain. Raises UserError for an unreadable log.
    """
    attempt, state = run.last_attempt(), current(run, checks=False)
    if attempt is None:
        return None
    result = errors_so_far(chunks(attempt.console)) if state.going else diagnosis(run)
    if result is None or not result.failed:
        return None
    if state.going:
        result = _of_run(result, run, attempt)
    preset = last_settings(run)[0].preset
    config = configuration(preset or {})
    remedies = tuple(remedy(fix, config) if preset is not None else None for fix in result.fixes)
    return Explanation(result, remedies)


def _of_run(result: Diagnosis, run: RunDir, attempt: AttemptDir) -> Diagnosis:
    """The diagnosis with what is left to do in this run, its id, and the folder of its own Ray session: the latest one
    may belong to another run.
    """
    preset, session = last_settings(run)[0].preset, RaySession.read(attempt.ray)
    fixes = result.fixes if preset is None else open_fixes(result.fixes, configuration(preset))
    if session is not None:
        fixes = tuple(replace(fix, do=fix.do.replace(_LATEST, session.path)) for fix in fixes)
    return replace(result, fixes=fixes).of_run(run.id[:SHORT_ID])


def _age(path: Path) -> float | None:
    """Seconds since a log grew."""
    with contextlib.suppress(OSError):
        return max(0.0, time.time() - path.stat().st_mtime)
    return None

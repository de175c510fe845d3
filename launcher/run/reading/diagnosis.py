"""Why a run or a log ended."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from launcher.console.diagnose import diagnose
from launcher.console.diagnosis import Diagnosis
from launcher.format import SHORT_ID
from launcher.record.attempt import Exit
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.state import current
from launcher.run.reading.source import LogFile, chunks


@dataclass(frozen=True)
class Outcome:
    """State of the ended run, the diagnosis' cause, and one sentence where something had gone wrong."""

    state: str
    cause: str | None = None
    error: str | None = None


def outcome(attempt: AttemptDir, record: Exit) -> Outcome:
    """The outcome of an attempt with this exit record.

    A stop that was asked for is never a failure, but what had gone wrong before it is still told.
    """
    if record.code == 0:
        return Outcome("finished", "finished")
    asked = record.requested_by
    found = diagnose(chunks(attempt.console), exit_code=record.code, requested_by=asked)
    if found.cause == "stopped" or (asked and found.cause in ("finished", "unknown")):
        return Outcome("stopped", "stopped")  # asked for, or SIGTERM from somebody else
    return Outcome("stopped" if asked else "failed", found.cause, found.title)


def diagnosis(source: RunDir | LogFile) -> Diagnosis:
    """Why a source ended, or that it runs."""
    if isinstance(source, LogFile):
        return diagnose(() if source.file_logger else chunks(source.path))
    attempt, state = source.last_attempt(), current(source)
    if attempt is None:
        return diagnose(())
    if state.state == "imported":
        return diagnose(chunks(attempt.console))
    ended = attempt.read_exit() or Exit()
    found = diagnose(
        chunks(attempt.console),
        exit_code=ended.code,
        requested_by=ended.requested_by,
        alive=state.going,
        stalled_for=_age(attempt.console),
        steps_total=state.total,
    )
    return found.of_run(source.id[:SHORT_ID])


def _age(path: Path) -> float | None:
    """Seconds since a log grew."""
    with contextlib.suppress(OSError):
        return max(0.0, time.time() - path.stat().st_mtime)
    return None

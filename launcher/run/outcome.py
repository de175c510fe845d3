"""How an attempt ended, and why."""

from dataclasses import dataclass
from typing import Any

from launcher.console.diagnose import Diagnosis, diagnose
from launcher.run.directory import AttemptDir
from launcher.run.monitor import Monitor
from launcher.run.source import lines


@dataclass(frozen=True)
class Outcome:
    """State of the ended run, and for a failed one the cause and one sentence."""

    state: str
    cause: str | None = None
    error: str | None = None


def judge(attempt: AttemptDir, record: dict[str, Any], monitor: Monitor) -> Outcome:
    """The outcome of an attempt with this exit record. A stop that was asked for is never a failure."""
    if record["requested_by"]:
        return Outcome("stopped", "stopped")
    if record["code"] == 0:
        return Outcome("finished", "finished")
    found = diagnose_attempt(attempt, exit_code=record["code"])
    if found.cause == "stopped":  # somebody else sent SIGTERM
        return Outcome("stopped", "stopped")
    return Outcome("failed", found.cause, found.title)


def diagnose_attempt(attempt: AttemptDir, **facts: Any) -> Diagnosis:
    """Diagnosis of an attempt's console."""
    return diagnose(lines(attempt.console), **facts)

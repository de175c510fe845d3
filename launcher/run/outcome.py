"""How an attempt ended, and why."""

from dataclasses import dataclass
from typing import Any

from launcher.console.diagnose import diagnose
from launcher.run.directory import AttemptDir
from launcher.run.source import chunks


@dataclass(frozen=True)
class Outcome:
    """State of the ended run, the diagnosis' cause, and one sentence where something had gone wrong."""

    state: str
    cause: str | None = None
    error: str | None = None


def judge(attempt: AttemptDir, record: dict[str, Any]) -> Outcome:
    """The outcome of an attempt with this exit record.

    A stop that was asked for is never a failure, but what had gone wrong before it is still told.
    """
    if record["code"] == 0:
        return Outcome("finished", "finished")
    asked = record["requested_by"]
    found = diagnose(chunks(attempt.console), exit_code=record["code"], requested_by=asked)
    if found.cause == "stopped" or (asked and found.cause in ("finished", "unknown")):
        return Outcome("stopped", "stopped")  # asked for, or SIGTERM from somebody else
    return Outcome("stopped" if asked else "failed", found.cause, found.title)

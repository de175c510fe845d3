"""Isolates a failure: a short run with one change shows whether the failure depends on it. This is not a fix."""

import re
from dataclasses import dataclass

from launcher.console.causes import Level as Order
from launcher.console.causes import catalogue
from launcher.record.levels import Level
from launcher.record.state import RunState
from launcher.runs.watch.history import Onset
from launcher.runs.watch.parent import Parent

ISOLATION = "isolation"
"""The rule id of trials that isolate a failure."""
ISOLATED, AGAIN, OTHER = "isolated", "came again", "other failure"
_VALUE = re.compile(r"0x[0-9a-f]+|\d[\d.,:]*|…")


@dataclass(frozen=True)
class Failure(Onset):
    """The failure of a run in step `rose`, which never ended."""

    cause: str = ""
    title: str = ""

    @property
    def told(self) -> str:
        return f"isolation, not a fix: the run failed in step {self.rose} ({self.title})"


def failure_of(run: Parent) -> Failure | None:
    """The failure of a run, from its records only; None for other runs."""
    state, parent = run.state, run.info.parent
    if not state.failed or not state.error:
        return None
    step = max(state.step or 0, parent.step or 0 if parent else 0) + 1
    return Failure(ISOLATION, step, step, Level.CRITICAL, state.cause or "", state.error)


def isolation(state: RunState, last: int, failure: Failure) -> tuple[str, str] | None:
    """The verdict on an ended trial, with its reason; None if it was stopped too early.

    `failure`: its parent's. `last`: the last completed step of the trial.
    """
    if state.failed and _same(state, failure):
        return AGAIN, "the failure does not depend on this change"
    if last >= failure.rose:
        later = f"; later another failure: {state.error}" if state.failed else ""
        return (
            ISOLATED,
            f"step {failure.rose} ended, where the run had failed: the failure depends on this change{later}",
        )
    if state.failed:
        return OTHER, f"before the end of step {failure.rose}: {state.error}"
    return None


def _same(state: RunState, failure: Failure) -> bool:
    """Whether a run failed in the same way: by cause and, for an unspecific cause, by message."""
    if state.cause != failure.cause:
        return False
    exact = any(cause.id == failure.cause and cause.level is Order.ROOT for cause in catalogue())
    return exact or _VALUE.sub("", state.error or "") == _VALUE.sub("", failure.title)

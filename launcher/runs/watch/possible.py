"""What can be done to a run now, and why the rest cannot: keys, palette and help of the screen ask it."""

from collections.abc import Iterable, Mapping
from enum import Enum

from launcher.record.events import Event, LevelChange
from launcher.record.info import Head
from launcher.record.layout import RunDir
from launcher.record.state import RunState


class Verb(Enum):
    """What is done to a run."""

    STOP = "stop"
    RESUME = "resume"
    FORK = "fork"
    EVALUATE = "evaluate"
    MERGE = "merge"
    TRY = "try"
    EDIT = "edit"
    MUTE = "mute"
    DELETE = "delete"


Refusals = Mapping[Verb, str]
"""Why a verb cannot be done; one that is missing can."""

_LIVE = "the run has not ended; stop it first"
_ENDED = "the run has ended"


def refusals(run: RunDir, state: RunState, head: Head, events: Iterable[Event]) -> Refusals:
    """What cannot be done to the run as it is now. Lists its checkpoints."""
    from launcher.runs.watch.checkpoints import checkpoint_steps  # with the whole reader, for which no frame waits

    found: dict[Verb, str] = {}
    kept = checkpoint_steps(run)
    if state.going:
        found[Verb.RESUME] = found[Verb.DELETE] = _LIVE
    else:
        found[Verb.STOP] = _ENDED
        complete = state.total is not None and all(step >= state.total for step in kept)
        if complete and kept:
            found[Verb.RESUME] = f"complete: the checkpoint is at step {kept[-1]} of {state.total}"
    if not state.live:
        found[Verb.MUTE] = f"{_ENDED} and is no longer judged"
    if not kept:
        why = "no complete checkpoint yet" if state.live else "no complete checkpoint (trainer.save_every)"
        found |= {verb: why for verb in (Verb.RESUME, Verb.EVALUATE, Verb.MERGE) if verb not in found}
    if not any(isinstance(event.what, LevelChange) and event.what.alarming for event in events):
        found[Verb.TRY] = "no WARN or CRITICAL flag whose fixes could be tried"
    if not head.resumable:
        why = "a log from elsewhere" if head.from_log else "no preset is recorded"
        found |= dict.fromkeys((Verb.RESUME, Verb.FORK, Verb.EVALUATE, Verb.TRY), why)
    if "preset" not in head.keys:
        found[Verb.EDIT] = "its log contains no settings" if head.from_log else "no preset is recorded"
    if state.later:
        found |= dict.fromkeys(Verb, state.later)
    return found

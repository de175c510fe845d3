"""Actions available for a run, and the reasons against the others, for commands, keys, palette and help."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from launcher.core.errors import UserError
from launcher.record.events import Event, LevelChange
from launcher.record.info import Head, RunInfo
from launcher.record.layout import RunDir
from launcher.record.state import RunState


class Verb(Enum):
    """An action on a run."""

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
"""Reasons per refused verb; a missing verb is possible."""

_ENDED = "the run has ended"
_FROM_PRESET = frozenset({Verb.RESUME, Verb.FORK, Verb.EVALUATE, Verb.TRY})


class Refusal(NamedTuple):
    """Why an action is refused, and how to make it possible, if at all."""

    reason: str
    action: str = ""


_LIVE = Refusal("the run has not ended", "stop it first")
_QUIET = "it counts as ended after ten minutes without output; to end it sooner, stop it where it was started"
_NEW_RUN = "save its settings as a preset: press e in 'ppo-tui attach {}'"


def refusal(verb: Verb, state: RunState, info: Head | RunInfo) -> Refusal | None:
    """The reason against a verb, regardless of checkpoints; None without one."""
    elsewhere = info.from_log or state.state == "imported"
    log = Refusal("only its log is known" if info.followed and state.state != "imported" else "it is an imported log")
    if verb in _FROM_PRESET and (elsewhere or not info.resumable):
        return log if elsewhere else Refusal("no preset is recorded")
    if verb is Verb.MERGE and elsewhere:
        return log
    if verb in (Verb.RESUME, Verb.DELETE) and state.going:
        if state.elsewhere is not None:
            return Refusal(
                f"its driver may run in another container or on another machine: {state.elsewhere.words}", _QUIET
            )
        return _LIVE
    if verb is Verb.STOP and state.going and info.followed:
        return Refusal("another program runs it; 'ppo-tui stop' only stops following its log")
    return Refusal(_ENDED) if verb is Verb.STOP and not state.going else None


def require(run: RunDir, verb: Verb, state: RunState, info: Head | RunInfo) -> None:
    """Raises UserError for an action that the run refuses."""
    if (refused := refusal(verb, state, info)) is None:
        return
    hint = f"{refused.action}: 'ppo-tui stop {run.id}'" if refused.action else ""
    if not hint and verb in _FROM_PRESET:
        known = "preset" in info.keys if isinstance(info, Head) else info.preset is not None
        other = "continue it where it was started" if info.from_log else "start a run of its preset with 'ppo-tui run'"
        hint = _NEW_RUN.format(run.id) if known else other
    if not hint and verb is Verb.MERGE:
        hint = "merge its checkpoint where it was trained"
    raise UserError(f"cannot {verb.value} run {run.id}: {refused.reason}", hint)


def completion(step: int, total: int | None) -> str | None:
    """A refusal if the checkpoint leaves no step to train; otherwise None."""
    return f"complete: the checkpoint is at step {step} of {total}" if total is not None and step >= total else None


def refusals(run: RunDir, state: RunState, head: Head, events: Iterable[Event]) -> Refusals:
    """The verbs that the run refuses now. Lists its checkpoints."""
    # with the whole reader, for which no frame waits
    from launcher.runs.watch.checkpoints import checkpoints, saving_words

    reasons: dict[Verb, str] = {}
    kept = checkpoints(run)
    if not state.live:
        reasons[Verb.MUTE] = f"{_ENDED} and is no longer judged"
    if not kept:
        saving = f"; {words}" if (words := saving_words(head)) else ""
        why = "no complete checkpoint" + (" yet" if state.live else "" if saving else " (trainer.save_every)") + saving
        reasons |= dict.fromkeys((Verb.EVALUATE, Verb.MERGE), why)
    if not state.failed and not any(isinstance(each.what, LevelChange) and each.what.alarming for each in events):
        reasons[Verb.TRY] = "no WARN or CRITICAL flag with fixes to try, and no failure to isolate"
    refused = ((verb, refusal(verb, state, head)) for verb in Verb)
    reasons |= {verb: "; ".join(filter(None, why)) for verb, why in refused if why is not None}
    if "preset" not in head.keys:
        reasons[Verb.EDIT] = "its log contains no settings" if head.from_log else "no preset is recorded"
    if state.later:
        reasons |= dict.fromkeys(Verb, state.later)
    return reasons

"""What happened to a run since somebody last looked at it.

The time of the last look is no part of the run: it lies in the cache folder, one file a run.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from launcher.core import paths
from launcher.core.files import read_json, write_json
from launcher.record.events import Event, LevelChange
from launcher.record.state import ENDED, RunState


def last_look(run_id: str) -> float | None:
    """Unix seconds of the last look at a run; None when nobody ever looked."""
    found = read_json(paths.cache_dir() / "seen" / f"{run_id}.json").get("t")
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def looked(run_id: str, t: float | None = None) -> None:
    """Notes that somebody looked at a run at `t`, now by default. Raises OSError."""
    folder = paths.cache_dir() / "seen"
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{run_id}.json", {"schema": 1, "t": time.time() if t is None else t})


@dataclass(frozen=True)
class Missed:
    """What somebody missed. `rises` are the flags that rose, the worst first, the latest of each rule alone."""

    since: float
    rises: tuple[LevelChange, ...]
    end: str | None


def missed(events: Iterable[Event], state: RunState, look: float | None) -> Missed | None:
    """What happened after `look`; None when nothing that matters did.

    A run that nobody ever looked at was started by somebody: then it counts from there. One that was
    imported was over before, so there is nothing to miss.
    """
    since = look if look is not None else state.created
    if state.state == "imported" or since is None:
        return None
    latest: dict[str, LevelChange] = {}
    for event in events:
        match event.what:
            case LevelChange(rule=rule) as change if event.t > since and change.alarming and rule not in state.muted:
                latest.pop(rule, None)
                latest[rule] = change
    rises = sorted(latest.values(), key=lambda change: -change.after)
    end = state.state if state.state in ENDED and _end(state) > since else None
    return Missed(since, tuple(rises), end) if rises or end else None


def _end(state: RunState) -> float:
    """When a run ended; of a lost one, its last sign of life."""
    ended = state.exit.t if state.exit else None
    return max(state.updated or 0.0, state.heartbeat or 0.0) if ended is None else ended

"""What happened to a run since somebody last looked at it.

The time of the last look is no part of the run: it lies in the cache folder, one file a run.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from launcher import paths
from launcher.files import read_json, write_json
from launcher.record.levels import Level
from launcher.record.state import ENDED

_SERIOUS = {str(level): level for level in (Level.NOTICE, Level.WARN, Level.CRITICAL)}


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
class Away:
    """What somebody missed. `rises` are health events, the worst first, the latest of each rule alone."""

    since: float
    rises: tuple[Mapping[str, Any], ...]
    end: str | None


def away(events: Iterable[Mapping[str, Any]], state: Mapping[str, Any], look: float | None) -> Away | None:
    """What happened after `look`; None when nothing that matters did.

    A run that nobody ever looked at was started by somebody: then it counts from there. One that was
    imported was over before, so there is nothing to miss.
    """
    since = look if look is not None else state.get("created")
    if state.get("state") == "imported" or not isinstance(since, (int, float)):
        return None
    muted = {check.get("rule") for check in state.get("checks") or [] if check.get("muted")}
    latest: dict[str, Mapping[str, Any]] = {}
    for event in events:
        t = event.get("t")
        if not isinstance(t, (int, float)) or t <= since:
            continue
        if rose(event) and event["rule"] not in muted:
            latest.pop(event["rule"], None)
            latest[event["rule"]] = event
    rises = sorted(latest.values(), key=lambda event: -_SERIOUS[event["to"]])
    end = str(state["state"]) if state.get("state") in ENDED and _end(state) > since else None
    return Away(float(since), tuple(rises), end) if rises or end else None


def _end(state: Mapping[str, Any]) -> float:
    """When a run ended; of a lost one, its last sign of life."""
    told = (state.get("exit") or {}).get("t")
    times = [told] if told is not None else [state.get("updated"), state.get("heartbeat")]
    return max((float(t) for t in times if isinstance(t, (int, float))), default=0.0)


def rose(event: Mapping[str, Any], least: Level = Level.WARN) -> bool:
    """Whether an event tells that a flag rose, to `least` or higher."""
    if event.get("kind") != "health" or not isinstance(event.get("rule"), str):
        return False
    before, after = (_SERIOUS.get(str(event.get(side)), Level.OK) for side in ("from", "to"))
    return after >= least and after > before

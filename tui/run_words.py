"""How states, phases and levels are said: a sign, a word, and the role they are drawn in."""

from collections.abc import Mapping
from typing import Any

from launcher.format import duration
from launcher.run.state import ALIVE
from tui import glyphs
from tui.drawing.rows import Row, Span

STATES: dict[str, tuple[str, str]] = {  # state -> sign, role
    "queued": (glyphs.WAITING, "dim"),
    "preflight": (glyphs.WAITING, "live"),
    "starting": (glyphs.WAITING, "live"),
    "running": (glyphs.RUNNING, "live"),
    "stopping": (glyphs.STOPPED, "warn"),
    "stopped": (glyphs.STOPPED, "dim"),
    "finished": (glyphs.FINISHED, "ok"),
    "failed": (glyphs.FAILED, "critical"),
    "lost": (glyphs.LOST, "critical"),
    "imported": (glyphs.IMPORTED, "dim"),
}

LEVELS: dict[str, tuple[str, str, str]] = {  # level -> sign, verdict of a run, role
    "N-A": (glyphs.NONE, "not judged", "dim"),
    "WARM": (glyphs.NONE, "warming up", "dim"),
    "OK": (glyphs.OK, "healthy", "ok"),
    "NOTICE": (glyphs.NOTICE, "WATCH", "notice"),
    "WARN": (glyphs.WARN, "WARNING", "warn"),
    "CRITICAL": (glyphs.CRITICAL, "CRITICAL", "critical"),
}
ORDER = {level: index for index, level in enumerate(LEVELS)}

PHASES: dict[str, tuple[str, str]] = {  # phase -> what happens, how long it usually takes
    "config": ("reading the configuration", "10–40s"),
    "ray": ("starting Ray", "5–15s"),
    "data": ("loading the data", "5–40s"),
    "model": ("loading the model", "10–40s"),
    "engine": ("starting the rollout engine", "1–2m"),
    "checkpoint-load": ("loading the checkpoint", "5–60s"),
    "validate-first": ("first validation", "10–120s"),
    "rollout": ("rollout", ""),
    "reward": ("scoring", ""),
    "update": ("updating", ""),
    "validate": ("validating", ""),
    "save": ("saving a checkpoint", ""),
    "final": ("finishing", ""),
}


def is_live(state: Mapping[str, Any]) -> bool:
    """Whether the run has not ended: it may be stopped, and its figures still move."""
    return state.get("state", "queued") in ALIVE


def state_words(state: Mapping[str, Any]) -> Row:
    """`● running · rollout 96/128`."""
    name = str(state.get("state", "queued"))
    sign, role = STATES.get(name, (glyphs.LOST, "dim"))
    if state.get("stalled") and name == "running":
        sign, role, name = glyphs.WARN, "warn", "stalled"
    outcome = state.get("outcome")
    word = f"{name} · {outcome}" if name == "imported" and outcome else name
    if name in ("running", "stalled") and (doing := _doing(state)):
        return [(f"{sign} {word}", role), (f" · {doing}", "dim")]
    return [(f"{sign} {word}", role)]


def _doing(state: Mapping[str, Any]) -> str:
    words = PHASES.get(str(state.get("phase")), ("", ""))[0]
    rollout = state.get("rollout")
    if isinstance(rollout, dict) and rollout.get("total"):
        return f"{words or 'rollout'} {rollout.get('finished', 0)}/{rollout['total']}"
    return words


def verdict_words(state: Mapping[str, Any]) -> Row:
    """`▲ WARNING KL-4 +1`: the verdict, the worst flag, how many more are on."""
    level = str(state.get("verdict") or "N-A")
    sign, word, role = LEVELS.get(level, LEVELS["N-A"])
    flags = state.get("flags") or []
    row: Row = [(f"{sign} {word}", role)]
    if flags:
        row.append((f" {flags[0]}", role))
    if len(flags) > 1:
        row.append((f" +{len(flags) - 1}", "dim"))
    return row


def level_sign(level: str) -> Span:
    """The sign of a level in its role."""
    sign, _, role = LEVELS.get(level, LEVELS["N-A"])
    return sign, role


def uptime(state: Mapping[str, Any], now: float | None) -> str:
    """`up 52m`, `ran 3h 04m`; in whole minutes while the run lives, so that it seldom repaints.

    `now` is the latest time the supervisor wrote down, not this machine's clock: a run that nobody keeps
    up any more does not seem to go on.
    """
    started = state.get("started")
    if not isinstance(started, (int, float)) or now is None or now < started:
        return ""
    seconds = now - started
    if not is_live(state):
        return f"ran {duration(seconds)}"
    return f"up {duration(seconds - seconds % 60).removesuffix(' 00s')}" if seconds >= 60 else "up <1m"


def phase_sentence(state: Mapping[str, Any], now: float | None) -> str:
    """`loading the model, 10s, usually 10–40s`: what a run that has no step yet is doing, to five seconds."""
    words, usual = PHASES.get(str(state.get("phase")), ("starting", ""))
    since = state.get("phase_since")
    parts = [words]
    if isinstance(since, (int, float)) and now is not None and now - since >= 5:
        parts.append(duration((now - since) // 5 * 5))
    if usual:
        parts.append(f"usually {usual}")
    return ", ".join(parts)


def closing_sentence(state: Mapping[str, Any]) -> tuple[str, str] | None:
    """Role and sentence of the banner of a run that has ended; None while it lives."""
    name = state.get("state", "queued")
    error = state.get("error")
    step, total = state.get("step"), state.get("total")
    at = (
        f" at step {step}" + (f" of {total}" if total else "")
        if step is not None
        else " before its first step"
    )
    if name == "failed":
        return "critical", f"failed{at}: {error}" if error else f"failed{at}; l shows the log"
    if name == "lost":
        alive = "veRL still trains on: x stops it" if state.get("driver_alive") else "veRL is gone too"
        return "critical", f"lost{at}: the supervisor ended without a record; {alive}"
    if name == "stopped":
        by = (state.get("exit") or {}).get("requested_by")
        return "dim", f"stopped{at}" + (f" by {by}" if by else "") + (f": {error}" if error else "")
    if name == "finished":
        return "ok", f"finished{at}"
    if name == "imported":
        return "dim", f"imported: a run made elsewhere{at}" + (f"; {error}" if error else "")
    return None

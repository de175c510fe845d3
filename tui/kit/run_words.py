"""The words for states, phases and levels: a sign, a word, and a role for the color."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from rich.cells import cell_len

from launcher.core.format import duration
from launcher.core.text import clean
from launcher.record.check import Check
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.state import ENDED, RunState
from launcher.runs.watch.check_words import TOO_SHORT, phase_word, shown, state_word
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, Span, put

STATES = glyphs.signs("queue") | glyphs.signs("state")
_ENDS = {name: role for name, (_, role) in STATES.items() if name in ENDED}
LEVELS = {level.words: (level.sign, "dim" if level < Level.OK else level.name.lower()) for level in Level}
"""Sign and role of a level by its word."""
_SLOW = 10.0  # seconds from which a phase is worth a clock, which repaints every five


def state_words(state: RunState, now: float | None = None) -> Row:
    """`● running · rollout 96/128`; with `now` also the duration, `rollout 20s of ~31s`."""
    name = state.state
    ended = state.outcome if state.outcome != "running" else None  # a log that breaks off shows no end
    sign, role = STATES.get(ended or name, (glyphs.LOST, "dim"))
    if state.stalled and name in ("starting", "running"):
        sign, role, name = glyphs.WARN, "warn", "hangs"
    word = f"{ended or 'unfinished'} · imported" if name == "imported" else name
    if name in ("running", "hangs") and (doing := _doing(state, now)):
        return [(f"{sign} {word}", role), (f" · {doing}", "dim")]
    return [(f"{sign} {word}", role)]


def _doing(state: RunState, now: float | None) -> str:
    phase = phase_word(state.phase or "")
    if state.rollout is not None and state.rollout.total and phase in ("", "rollout", "validate"):
        phase = f"{phase or 'rollout'} {state.rollout.finished}/{state.rollout.total}"
    since, usual = state.phase_since, state.phase_usual
    if now is None or since is None or not usual or usual < _SLOW:
        return phase
    spent = max(0, now - since) // 5 * 5
    return f"{phase} {duration(spent)}{' of ~' if spent <= usual else ', usually '}{duration(usual)}"


def short_symptom(check: Check, room: int) -> str:
    """What a check found, in `room` cells: without the name before it, then without the last of its `; ` clauses."""
    text = clean(check.symptom)
    if cell_len(text) > room:
        text = clean(check.message)
    while cell_len(text) > room and (shorter := text.rpartition("; ")[0]):
        text = shorter
    return text


def reference(topic: str, column: int = 0) -> list[Row]:
    """The selection's reference topic as the last row of a page; a label starts at `column`."""
    label: Row = [(" Reference", "dim")] if column else []
    return [put(label, column, [(f" ppo-tui help {clean(topic)}"[column > 0 :], "dim")], 0)]


def verdict_word(state: str, verdict: str | None) -> tuple[str, str, str]:
    """Sign, word and role of a run's verdict."""
    word = shown(state, verdict)
    if word not in (*LEVELS, TOO_SHORT):
        word = Level.N_A.words
    sign, role = LEVELS.get(word, LEVELS[Level.N_A.words])
    return sign, word, role


def verdict_words(state: RunState) -> Row:
    """`▲ WARN KL-4 +1`: the verdict, the worst flag, the number of further flags."""
    sign, word, role = verdict_word(state.state, state.verdict)
    flags = state.flags
    row: Row = [(f"{sign} {word}", role)]
    if flags:
        row.append((f" {flags[0]}", role))
    if len(flags) > 1:
        row.append((f" +{len(flags) - 1}", "dim"))
    return row


def level_sign(level: Level) -> Span:
    """A level's sign in its role."""
    return LEVELS[level.words]


def uptime(state: RunState, now: float | None) -> str:
    """`up 52m`, `ran 3h 04m`; in whole minutes during a run, so that it seldom repaints.

    An ended run shows the time of all its attempts, as in the list of runs. `now` is the latest time recorded by the
    supervisor, not this machine's clock, so that a run without a supervisor does not seem to continue.
    """
    if not state.live and state.seconds is not None:
        return f"ran {duration(state.seconds)}"
    last = now if state.live else state.ended or (state.exit and state.exit.t) or now
    if state.started is None or last is None or last < state.started:
        return ""
    seconds = last - state.started
    if not state.live:  # an imported log may have no times
        return f"ran {duration(seconds)}" if seconds else ""
    return f"up {duration(seconds - seconds % 60).removesuffix(' 00s')}" if seconds >= 60 else "up <1m"


def by_whom(by: str | None) -> str:
    """The requester: `from the screen`, `by user`, `by stop_on: NUM-1 is CRITICAL`."""
    return "from the screen" if by == "screen" else f"by {by}"


def notice(state: RunState, *, place: bool = True) -> tuple[str, str] | None:
    """Role and sentence of the banner: why a run hangs or how it ended, and whether its files are damaged.

    None while the run continues. Without `place` it omits state and step, which the dashboard's head has.
    """
    said = _end_or_stall(state, place)
    if not (marks := [*filter(None, [damage_words(state), state.later])]):
        return said
    return (said[0] if said and said[0] == "critical" else "warn", "; ".join([*([said[1]] if said else []), *marks]))


@lru_cache(1024)
def lineage(run: Path) -> str:
    """The origin of a run in words of `launcher.runs.watch.run_settings`; run.yaml never changes: it is read once."""
    from launcher.runs.watch.run_settings import lineage as words  # imports YAML, which the first frame does not need

    return words(RunInfo.read(RunDir(run).run_yaml).after, glyphs.ARROW)


def damage_words(state: RunState) -> str:
    """`damaged: state.json: step (and 2 more)`; empty for an undamaged run."""
    more = f" (and {len(state.damaged) - 1} more)" if len(state.damaged) > 1 else ""
    return f"damaged: {state.damaged[0]}{more}" if state.damaged else ""


def _end_or_stall(state: RunState, place: bool) -> tuple[str, str] | None:
    name, step, total = state.state, state.step, state.total
    if state.live:
        if minutes := state.silent_minutes:
            return "warn", f"no update from the supervisor for {minutes} min; the values shown are outdated"
        return ("warn", state.stall) if state.stall else None
    if name not in _ENDS:
        return None
    at = f" at {state.numbering.unit} {step}" + (f" of {total}" if total else "")
    at = at if step is not None else " before the first step"
    word = state_word(name, state.outcome)
    said = ": ".join(filter(None, [word + at if place else "", _reason(state)]))
    return (_ENDS[name], said) if said else None


def _reason(state: RunState) -> str:
    """Why the run ended; empty if unknown."""
    if state.state == "failed":
        return state.error or "press l for the log"
    if state.state == "lost":
        alive = "veRL is still training; press x to stop it" if state.driver_alive else "veRL has also ended"
        if state.elsewhere is not None:
            alive = f"veRL {'may train on' if state.driver_alive else 'has ended'} elsewhere: {state.elsewhere.words}"
        return state.error or f"the supervisor has ended; {alive}"
    if state.state == "ended":
        from launcher.runs.watch.history import log_end  # reads the catalogue of rules

        return log_end(state)
    by = state.exit and state.exit.requested_by if state.state == "stopped" else None
    return ": ".join(filter(None, [f"requested {by_whom(by)}" if by else "", state.error]))


def summary(checks: Sequence[Check]) -> str:
    """`26 more OK · 3 warming up · 2 not judged`, for the hidden checks."""
    counts = Counter("muted" if check.muted else str(check.level) for check in checks)
    words = {
        "CRITICAL": "more CRITICAL",
        "WARN": "more WARN",
        "NOTICE": "more NOTICE",
        "OK": "more OK",
        "WARM": "warming up",
        "N-A": "not judged",
        "muted": "muted",
    }
    return " · ".join(f"{counts[level]} {said}" for level, said in words.items() if counts[level])

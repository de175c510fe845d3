"""What the checklist hands out: changes, rows, the verdict in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.record.levels import Level

WARM_STEPS = 20  # before that a run without flags is still warming up
_BEFORE_OTHERS = ("NUM", "ERR", "LR", "KL", "ENT", "SIG", "REW", "LEN")  # root before symptom
_TELLING = ("KL-4", "KL-1", "ENT-1", "TRUNC-1", "REW-1")  # worth reading even when all is well
_RUNNING = {
    Level.CRITICAL: "CRITICAL",
    Level.WARN: "WARNING",
    Level.NOTICE: "WATCH",
    Level.OK: "HEALTHY",
    Level.WARM: "WARMING UP",
}
TOO_SHORT = "TOO SHORT"  # stands for WARM when a run has ended
_BROKEN_OFF = {"stopped", "lost", "imported"}  # no more steps come
_FINISHED = {Level.CRITICAL: "FINISHED with critical flags", Level.WARN: "FINISHED with warnings"}


@dataclass(frozen=True, slots=True)
class Change:
    """A rule went from one level to another at a step."""

    step: int
    rule: str
    before: Level
    after: Level
    message: str

    @property
    def notable(self) -> bool:
        """Whether a flag rose, fell or cleared; the rest is rules that began to judge."""
        return max(self.before, self.after) > Level.OK

    def to_json(self) -> dict[str, Any]:
        """The change as `health --json` and events.jsonl write it."""
        return {
            "step": self.step,
            "rule": self.rule,
            "from": str(self.before),
            "to": str(self.after),
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the checklist.

    `since` is the step at which the present flag came on. After a flag has cleared, `cleared` is the step
    of that and `was` the worst level it had.
    """

    rule: str
    question: str
    level: Level
    message: str
    since: int | None
    cleared: int | None
    was: Level | None
    family: str
    muted: bool

    def to_json(self) -> dict[str, Any]:
        """The row as state.json keeps it."""
        return {
            "rule": self.rule,
            "question": self.question,
            "level": str(self.level),
            "message": self.message,
            "since": self.since,
            "cleared": self.cleared,
            "was": None if self.was is None else str(self.was),
            "family": self.family,
            "muted": self.muted,
        }


def sort(rows: Iterable[Row]) -> list[Row]:
    """Worst first; among equals the one that came on first, then likely roots before their symptoms.

    Where nothing is on, those come first that were on earlier, the latest ahead; then the most telling ones.
    """

    def place(row: Row) -> tuple[bool, int, int, int, int]:
        family = row.rule.partition("-")[0]
        rank = _BEFORE_OTHERS.index(family) if family in _BEFORE_OTHERS else len(_BEFORE_OTHERS)
        if row.level > Level.OK:
            return row.muted, -row.level, row.since or 0, 0, rank
        cleared = -row.cleared if row.cleared is not None else 1
        telling = _TELLING.index(row.rule) if row.rule in _TELLING else len(_TELLING)
        return row.muted, -row.level, cleared, telling, rank

    return sorted(rows, key=place)


def verdict(rows: Sequence[Row], steps: int) -> Level:
    """The highest level that is on, muted rows aside; else WARM before the 20th step and OK from then on."""
    highest = max((row.level for row in rows if not row.muted), default=Level.OK)
    if highest > Level.OK:
        return highest
    return Level.WARM if steps < WARM_STEPS else Level.OK


def sentence(rows: Sequence[Row], steps: int, outcome: str) -> str:
    """The verdict in words, always with how many rules it stands on.

    `outcome` is the run's state: `finished` and `failed` have words of their own, other ends count as
    running, but that nothing warms up any more.
    """
    level = verdict(rows, steps)
    if outcome == "failed":
        word = "FAILED"
    elif outcome == "finished":
        word = _FINISHED.get(level, "FINISHED")
    elif outcome in _BROKEN_OFF and level == Level.WARM:
        word = TOO_SHORT
    else:
        word = _RUNNING[level]
    unknown = sum(row.level == Level.N_A for row in rows)
    warming = sum(row.level == Level.WARM for row in rows)
    muted = sum(row.muted for row in rows)
    parts = [f"{len(rows) - unknown - warming} of {len(rows)} rules judged"]
    parts += [f"{unknown} N-A"] if unknown else []
    parts += [f"{warming} warming up"] if warming else []
    parts += [f"{muted} muted"] if muted else []
    return f"{word} — {', '.join(parts)}"

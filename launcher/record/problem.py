"""Problems of runs and presets in one form: findings, flags, failures, hangs and slow steps become it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from launcher.record.fix import Offer
from launcher.record.levels import Level

Kind = Literal["finding", "flag", "failure", "hang", "slow step"]
FIX = "fix"
"""The label of a fix in commands, reports and on the screen."""
_WORDS = {"failure": "failed", "hang": "hang", "slow step": "slow"}
_FINDING = {Level.CRITICAL: "error", Level.WARN: "warning", Level.NOTICE: "info"}


class Evidence(NamedTuple):
    """The evidence of a problem; `line`: its number in the console log, None if not in the log."""

    text: str
    line: int | None = None
    name: str = "seen"
    """Its kind, if not a log line."""

    @property
    def label(self) -> str:
        """`line 212`, or the name of evidence outside of the log."""
        return self.name if self.line is None else f"line {self.line}"


class Rival(NamedTuple):
    """A possible cause of a symptom: its supporting and excluding evidence, and what would decide."""

    cause: str
    """An id of the catalog, or a row of `launcher/console/rivals.toml`."""
    title: str
    supports: tuple[Evidence, ...] = ()
    excluded_by: tuple[Evidence, ...] = ()
    unknown: tuple[str, ...] = ()
    """Evidence for neither side, because it is missing from the log."""
    decides: str = ""
    """An inspection or a short run."""

    @property
    def row(self) -> tuple[str, str]:
        """Label and text of one line."""
        if self.excluded_by:
            return "not", f"{self.title}: {self.excluded_by[0].text}"
        parts = [f"because {', '.join(each.text for each in self.supports)}"] if self.supports else []
        parts += [f"not known: {', '.join(self.unknown)}"] if self.unknown else []
        parts += [self.decides] if self.decides else []
        return "or", "; ".join((self.title, *parts))

    def to_json(self) -> dict[str, Any]:
        """Its fields in JSON form."""
        shown = {name: [each._asdict() for each in getattr(self, name)] for name in ("supports", "excluded_by")}
        return {**self._asdict(), **shown, "unknown": list(self.unknown)}


@dataclass(frozen=True)
class Problem:
    """`id`: the finding, rule, cause, hang or advice. `evidence`: the decisive one first.

    `offers`: fixes in order. `command`: shows more.
    """

    kind: Kind
    id: str
    level: Level
    title: str = ""
    message: str = ""
    meaning: str = ""
    evidence: tuple[Evidence, ...] = ()
    offers: tuple[Offer, ...] = ()
    command: str | None = None
    rivals: tuple[Rival, ...] = ()
    """The possible causes, the leading one first, then excluded ones."""

    @property
    def word(self) -> str:
        """The level for people: `error`, `WARN`, `failed`."""
        return _FINDING[self.level] if self.kind == "finding" else _WORDS.get(self.kind, self.level.words)

    @property
    def topic(self) -> str | None:
        """The topic of `ppo-tui help`; None for an unknown cause, and for advice about speed."""
        return None if self.id == "unknown" or self.kind == "slow step" else self.id

    @property
    def what(self) -> str:
        """`Unrewarded drift: KL rose by 0.10`."""
        return ": ".join(filter(None, (self.title, self.message)))

    @property
    def head(self) -> str:
        """`WARN KL-4: Unrewarded drift: KL rose by 0.10`; only the title for a run without a problem."""
        return f"{self.word} {self.id}: {self.what}" if self.level > Level.OK else self.what

    @property
    def shown(self) -> tuple[Evidence, ...]:
        """The evidence, then one row per other cause, possible or excluded."""
        return (*self.evidence, *(Evidence(text, name=label) for label, text in (each.row for each in self.rivals)))

    def rows(self) -> Iterator[tuple[str, str]]:
        """The labeled rows below the head: evidence, fixes in order, the command that shows more."""
        yield from ((each.label, each.text) for each in self.shown)
        yield from ((FIX, offer.text) for offer in self.offers)
        if self.command:
            yield "more", self.command

    def lines(self) -> Iterator[str]:
        """The rows as lines: `fix: lower actor.lr from 1e-5 to 2e-6`."""
        return (f"{label}: {text}" for label, text in self.rows())

    def first(self, offer: Offer | None) -> "Problem":
        """The problem with this fix first; removes another with the same settings."""
        if offer is None:
            return self
        others = (each for each in self.offers if not each.edits or each.edits != offer.edits)
        return replace(self, offers=(offer, *others))

"""What is wrong with a run or a preset, in one form: findings, flags, failures, hangs and slow steps become it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from launcher.record.fix import Offer
from launcher.record.levels import Level

Kind = Literal["finding", "flag", "failure", "hang", "slow step"]
FIX = "fix"
"""The label of a fix, in commands, in reports and on the screen."""
_WORDS = {"failure": "failed", "hang": "hang", "slow step": "slow"}
_FINDING = {Level.CRITICAL: "error", Level.WARN: "warning", Level.NOTICE: "info"}


class Evidence(NamedTuple):
    """What shows a problem; `line` is that of the console log, None where it is not in the log."""

    text: str
    line: int | None = None
    name: str = "seen"
    """What it is, where it is not a line of the log."""

    @property
    def label(self) -> str:
        """`line 212`, or the name of what is not in the log."""
        return self.name if self.line is None else f"line {self.line}"


class Rival(NamedTuple):
    """One of the causes that a symptom can have: what supports and what excludes it, and what would decide."""

    cause: str
    """An id of the catalog, or of a row of `launcher/console/rivals.toml`."""
    title: str
    supports: tuple[Evidence, ...] = ()
    excluded_by: tuple[Evidence, ...] = ()
    unknown: tuple[str, ...] = ()
    """Evidence that neither supports nor excludes it, because the log lacks it."""
    decides: str = ""
    """A look or a short run."""

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
        """Its fields as JSON has them."""
        shown = {name: [each._asdict() for each in getattr(self, name)] for name in ("supports", "excluded_by")}
        return {**self._asdict(), **shown, "unknown": list(self.unknown)}


@dataclass(frozen=True)
class Problem:
    """`id` names the finding, rule, cause, hang or advice. `evidence` has the decisive one first.

    `offers` are the fixes in their order, `command` would show more.
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
    """The causes that are possible, the leading one first, then those that are excluded."""

    @property
    def word(self) -> str:
        """The level as people see it: `error`, `WARN`, `failed`."""
        return _FINDING[self.level] if self.kind == "finding" else _WORDS.get(self.kind, self.level.words)

    @property
    def topic(self) -> str | None:
        """The topic of `ppo-tui help`; None for an unknown cause and for advice about speed."""
        return None if self.id == "unknown" or self.kind == "slow step" else self.id

    @property
    def what(self) -> str:
        """`Unrewarded drift: KL rose by 0.10`."""
        return ": ".join(filter(None, (self.title, self.message)))

    @property
    def head(self) -> str:
        """`WARN KL-4: Unrewarded drift: KL rose by 0.10`; the title alone of a run that has no problem."""
        return f"{self.word} {self.id}: {self.what}" if self.level > Level.OK else self.what

    @property
    def shown(self) -> tuple[Evidence, ...]:
        """The evidence, then a row for each other cause, possible or excluded."""
        return (*self.evidence, *(Evidence(text, name=label) for label, text in (each.row for each in self.rivals)))

    def rows(self) -> Iterator[tuple[str, str]]:
        """The rows below the head, each with its label: evidence, fixes in order, what would show more."""
        yield from ((each.label, each.text) for each in self.shown)
        yield from ((FIX, offer.text) for offer in self.offers)
        if self.command:
            yield "more", self.command

    def lines(self) -> Iterator[str]:
        """The rows as lines: `fix: lower actor.lr from 1e-5 to 2e-6`."""
        return (f"{label}: {text}" for label, text in self.rows())

    def first(self, offer: Offer | None) -> "Problem":
        """The problem with this fix before the others; one with the same settings is not listed twice."""
        if offer is None:
            return self
        others = (each for each in self.offers if not each.edits or each.edits != offer.edits)
        return replace(self, offers=(offer, *others))

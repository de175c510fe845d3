"""The result of a diagnosis: why a run ended."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from launcher.console.tracebacks import Quote
from launcher.record.fix import Fix, Offer
from launcher.record.levels import Level
from launcher.record.problem import Evidence, Problem, Rival

LONGEST = 400  # characters of one line of evidence
UNKNOWN = "unknown"
"""The cause of a failure that no entry of the catalog explains."""
_COMMAND = re.compile(r"(`ppo-tui \w+ )RUN\b")
_LOGGED = re.compile(r"^[A-Z]+ \d\d-\d\d [\d:]{8} \[[^\]]{1,80}\] ")  # the head of a line of vLLM


Confidence = Literal["exact", "likely", "unknown"]
"""exact: an entry of the catalog; likely: the component, and the setting, package or file at fault."""


@dataclass(frozen=True)
class Setting:
    """A setting of the run that turns the failing code on, or that the failing component depends on."""

    key: str
    value: str
    """As the log has it; empty where the log does not have it."""
    needed: str
    """What it must be for this code to run: `KEY=True`, `KEY > 1`."""
    decides: bool
    """Whether the code runs only with it; otherwise its component depends on it."""
    without: str = ""
    """A value with which the code does not run; empty if there is none that leaves the rest as it is."""

    @property
    def rival(self) -> Rival:
        """The setting as a cause."""
        now = f"{self.key}={self.value}" if self.value else self.needed
        because = f"it runs because {now}" if self.decides else f"it depends on {now}"
        decides = f"a short run with {self.key}={self.without}" if self.without else ""
        return Rival(self.key, f"{now} and this code do not fit", (Evidence(because, name="setting"),), decides=decides)


@dataclass(frozen=True)
class Package:
    """A package whose version matters, and what it fits."""

    name: str
    version: str
    fits: str = ""
    """The range that this veRL asks for, or the versions of veRL that ask for this version; empty when unknown."""


@dataclass(frozen=True)
class Place:
    """Where a failure happened that no entry of the catalog explains."""

    component: str = ""
    file: str = ""
    setting: Setting | None = None
    packages: tuple[Package, ...] = ()
    search: str = ""

    @property
    def rivals(self) -> tuple[Rival, ...]:
        """The setting as a cause, if one is known."""
        return (self.setting.rival,) if self.setting is not None else ()

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """Label and text of what is known."""
        found = (f"{each.name} {each.version}{each.fits and f' ({each.fits})'}" for each in self.packages)
        where = f"{self.component}{self.file and f', {self.file}'}" if self.component else self.file
        rows = (("where", where), ("versions", ", ".join(found)), ("search", self.search))
        return tuple((label, text) for label, text in rows if text)


@dataclass(frozen=True)
class Diagnosis:
    """Why a run ended. `cause` is an id of the catalog, or unknown, stopped, finished, running."""

    cause: str
    title: str
    meaning: str
    evidence: tuple[Quote, ...] = ()
    """The decisive line first."""
    fixes: tuple[Fix, ...] = ()
    exit_code: int | None = None
    """As a shell shows it (134, not -6); None when unknown."""
    confidence: Confidence = "exact"
    place: Place | None = None
    rivals: tuple[Rival, ...] = ()
    """The causes that the symptom can have, the leading one first, then those that are excluded."""
    senders: tuple[tuple[str, str], ...] = ()
    """After a SIGKILL, or the death of a process: what may have sent it, and what excludes that."""
    lost: bool = False
    """Whether neither the log nor the supervisor shows how the run ended."""
    settings: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """veRL key -> value as text, as far as the log has them."""
    versions: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Package -> version, as the run recorded it or the log shows it."""

    @property
    def failed(self) -> bool:
        """Whether something went wrong; a run that finished, was stopped or still runs did not fail."""
        return self.cause not in ("finished", "stopped", "running")

    def problem(self, offers: Sequence[Offer]) -> Problem:
        """The cause in the form of all problems, with the fixes that the run can use."""
        level = Level.CRITICAL if self.failed else Level.OK
        place = (Evidence(text, name=name) for name, text in (*(self.place.rows if self.place else ()), *self.senders))
        first = self.rivals[0].supports if self.rivals else ()
        shown = (Evidence(each.text, each.line) for each in self.evidence)
        evidence = (*shown, *(each for each in first if each.line is None), *place)
        rivals = self.rivals[1:] if first else self.rivals
        return Problem(
            "failure", self.cause, level, self.title, "", self.meaning, evidence, tuple(offers), rivals=rivals
        )

    def of_run(self, run: str) -> "Diagnosis":
        """Inserts the run's name in the commands of the fixes, ready to be pasted."""

        def named(text: str) -> str:
            return _COMMAND.sub(rf"\g<1>{run}", text)

        return replace(self, fixes=tuple(fix.filled(named) for fix in self.fixes))

    def to_json(self) -> dict[str, Any]:
        return {
            "cause": self.cause,
            "title": self.title,
            "meaning": self.meaning,
            "evidence": [{"line": item.line, "text": item.text} for item in self.evidence],
            "fixes": [fix.text for fix in self.fixes],
            "fix_records": [asdict(fix) | fix.to_json() for fix in self.fixes],
            "exit_code": self.exit_code,
            "confidence": self.confidence,
            "rivals": [rival.to_json() for rival in self.rivals],
            "place": asdict(self.place) if self.place else None,
            "senders": dict(self.senders),
        }


def shorten(quotes: Iterable[Quote | None]) -> tuple[Quote, ...]:
    """Each line once, cut, without vLLM's prefix, in the given order; None is left out."""
    kept = {quote.line: _LOGGED.sub("", quote.text, count=1).strip() for quote in quotes if quote is not None}
    return tuple(Quote(line, _cut(text)) for line, text in kept.items())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"

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
"""The cause of a failure without a catalog entry."""
_COMMAND = re.compile(r"(`ppo-tui \w+ )RUN\b")
_LOGGED = re.compile(r"^[A-Z]+ \d\d-\d\d [\d:]{8} \[[^\]]{1,80}\] ")  # the head of a line of vLLM


Confidence = Literal["exact", "likely", "unknown"]
"""exact: an entry of the catalog; likely: the component, and the setting, package or file at fault."""


@dataclass(frozen=True)
class Setting:
    """A setting that enables the failing code, or that the failing component depends on."""

    key: str
    value: str
    """The value in the log; empty if missing."""
    needed: str
    """The required value for this code to run: `KEY=True`, `KEY > 1`."""
    decides: bool
    """Whether the code needs it; otherwise only its component depends on it."""
    without: str = ""
    """A value that disables the code; empty if each also changes other things."""

    @property
    def rival(self) -> Rival:
        """The setting as a cause."""
        now = f"{self.key}={self.value}" if self.value else self.needed
        because = f"it runs because {now}" if self.decides else f"it depends on {now}"
        decides = f"a short run with {self.key}={self.without}" if self.without else ""
        return Rival(self.key, f"{now} does not fit this code", (Evidence(because, name="setting"),), decides=decides)


@dataclass(frozen=True)
class Package:
    """A package with a decisive version, and its required range."""

    name: str
    version: str
    fits: str = ""
    """This veRL's required range, or the veRL versions that require this version; empty if unknown."""


@dataclass(frozen=True)
class Place:
    """The place of a failure without a catalog entry."""

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
        """Label and text of each known fact."""
        found = (f"{each.name} {each.version}{each.fits and f' ({each.fits})'}" for each in self.packages)
        where = f"{self.component}{self.file and f', {self.file}'}" if self.component else self.file
        rows = (("where", where), ("versions", ", ".join(found)), ("search", self.search))
        return tuple((label, text) for label, text in rows if text)


@dataclass(frozen=True)
class Diagnosis:
    """Why a run ended. `cause`: an id of the catalog, or unknown, stopped, finished, running."""

    cause: str
    title: str
    meaning: str
    evidence: tuple[Quote, ...] = ()
    """The decisive line first."""
    fixes: tuple[Fix, ...] = ()
    exit_code: int | None = None
    """As in a shell (134, not -6); None if unknown."""
    confidence: Confidence = "exact"
    place: Place | None = None
    rivals: tuple[Rival, ...] = ()
    """Possible causes of the symptom, the leading one first, excluded ones last."""
    senders: tuple[tuple[str, str], ...] = ()
    """After a SIGKILL or the death of a process: its possible senders, and evidence against each."""
    lost: bool = False
    """Whether neither log nor supervisor shows how the run ended."""
    settings: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """veRL key -> value as text, as far as logged."""
    versions: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Package -> version, as recorded or logged."""

    @property
    def failed(self) -> bool:
        """Whether the run failed; a run that finished, was stopped or still runs did not."""
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
        """Inserts the run's name in the commands of the fixes, for copying."""

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
    """Each line once, shortened, without vLLM's prefix, in the given order, without None."""
    kept = {quote.line: _LOGGED.sub("", quote.text, count=1).strip() for quote in quotes if quote is not None}
    return tuple(Quote(line, _cut(text)) for line, text in kept.items())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"

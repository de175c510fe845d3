"""The result of a diagnosis: why a run ended."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from launcher.console.tracebacks import Quote
from launcher.record.fix import Fix, Offer
from launcher.record.levels import Level
from launcher.record.problem import Evidence, Problem

LONGEST = 400  # characters of one line of evidence
UNKNOWN = "unknown"
"""The cause of a failure that no entry of the catalog explains."""
_COMMAND = re.compile(r"(`ppo-tui \w+ )RUN\b")
_LOGGED = re.compile(r"^[A-Z]+ \d\d-\d\d [\d:]{8} \[[^\]]{1,80}\] ")  # the head of a line of vLLM


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

    @property
    def failed(self) -> bool:
        """Whether something went wrong; a run that finished, was stopped or still runs did not fail."""
        return self.cause not in ("finished", "stopped", "running")

    @property
    def known_cause(self) -> str | None:
        """The entry of the catalog, if there is one."""
        return self.cause if self.failed and self.cause != UNKNOWN else None

    def problem(self, offers: Sequence[Offer]) -> Problem:
        """The cause in the form of all problems, with the fixes that the run can use."""
        level = Level.CRITICAL if self.failed else Level.OK
        evidence = tuple(Evidence(each.text, each.line) for each in self.evidence)
        return Problem("failure", self.cause, level, self.title, "", self.meaning, evidence, tuple(offers))

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
        }


def shorten(quotes: Iterable[Quote | None]) -> tuple[Quote, ...]:
    """Each line once, cut, without vLLM's prefix, in the given order; None is left out."""
    kept = {quote.line: _LOGGED.sub("", quote.text, count=1).strip() for quote in quotes if quote is not None}
    return tuple(Quote(line, _cut(text)) for line, text in kept.items())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"

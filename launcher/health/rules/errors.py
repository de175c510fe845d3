"""ERR-1: errors in the log."""

import math
import re
from collections.abc import Sequence

from launcher.core.tables import tables_of
from launcher.core.text import clean
from launcher.health.catalogue import shared_advice
from launcher.health.clauses import POSITIVE, Clause, Measure, Values
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup
from launcher.health.state import Reading
from launcher.record.fix import Fix
from launcher.record.levels import CRITICAL, NOTICE, WARN, Level

_PREFIX = re.compile(r"(?:\([^()]*\bpid=\d+[^()]*\)\s*)+")
_LOGGED = re.compile(r"[A-Z]+ \d{2}-\d{2} [\d:]{8} \[[^\]]{1,80}\] ")  # vLLM's line prefix
_JOB = "Error executing job"
_TABLES = tables_of(__file__, "errors.toml")
_EXCEPTION, _HEADING = (re.compile(_TABLES[name]) for name in ("exception", "heading"))
_LEVELS = [
    (level, re.compile("|".join(_TABLES[name]["at_start"])), re.compile("|".join(_TABLES[name]["anywhere"])))
    for level, name in ((CRITICAL, "fatal"), (WARN, "suspect"))
]
_KNOWN = [(name, re.compile(pattern)) for name, pattern in _TABLES["advice"].items()]
_LAST_WORDS = "Final validation metrics"  # last output of veRL's trainers
_LONGEST = 200  # characters of a message
_SINCE = (
    (WARN, Measure("steps since a suspicious line", span=POSITIVE)),
    (CRITICAL, Measure("steps since an error", span=POSITIVE)),
)


class LogErrors(Rule):
    """Flags log lines with an error. While the run continues, the level falls step by step."""

    id = "ERR-1"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._steps_since: dict[Level, int] = {}
        self._headed = False  # the exception of a heading is still to come
        self._message = ""
        self._cause: str | None = None
        self._trained = False  # after its end, errors are not training errors
        self._last = setup.config.total_steps or math.inf

    def fixes(self) -> Sequence[Fix]:
        return shared_advice(self._cause) if self._cause else super().fixes()

    def log_line(self, text: str, line: int) -> Reading | None:
        if self._trained or _LAST_WORDS in text:
            self._trained = True
            return None
        text = clean(text)
        for before in (_PREFIX, _LOGGED):
            if found := before.match(text):
                text = text[found.end() :]
        heading = _HEADING.match(text) is not None
        exception = not heading and _EXCEPTION.match(text) is not None
        level = WARN if heading else _level(text)
        if exception and self._headed and not text.startswith("KeyboardInterrupt"):
            level = CRITICAL  # now, with a description of the event
        self._headed = heading or (self._headed and not exception)
        goes_on = 0 in self._steps_since.values()  # a block that began since the last step
        if level is not None:
            self._steps_since[level] = 0
        elif not (exception and goes_on):
            return None
        if exception or not goes_on:  # the last exception of a block is the innermost; headings give way
            said = _JOB if text.startswith(_JOB) else text[:_LONGEST].strip()  # the overrides are irrelevant
            self._message = f"{said} (line {line})"
        cause = next((name for name, pattern in _KNOWN if pattern.search(text)), None)
        self._cause = cause or (self._cause if goes_on else None)
        return self.compare(self._message, self._since)

    def judge(self, frame: Frame) -> Reading:
        self._headed = False
        self._trained = frame.step >= self._last
        for level in self._steps_since:
            self._steps_since[level] += 1
        reading = self.compare(self._message, self._since)
        if not reading.raw:
            reading.message = "no errors in the last steps"
        return reading

    def _since(self, limits: Values) -> Sequence[Clause]:
        """The level of the last error, lowered per step since."""
        after, until = limits["notice.after"], limits["notice.until"]
        return [
            (self._steps_since[level], [(NOTICE, "<", until), (level, "<", min(after, until))], measure)
            for level, measure in _SINCE
            if level in self._steps_since
        ]


def _level(text: str) -> Level | None:
    return next((level for level, start, part in _LEVELS if start.match(text) or part.search(text)), None)

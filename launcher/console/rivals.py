"""Differential diagnosis: the possible causes of a symptom, and the log's evidence for and against each.

The symptoms are the rows of rivals.toml.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from launcher.console.causes import Cause, Level, cause_of
from launcher.console.diagnosis import Diagnosis, shorten
from launcher.console.entry import fixes_for, of_entry
from launcher.console.error_line import ErrorLine
from launcher.console.evidence import Evidence
from launcher.console.tracebacks import Quote
from launcher.core.secrets import redact
from launcher.core.tables import record, tables_of
from launcher.record.fix import Fix
from launcher.record.problem import Evidence as Seen
from launcher.rivals.case import Case
from launcher.rivals.rows import Row, row_of

_RANKED = 3  # maximum number of listed causes


@dataclass(frozen=True)
class Symptom:
    """A family of messages; `message` is searched in the exception, `where` in its context, as in entries.

    `of`: further catalog entries that it judges, besides its rivals. `open`: for a log without an end, the kept lines
    in which `message` is searched; without a message it concerns the last steps.
    """

    message: str
    rivals: tuple[Row, ...]
    of: tuple[str, ...] = ()
    where: str = ""
    open: bool = False

    @property
    def entries(self) -> frozenset[str]:
        """The catalog's causes that it judges."""
        return frozenset((*self.of, *(row.entry for row in self.rivals if row.entry)))


@functools.cache
def symptoms() -> tuple[Symptom, ...]:
    """All symptoms, cached."""
    tables = tables_of(__file__, "rivals.toml")
    return tuple(
        record(Symptom, each, rivals=tuple(row_of(Row, row, tables["fixes"]) for row in each["rivals"]))
        for each in tables["symptom"]
    )


def differential(log: Evidence, cause: Cause | None, error: ErrorLine, found: Diagnosis) -> Diagnosis:
    """The diagnosis with its symptom's rivals, the leading one first; `found` itself without a symptom.

    `cause`: the matching entry, which decides alone if its message has no other cause.
    """
    text = error.whole
    if cause is not None and cause.level.symptom and found.place is not None:
        return found  # the exception behind it is known
    vague = cause is None or cause.level is not Level.ROOT
    for symptom in symptoms():
        match = re.search(symptom.message, text)
        known = cause is not None and cause.id in symptom.entries
        if symptom.open or match is None or not (vague or known):
            continue
        if symptom.where and not re.search(symptom.where, f"{error.context}\n{error.source}"):
            continue
        return _ranked(_Case(log, error, match.groupdict(), found), symptom, found)
    return found


def open_symptom(log: Evidence, found: Diagnosis) -> Diagnosis:
    """As `differential`, for a log without an end: names a cause only if a clue supports it."""
    quiet = log.facts.named is None and log.facts.lasting is None
    for symptom in symptoms():
        if symptom.open and not symptom.message and quiet and (step := log.quote("step")) is not None:
            shown = ErrorLine(step, step.text, "", (), raised=False, context="")
            ranked = _ranked(_Case(log, shown, {}, found), symptom, found)
            if ranked.cause != found.cause:
                title, shown_rivals = f"{found.title}: {ranked.title}", ranked.rivals[:1]
                return replace(ranked, cause=found.cause, title=title, meaning=found.meaning, rivals=shown_rivals)
        for line, text in log.facts.kept if symptom.open and symptom.message else ():
            if (match := re.search(symptom.message, text)) is not None:
                shown = ErrorLine(Quote(line, text), text, "", (), raised=False, context="")
                ranked = _ranked(_Case(log, shown, match.groupdict(), found), symptom, found)
                return ranked if ranked.cause != found.cause else found
    return found


def _ranked(case: "_Case", symptom: Symptom, found: Diagnosis) -> Diagnosis:
    """The diagnosis with the leading rival, if a clue supports one.

    If evidence excludes the cause of `found`, its fixes that change settings are omitted.
    """
    left, out = case.judged(symptom.rivals)
    left.sort(key=lambda each: (not each.leads, -len(each.rival.supports)))
    rivals = (*(each.rival for each in left[:_RANKED]), *found.rivals, *(each.rival for each in out))
    if not left or not left[0].leads:
        if found.cause in {each.row.cause for each in out} - {each.row.cause for each in left[:_RANKED]}:
            found = replace(found, fixes=tuple(fix for fix in found.fixes if not fix.changes), confidence="unknown")
        return replace(found, rivals=rivals)
    row, first, _ = left[0]
    if case.matched(row):
        return replace(found, rivals=rivals, confidence="likely" if len(left) > 1 else found.confidence)
    entry = case.entry(row)
    lines = [Quote(each.line, each.text) for each in first.supports if each.line is not None]
    exact = len(left) == 1 and bool(out) and not row.decides and (entry is None or entry.confidence == "exact")
    return replace(
        found,
        cause=row.cause,
        title=first.title,
        meaning=case.fill(row.meaning) or (entry.meaning if entry else ""),
        evidence=shorten([*found.evidence[:1], *lines, *found.evidence[1:]]),
        fixes=case.fixes(row, entry),
        confidence="exact" if exact else "likely",
        rivals=rivals,
        place=None if exact else found.place,
    )


_HOST = ("load", "cores")  # of the host in its last samples


class _Case(Case):
    """One failure, with the log for its clues."""

    def __init__(self, log: Evidence, error: ErrorLine, parts: Mapping[str, str | None], found: Diagnosis) -> None:
        self.log, self.error, self._found = log, error, found
        words = {name.rstrip("0123456789"): value for name, value in parts.items() if value is not None}
        if {"one", "two"} <= words.keys():
            words["smaller"], words["larger"] = sorted((words["one"], words["two"]), key=int)
        if error.calls:
            top, _, rest = error.calls[-1].partition("/")
            words["asking"] = top.partition(":")[0] or rest.rpartition("/")[2]
        words |= {f"version.{name}": version for name, version in log.facts.versions.items()}
        if log.machine is not None and (host := log.machine.memory) is not None:
            words |= {f"host.{name}": str(value) for name in _HOST if (value := getattr(host, name)) is not None}
        words |= {"device": log.facts.device.rpartition(" ")[2] or "nvidia", "ranks": str(self._ranks())}
        super().__init__({**log.facts.metrics, **words}, log.facts.given, verl=log.framework is None)
        self._lines = list(log.facts.kept)

    def title(self, row: Row) -> str:
        entry = self.entry(row)
        return self.fill(row.title) or (entry.title if entry else "")

    def matched(self, row: Row) -> bool:
        return row.entry == self._found.cause and not row.title

    def entry(self, row: Row) -> Diagnosis | None:
        """The catalog entry of a cause, filled in from the message."""
        return of_entry(self.log, cause_of(row.entry), (), self.error.message, self.error) if row.entry else None

    def fixes(self, row: Row, entry: Diagnosis | None) -> tuple[Fix, ...]:
        """The fixes of a cause that change something in this run."""
        if row.fixes:
            own, _ = fixes_for(self.log, row.fixes, self.error.whole, self.error)
            return tuple(fix.filled(self.fill) for fix in own)
        return (*([Fix(self.fill(row.decides))] if row.decides else ()), *(entry.fixes if entry else ()))

    def seen(self, kind: str, pattern: str) -> tuple[bool | None, Seen]:
        if kind in ("line", "twice"):
            seen = [line for line in self._lines if re.search(pattern, line.text)]
            enough = len(seen) > (kind == "twice")
            return enough or None, Seen(redact(seen[0].text), seen[0].line) if enough else Seen("")
        if kind == "says":
            return re.search(pattern, self.error.whole) is not None, Seen(self.error.whole[:160], name="message")
        frames = [f"{place} {error.codes.get(place, '')}".strip() for error in self._errors() for place in error.calls]
        found = next((place for place in reversed(frames) if re.search(pattern, place)), None)
        known = False if self.error.calls else None
        return (True if found else known), Seen(found or "another frame", name="frame")

    def _ranks(self) -> int:
        """The number of processes that raised this exception."""
        kind = self.error.message.partition(":")[0]
        return len({each.source for each in self._errors() if each.message.startswith(kind)})

    def _errors(self) -> Iterator[ErrorLine]:
        yield from (*self.log.unknown_errors, *(error for _, error in self.log.errors.values()), *self.log.final_errors)
        yield self.error

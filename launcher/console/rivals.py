"""Differential diagnosis: the causes that one symptom can have, and what in the log supports or excludes each.

The symptoms are the rows of rivals.toml, where the notation of clues is described. Unknown evidence neither supports
nor excludes a cause; the answer names it.
"""

import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launcher.console.causes import Cause, Level, cause_of
from launcher.console.diagnosis import Diagnosis, shorten
from launcher.console.entry import fixes_for, of_entry
from launcher.console.error_line import ErrorLine
from launcher.console.evidence import Evidence
from launcher.console.tracebacks import Quote
from launcher.core.secrets import redact
from launcher.core.tables import read_tables, record
from launcher.record.fix import Fix, fixes_of
from launcher.record.problem import Evidence as Seen
from launcher.record.problem import Rival
from launcher.verl.code_settings import Condition, default_of

RANKED = 3  # rivals that an answer lists at most
_WHOLE = 8  # settings of a log that has a command or the configuration: what it lacks has its default
_NAMED = ("setting", "numbers")  # evidence that can be named where it is missing
_TEXT = re.compile(r"(line|twice|frame|says): (.+)", re.DOTALL)
_COMPARED = re.compile(r"(.+?) (=|!=|<|>|~) (.+)")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">": "<="}


@dataclass(frozen=True)
class Row:
    """A cause that a symptom can have. `entry` is a cause of the catalog, which then has title, meaning and fixes.

    Of `needs` each that holds supports it, each that is known not to hold excludes it.
    """

    id: str = ""
    entry: str = ""
    title: str = ""
    meaning: str = ""
    needs: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    decides: str = ""
    """A look or a short run that shows whether it is this one."""
    fixes: tuple[Fix, ...] = ()

    @property
    def cause(self) -> str:
        """The id that a diagnosis has for it."""
        return self.entry or self.id


@dataclass(frozen=True)
class Symptom:
    """A family of messages; `message` is searched in the exception, `where` in its context, as entries have it.

    `of` are entries of the catalog that it judges although none of its rivals is one.
    `open`: of a log without an end, in whose kept lines `message` is searched; without one it is about the last steps.
    """

    message: str
    rivals: tuple[Row, ...]
    of: tuple[str, ...] = ()
    where: str = ""
    open: bool = False

    @property
    def entries(self) -> frozenset[str]:
        """The causes of the catalog that it judges."""
        return frozenset((*self.of, *(row.entry for row in self.rivals if row.entry)))


@functools.cache
def symptoms() -> tuple[Symptom, ...]:
    """All symptoms, read once."""
    tables = read_tables(Path(__file__).with_name("rivals.toml"))
    return tuple(
        record(Symptom, each, rivals=tuple(_row(row, tables.get("fixes", {})) for row in each["rivals"]))
        for each in tables["symptom"]
    )


def _row(row: Mapping[str, Any], shared: Mapping[str, Any]) -> Row:
    return record(Row, row, fixes=tuple(fixes_of(row.get("fixes", ()), shared)))


def differential(log: Evidence, cause: Cause | None, error: ErrorLine, found: Diagnosis) -> Diagnosis:
    """The diagnosis with the rivals of its symptom, the leading one first; `found` itself where no symptom fits.

    `cause` is the entry that matched. One whose message has no other cause decides alone.
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
        return _ranked(_Case(log, error, match.groupdict()), symptom, found)
    return found


def open_symptom(log: Evidence, found: Diagnosis) -> Diagnosis:
    """The same for a log that shows no end: a cause is named only if a clue supports it."""
    quiet = log.facts.named is None and log.facts.lasting is None
    for symptom in symptoms():
        if symptom.open and not symptom.message and quiet and (step := log.quote("step")) is not None:
            shown = ErrorLine(step, step.text, "", (), raised=False, context="")
            ranked = _ranked(_Case(log, shown, {}), symptom, found)
            if ranked.cause != found.cause:
                title, shown_rivals = f"{found.title}: {ranked.title}", ranked.rivals[:1]
                return replace(ranked, cause=found.cause, title=title, meaning=found.meaning, rivals=shown_rivals)
        for line, text in log.facts.kept if symptom.open and symptom.message else ():
            if (match := re.search(symptom.message, text)) is not None:
                shown = ErrorLine(Quote(line, text), text, "", (), raised=False, context="")
                ranked = _ranked(_Case(log, shown, match.groupdict()), symptom, found)
                return ranked if ranked.cause != found.cause else found
    return found


def _ranked(case: "_Case", symptom: Symptom, found: Diagnosis) -> Diagnosis:
    """The diagnosis with the leading rival, if a clue supports one.

    If evidence excludes the cause of `found`, its fixes that change settings are left out.
    """
    judged = [(row, *case.rival(row, found)) for row in symptom.rivals]
    left = [each for each in judged if not each[1].excluded_by]
    left.sort(key=lambda each: (not each[2], -len(each[1].supports)))
    open_, out = [rival for _, rival, _ in left[:RANKED]], [rival for _, rival, _ in judged if rival.excluded_by]
    rivals = (*open_, *out)
    if not left or not left[0][2]:
        causes = [{rival.cause for rival in group} for group in (out, open_)]
        if found.cause in causes[0] - causes[1]:
            found = replace(found, fixes=tuple(fix for fix in found.fixes if not fix.changes), confidence="unknown")
        return replace(found, rivals=rivals)
    row, first, _ = left[0]
    if row.entry == found.cause and not row.title:
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


class _Case:
    """One failure, with the evidence that clues are judged by."""

    def __init__(self, log: Evidence, error: ErrorLine, words: Mapping[str, str | None]) -> None:
        self.log, self.error = log, error
        self._words = {name.rstrip("0123456789"): value for name, value in words.items() if value is not None}
        if {"one", "two"} <= self._words.keys():
            self._words["smaller"], self._words["larger"] = sorted((self._words["one"], self._words["two"]), key=int)
        if error.calls:
            top, _, rest = error.calls[-1].partition("/")
            self._words["asking"] = top.partition(":")[0] or rest.rpartition("/")[2]
        self._metrics = log.facts.metrics
        self._given, self._lines = log.facts.given, list(log.facts.kept)

    def rival(self, row: Row, found: Diagnosis) -> tuple[Rival, bool]:
        """What supports and excludes a cause, and what is not known; whether all that it needs is known to hold."""
        needs, more = ([self._judge(clue) for clue in clues] for clues in (row.needs, row.supports))
        supports = [shown for holds, shown in (*needs, *more) if holds]
        excluded = [shown for holds, shown in needs if holds is False]
        excluded += [shown for holds, shown in map(self._judge, row.excludes) if holds]
        unknown = tuple(shown.text for holds, shown in (*needs, *more) if holds is None and shown.name in _NAMED)
        entry = self.entry(row)
        title = self.fill(row.title) or (entry.title if entry else "")
        rival = Rival(row.cause, title, tuple(supports), tuple(excluded), unknown, self.fill(row.decides))
        own = row.entry == found.cause and not row.title  # its message matched
        return rival, own or (bool(supports) and all(holds for holds, _ in needs))

    def entry(self, row: Row) -> Diagnosis | None:
        """The entry of the catalog for a cause, filled from the message."""
        return of_entry(self.log, cause_of(row.entry), (), self.error.message, self.error) if row.entry else None

    def fixes(self, row: Row, entry: Diagnosis | None) -> tuple[Fix, ...]:
        """The fixes of a cause that change something in this run."""
        if row.fixes:
            own, _ = fixes_for(self.log, row.fixes, self.error.whole, self.error)
            return tuple(fix.filled(self.fill) for fix in own)
        return (*([Fix(self.fill(row.decides))] if row.decides else ()), *(entry.fixes if entry else ()))

    def fill(self, text: str) -> str:
        """Replaces `{name}` by that part of the message, `{a.key}` by the value of that setting."""
        return re.sub(r"\{([\w.]+)\}", lambda name: self._words.get(name[1]) or self._given.get(name[1]) or "…", text)

    def _judge(self, clue: str) -> tuple[bool | None, Seen]:
        """Whether a clue holds, None if that is unknown, and the record that shows it."""
        if (written := _TEXT.fullmatch(clue)) is not None:
            return self._text(written[1], written[2])
        if (written := _COMPARED.fullmatch(clue)) is None:
            value = self._value(clue)
            shown = Seen(f"{clue}={value}" if value is not None else clue, name="setting")
            return (None if value is None else Condition(clue).holds(value)), shown
        left, sign, right = written.groups()
        if sign == "~":
            value = self._value(left)
            holds = None if value is None else re.search(right, value) is not None
            return holds, Seen(f"{left}={value}" if value is not None else left, name="setting")
        (first, words), (second, others) = self._number(left), self._number(right)
        if first is not None and second is not None:
            holds = _SIGNS[sign](first, second)
            return holds, Seen(f"{words} {sign if holds else _OPPOSITE[sign]} {others}", name="numbers")
        value = self._value(left)
        if value is None or sign not in ("=", "!="):
            return None, Seen(clue, name="setting")
        same = value.lower() in right.lower().split("|")
        return same == (sign == "="), Seen(f"{left}={value}", name="setting")

    def _text(self, kind: str, pattern: str) -> tuple[bool | None, Seen]:
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

    def _errors(self) -> Iterator[ErrorLine]:
        yield from (*self.log.unknown_errors, *(error for _, error in self.log.errors.values()), *self.log.final_errors)
        yield self.error

    def _value(self, name: str) -> str | None:
        """A part of the message, or a setting; its default if the log has the configuration without it."""
        if name in self._words:
            return self._words[name]
        if name in self._metrics:
            return self._metrics[name]
        if name in self._given:
            return self._given[name].strip("'\"")
        return default_of(name) if "." in name and len(self._given) >= _WHOLE else None

    def _number(self, written: str) -> tuple[float | None, str]:
        """The product of numbers, parts of the message and settings, None if one is unknown; and its text."""
        product, words = 1.0, list[str]()
        for part in written.split(" * "):
            value = part if re.fullmatch(r"[\d.]+", part) else self._value(part)
            try:
                product *= float((value or "").replace(",", ""))
            except ValueError:
                return None, written
            shown = f"{float(value):.6g}" if value and "." in value else str(value)
            words.append(f"{part}={shown}" if re.search("[a-z]", part) and ("." in part or "/" in part) else shown)
        return product, " * ".join(words)

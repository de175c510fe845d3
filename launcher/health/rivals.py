"""Why flags are up: which cause leads each of them, by the rows of rivals.toml."""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from launcher.core.tables import tables_of
from launcher.record.fix import Fix
from launcher.record.levels import OK, WARN, Level
from launcher.record.problem import Evidence, Rival
from launcher.rivals.case import Case, Judged
from launcher.rivals.rows import Row, row_of

if TYPE_CHECKING:
    from launcher.health.known import Known

_SHOWN = 3  # causes that a flag lists besides the leading one
_SOON = 3  # steps by which a cause may rise after what follows from it: rules differ in how long they wait
Flags = Mapping[str, tuple[Level, int | None]]
"""Of the rules that flag a run, the level and the step at which it rose."""


@dataclass(frozen=True)
class FlagRow(Row):
    """A cause of the flags of the rules that it `explains`; its `entry` is a rule."""

    explains: tuple[str, ...] = ()


class Explained(NamedTuple):
    """What is known of one flag: the rule under which it is listed, "" for its own; its causes, and the leading one."""

    cause: str = ""
    lead: Rival | None = None
    rivals: tuple[Rival, ...] = ()
    fixes: tuple[Fix, ...] = ()
    """Those of the leading cause, which replace the rule's; empty where it has none of its own."""

    @property
    def title(self) -> str:
        """That of the leading cause."""
        return self.lead.title if self.lead else ""


@functools.cache
def rows() -> tuple[FlagRow, ...]:
    """All rows, read once."""
    tables = tables_of(__file__, "rivals.toml")
    return tuple(row_of(FlagRow, row, tables["fixes"]) for row in tables["rivals"])


@functools.cache
def names(prefix: str) -> frozenset[str]:
    """The KEYs that clues have behind a prefix, such as `early/`."""
    found = (
        re.findall(rf"{prefix}([\w./-]+)", clue)
        for row in rows()
        for clue in (*row.needs, *row.supports, *row.excludes)
    )
    return frozenset(key for keys in found for key in keys)


class _Flag(Case):
    """One flag among those that are on."""

    def __init__(self, rule: str, on: Flags, known: "Known", words: Mapping[str, str]) -> None:
        super().__init__(words, known.settings, verl=known.verl)
        self.on, self.since, self.beyond = on, on[rule][1] or 0, known.beyond

    def named(self, word: str) -> str:
        prefix, _, key = word.partition("/")
        return f"{key} of the first steps" if prefix == "early" else f"largest {key}" if prefix == "most" else word

    def seen(self, kind: str, pattern: str) -> tuple[bool | None, Evidence]:
        if kind == "beyond":
            holds, words = self.beyond.get(pattern, (None, pattern))
            return holds, Evidence(words, name="setting")
        level, since = self.on.get(pattern, (OK, None))
        up = level >= WARN and (kind == "rule" or (since or 0) <= self.since + _SOON)
        return up, Evidence(f"{pattern} {level} since step {since}", name="flag")


def explain(on: Flags, known: "Known") -> dict[str, Explained]:
    """By rule what is known of each flag.

    Flags with the same leading cause are one group, listed under the worst of them.
    """
    words = known.words
    cases = {rule: _Flag(rule, on, known, words) for rule in on}
    causes = {rule: case.judged(row for row in rows() if rule in row.explains)[0] for rule, case in cases.items()}
    following = _following(causes)
    roots = {rule: _root(rule, following) for rule in on}
    leads = {rule: _lead(causes[rule]) for rule in set(roots.values())}
    groups: dict[str, list[str]] = {}
    for rule, first in roots.items():
        lead = leads[first]
        groups.setdefault(lead.row.id if lead else first, []).append(rule)
    found: dict[str, Explained] = {}
    for group in groups.values():
        first = roots[group[0]]
        lead = leads[first]
        head = min(group, key=lambda rule: (-on[rule][0], on[rule][1] or 0)) if lead else first
        shown = _others(causes[head], lead)
        fixes = tuple(fix.filled(cases[head].fill) for fix in lead.row.fixes) if lead else ()
        found |= {rule: Explained(cause=head) for rule in group}
        found[head] = Explained("", lead.rival if lead else None, shown, fixes)
    return found


def _following(causes: Mapping[str, Sequence[Judged]]) -> dict[str, str]:
    """The rule that each flag follows from, if one leads it; never in a circle."""
    following: dict[str, str] = {}
    order = {id(row): place for place, row in enumerate(rows())}
    pairs = [(each.row, rule) for rule, found in causes.items() for each in takewhile(_is_flag, found)]
    for row, rule in sorted(pairs, key=lambda pair: order[id(pair[0])]):
        if rule not in following and _root(row.entry, following) != rule:
            following[rule] = row.entry
    return following


def _root(rule: str, following: Mapping[str, str]) -> str:
    return _root(following[rule], following) if rule in following else rule


def _is_flag(each: Judged) -> bool:
    return each.leads and bool(each.row.entry)


def _lead(found: Sequence[Judged]) -> Judged | None:
    """The leading cause, other than a flag, that has a fix."""
    return next((each for each in found if each.leads and each.row.fixes), None)


def _others(found: Sequence[Judged], lead: Judged | None) -> tuple[Rival, ...]:
    """The other causes that could lead; without a leading one also those with support that a look can decide."""
    others = (each for each in found if not each.row.entry and (lead is None or each.row != lead.row))
    open_ = (
        each
        for each in others
        if (each.leads and each.row.fixes) or (not lead and each.rival.supports and each.row.decides)
    )
    return tuple(each.rival for each in open_)[:_SHOWN]

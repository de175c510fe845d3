"""The causes of flags, by the rows of rivals.toml."""

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
_SOON = 3  # steps by which a cause may rise after its consequence: delays differ between rules
Flags = Mapping[str, tuple[Level, int | None]]
"""Level and step of the rise, per flagged rule."""


@dataclass(frozen=True)
class FlagRow(Row):
    """A cause of flags of the rules in `explains`; its `entry` is a rule."""

    explains: tuple[str, ...] = ()


class Explained(NamedTuple):
    """The explanation of one flag: the rule that lists it ("" for its own), its causes and the leading one."""

    cause: str = ""
    lead: Rival | None = None
    rivals: tuple[Rival, ...] = ()
    fixes: tuple[Fix, ...] = ()
    """The leading cause's fixes, which replace the rule's; empty if it has none."""

    @property
    def title(self) -> str:
        """The leading cause's title."""
        return self.lead.title if self.lead else ""


@functools.cache
def rows() -> tuple[FlagRow, ...]:
    """All rows, cached."""
    tables = tables_of(__file__, "rivals.toml")
    return tuple(row_of(FlagRow, row, tables["fixes"]) for row in tables["rivals"])


@functools.cache
def names(prefix: str) -> frozenset[str]:
    """The KEYs after a prefix such as `early/` in the clues."""
    found = (
        re.findall(rf"{prefix}([\w./-]+)", clue)
        for row in rows()
        for clue in (*row.needs, *row.supports, *row.excludes)
    )
    return frozenset(key for keys in found for key in keys)


class _Flag(Case):
    """One of the active flags."""

    def __init__(self, rule: str, on: Flags, known: "Known", words: Mapping[str, str]) -> None:
        super().__init__(words, known.settings, verl=known.verl)
        self.on, self.since, self.known = on, on[rule][1] or 0, known

    def named(self, word: str) -> str:
        prefix, _, key = word.partition("/")
        return f"{key} of the first steps" if prefix == "early" else f"largest {key}" if prefix == "most" else word

    def seen(self, kind: str, pattern: str) -> tuple[bool | None, Evidence]:
        if kind == "beyond":
            holds, words = self.known.beyond.get(pattern, (None, pattern))
            return holds, Evidence(words, name="setting")
        level, since = self.on.get(pattern, (OK, None))
        up = level >= WARN and (kind == "rule" or (since or 0) <= self.since + _SOON)
        return up, Evidence(f"{pattern} {level} since {self.known.config.numbering.place(since or 0)}", name="flag")


def explain(on: Flags, known: "Known") -> dict[str, Explained]:
    """The explanation per flagged rule.

    Flags with the same leading cause form one group, listed under the worst of them.
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
    """Per flag the rule of the flag that causes it, if one leads; without cycles."""
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
    """The leading cause with a fix, other flags excluded."""
    return next((each for each in found if each.leads and each.row.fixes), None)


def _others(found: Sequence[Judged], lead: Judged | None) -> tuple[Rival, ...]:
    """The other causes that could lead; without a leading one, also supported causes that an inspection can decide."""
    others = (each for each in found if not each.row.entry and (lead is None or each.row != lead.row))
    open_ = (
        each
        for each in others
        if (each.leads and each.row.fixes) or (not lead and each.rival.supports and each.row.decides)
    )
    return tuple(each.rival for each in open_)[:_SHOWN]

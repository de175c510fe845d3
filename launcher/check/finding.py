"""The findings of checks. Their words are in findings.toml; a rule supplies the values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from launcher.core.format import counted
from launcher.core.tables import read_tables
from launcher.record.fix import Change, Fix, Offer, fix_of
from launcher.record.info import Edit
from launcher.record.levels import Level as Severity
from launcher.record.problem import Problem

Group = Literal["config", "data", "model", "hardware", "software"]
Level = Literal["error", "warning", "info"]

Settings = Mapping[str, Any]
"""Preset field -> value."""

Words = dict[str, Any]
"""Values for the words of a finding, shared by several findings of a rule."""
Row = Words
"""A row of findings.toml."""

GROUPS: tuple[Group, ...] = ("config", "data", "model", "hardware", "software")
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
REHEARSAL = "REHEARSAL"
"""The id of a rehearsal's finding, which has no rule."""
TABLE = Path(__file__).parent / "findings.toml"
_SEVERITY: Mapping[Level, Severity] = {"error": Severity.CRITICAL, "warning": Severity.WARN, "info": Severity.NOTICE}


@dataclass(frozen=True)
class Finding:
    """One fact that stops a run (error), harms it (warning) or is useful (info).

    `id`: the rule (V3, P12 and DATA-2 of docs/reference/findings.md). `keys`: the veRL keys concerned.
    """

    id: str
    group: Group
    level: Level
    keys: tuple[str, ...]
    message: str
    fixes: tuple[Fix, ...] = ()

    @property
    def fix(self) -> str:
        """The fixes as one sentence."""
        joints = ("" if not count else ", " if fix.alternative else "; " for count, fix in enumerate(self.fixes))
        return "".join(joint + offer.text for joint, offer in zip(joints, self.problem.offers, strict=True))

    @property
    def problem(self) -> Problem:
        """The finding as a `Problem`; its first fix has edits if the change is safe."""
        from launcher.preset.settle import shown_name

        name, edits = (
            shown_name if self.rename else str,
            tuple(Edit(key, None, now) for key, now in (self.change or {}).items()),
        )
        offers = (
            Offer(fix, fix.sentence(name), fix.key, edits if index == 0 else ()) for index, fix in enumerate(self.fixes)
        )
        return Problem("finding", self.id, _SEVERITY[self.level], message=self.message, offers=tuple(offers))

    @property
    def change(self) -> Settings | None:
        """The first fix as settings, if it is the one safe change: preset field -> value."""
        from launcher.preset.schema import FIELDS
        from launcher.preset.settle import setting_name
        from launcher.preset.yaml_text import value_of

        changes = self.fixes[0].changes if self.fixes else ()
        first = {setting_name(each.key): each.values[0] for each in changes if each.operation == "set" and each.values}
        if not changes or len(first) < len(changes) or not first.keys() <= FIELDS.keys():
            return None
        return {key: value_of(value) if isinstance(value, str) else value for key, value in first.items()}

    @property
    def rename(self) -> tuple[str, str] | None:
        """A misspelled key or field of the preset, and the right one."""
        changes = (change for fix in self.fixes for change in fix.changes if change.operation == "rename")
        return next(((change.key, change.words) for change in changes), None)

    def as_json(self) -> dict[str, object]:
        """One object of `check --json`; `change` and `rename` only if present."""
        found = {"id": self.id, "group": self.group, "level": self.level, "keys": list(self.keys)}
        found |= {"message": self.message, "fix": self.fix}
        offered = {"change": self.change, "rename": self.rename}
        fixes = {"fixes": [fix.to_json() for fix in self.fixes]}
        return found | fixes | {name: value for name, value in offered.items() if value}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Finding":
        """Reads an object written by `as_json`."""
        fixes = tuple(map(Fix.from_json, found["fixes"]))
        return cls(found["id"], found["group"], found["level"], tuple(found["keys"]), found["message"], fixes)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in display order: errors first, then by group."""
    return sorted(findings, key=lambda each: (LEVELS.index(each.level), GROUPS.index(each.group)))


def found(
    name: str,
    /,
    *,
    keys: Sequence[str] | None = None,
    level: Level | None = None,
    fixes: Sequence[Fix] | None = None,
    **given: Any,
) -> Finding:
    """Makes a finding of findings.toml: `ID` or `ID.variant`, with the values for its words.

    Keys, level and fixes are given if they depend on the case.
    """
    id, row = name.partition(".")[0], rows()[name]
    if keys is None:
        keys = [_words(key, given) for key in row["keys"]]
    if fixes is None:
        fixes = [_filled(fix, given) for fix in row["fix"]]
    return Finding(id, row["group"], level or row["level"], tuple(keys), _words(row["message"], given), tuple(fixes))


@cache
def rows() -> dict[str, Row]:
    """The variants of all findings by name."""
    return dict(_variants())


def variants() -> dict[str, list[Row]]:
    """The variants of each finding by id."""
    found: dict[str, list[Row]] = {}
    for name, row in rows().items():
        found.setdefault(name.partition(".")[0], []).append(row)
    return found


def levels(id: str) -> str:
    """The possible levels of a finding: `error, info`."""
    return ", ".join(dict.fromkeys(level for row in variants()[id] for level in row["level"].split(", ")))


def setting(change: Settings) -> Fix:
    """A fix that sets these fields."""
    return Fix(changes=tuple(Change(name, "set", (value,)) for name, value in change.items()))


def _variants() -> Iterator[tuple[str, Row]]:
    for section in read_tables(TABLE).values():
        group, _ = section.pop("group", "config"), section.pop("about")
        for id, table in section.items():
            shared = {"group": group, "keys": [], "fix": [], **section.get(table.get("like"), {}), **table}
            variants = {name: each for name, each in shared.items() if isinstance(each, dict) and name != "fix"}
            for name, own in variants.items() or [("", {})]:
                row = {key: value for key, value in (shared | own).items() if key not in variants}
                fixes = tuple(map(fix_of, row["fix"] if isinstance(row["fix"], list) else [row["fix"]]))
                yield f"{id}.{name}" if name else id, {**row, "fix": fixes}


class _Words(Formatter):
    """Writes lists (`{names}`: a, b; `{names:or}`: a or b), counts (`{n:GPU}`: 8 GPUs), and values as in YAML."""

    def format_field(self, value: Any, spec: str) -> str:
        if isinstance(value, (list, tuple)):
            return (f" {spec} " if spec else ", ").join(map(str, value))
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if isinstance(value, int) and len(spec) > 1 and spec.replace(" ", "").isalpha():
            return counted(value, spec)
        return str(super().format_field(value, spec))


def _words(text: str, given: Mapping[str, Any]) -> str:
    return _Words().vformat(text, (), given)


def _filled(fix: Fix, given: Mapping[str, Any]) -> Fix:
    """A fix with the values of a case filled in."""

    def change(each: Change) -> Change:
        values = tuple(value for written in each.values for value in _values(written, given))
        return replace(each, key=_words(each.key, given), values=values, words=_words(each.words, given))

    do, when, why = (_words(text, given) for text in (fix.do, fix.when, fix.why))
    return replace(fix, do=do, changes=tuple(map(change, fix.changes)), when=when, why=why)


def _values(written: Any, given: Mapping[str, Any]) -> Iterator[Any]:
    """The values of a setting: "{name}" replaced by the given value, or by several of a list."""
    if isinstance(written, list):
        yield [value for each in written for value in _values(each, given)]
    elif isinstance(written, str) and written[1:-1] in given and written == f"{{{written[1:-1]}}}":
        value = given[written[1:-1]]
        yield from value if isinstance(value, (list, tuple)) else (value,)
    else:
        yield _words(written, given) if isinstance(written, str) else written

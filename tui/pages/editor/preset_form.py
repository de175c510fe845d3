"""A preset's form as rows: groups, fields with values and origins, errors."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from launcher.core.text import clean
from launcher.health.catalogue import rules
from launcher.preset.draft import Draft
from launcher.preset.effective import EffectiveConfig, of_draft
from launcher.preset.fields import Spec
from launcher.preset.files import recipe_about, recipes
from launcher.preset.schema import SETTINGS, TITLES, fields_of
from launcher.preset.settle import shown_name
from launcher.preset.yaml_text import Where, shown
from launcher.search import Words, score
from launcher.verl.defaults import NEWEST
from launcher.verl.usual import usual_of
from tui.kit.drawing.glyphs import CRITICAL, ELLIPSIS, NOTICE, OK
from tui.kit.drawing.rows import Row, crop, put, spread, width
from tui.kit.matching import letters
from tui.kit.run_words import reference

NOTE, HEADING, TEXT = "!", "#", "|"  # beginnings of the names of lines that cannot be chosen
FREE = {
    "env": "Environment of veRL",
    "health": "Alerts, stop rules, limits of health rules",
    "usual": "Usual ranges",
    "sweep": "Sweep",
    "overrides": "Other veRL keys",
}
_NEAR = 50  # how well letters have to name a field: in one piece, or as first letters
_LAST = 18  # columns for the origin of a value


class Form:
    """The rows of a draft's form; rebuilt when the draft changes."""

    def __init__(self, draft: Draft, version: str = NEWEST, verl: Path | None = None) -> None:
        """`version` of veRL, and its folder."""
        self.draft, self.reading = draft, draft.reading
        self.changed = draft.changed_fields()
        self.config = of_draft(self.reading.layer, version, verl)
        self._parent = str(self.reading.raw.get("extends") or "")

    def names(self, *, everything: bool, query: str = "") -> list[str]:
        """The names of the lines in order: headings, fields, and errors below their fields.

        Without `everything`, only essential fields and those set in the file.
        """
        if self.reading.problem is not None:
            return [HEADING + "Cannot read the file; press a, then o, to open it in your editor", *self._excerpt()]
        found: list[str] = []
        for group, title in TITLES.items():
            specs = [spec for spec in fields_of(group) if spec.name not in FREE]
            found += self._block(title, [s.path for s in specs if everything or self._is_shown(s)], query)
        for group, title in FREE.items():
            options = (spec.path for spec in SETTINGS.values() if everything and len(spec.path) > 1)
            known = dict.fromkeys((*options, *self.reading.places, *self.reading.base, *self.reading.errors))
            found += self._block(title, [where for where in known if where[0] == group], query)
        strange = [where for where in self.reading.errors if where[0] not in FREE and not _is_field(where)]
        return found + self._block("Unknown", strange, query)

    def _block(self, title: str, places: Sequence[Where], query: str) -> list[str]:
        lines: list[str] = []
        for where in places:
            name = ".".join(where)
            if query and not fits(name, query):
                continue
            lines.append(name)
            if where in self.reading.errors:
                lines.append(NOTE + name)
        return [HEADING + title, *lines] if lines else []

    def _excerpt(self) -> list[str]:
        """The text around the unreadable line."""
        found = re.search(r"line (\d+)", self.reading.problem or "")
        at = int(found[1]) if found else 1
        lines = list(enumerate(self.draft.text.splitlines(), 1))[max(0, at - 4) : at + 6]
        rows = [f"{TEXT}{number:>4}  {line}" for number, line in lines]
        rows.insert(sum(number <= at for number, _ in lines), NOTE)
        return rows

    def _is_shown(self, spec: Spec) -> bool:
        where = spec.path
        return spec.essential or where in self.reading.places or where in self.reading.errors or where == ("extends",)

    def where(self, name: str) -> Where:
        """The path of a line's value."""
        spec = SETTINGS.get(name)
        if spec is not None:
            return spec.path
        known = [*self.reading.places, *self.reading.base, *self.reading.errors, *self.changed]
        return next((where for where in known if ".".join(where) == name), tuple(name.split(".")))

    def text(self, name: str) -> str:
        """The value of a line for editing: as in the file, otherwise the effective value."""
        where = self.where(name)
        value = self.draft.value(where)
        if where not in self.reading.places:
            value = self.default(name) if value is None else _from_home(value)
        return shown(value)

    def default(self, name: str) -> Any:
        """veRL's own value of an unset field."""
        spec = SETTINGS.get(name)
        if spec is None or not spec.key:
            return spec and spec.default
        return spec.from_verl(self.config.get(spec.key))

    def line(self, name: str, columns: int) -> Row:
        """One line in `columns` cells."""
        if name.startswith(HEADING):
            return [(f" {name[1:]}", "title")]
        if name.startswith(TEXT):
            return [(f" {clean(name[1:])}", "dim")]
        where = self.where(name.removeprefix(NOTE))
        if name.startswith(NOTE):
            return [("     ", "text"), (f"{CRITICAL} {clean(self._wrong(where))}", "critical")]
        sign, role, source = self._state(where)
        label = where[-1] if _is_field(where) else name
        at = value_column(columns)
        row: Row = [(" ", "text"), (sign, role), (" ", "text"), *crop([(label, "text")], at - 4)]
        spec = SETTINGS.get(name)
        text = clean(self.text(name))
        unit = f" {spec.unit}" if spec and spec.unit else ""
        if text == "1":  # "1 response", "1 process"
            unit = unit.removesuffix("es") if unit.endswith("sses") else unit.removesuffix("s")
        set_here = where in self.reading.places or where in self.reading.base
        value: Row = [(text, "text" if set_here else "dim"), (unit, "dim")]
        room = columns - at - (_LAST + 1 if columns >= 64 else 0)
        row = put(row, at, crop(value, room))
        return (
            put(row, columns - _LAST, crop([(source, role if sign != " " else "dim")], _LAST)) if columns >= 64 else row
        )

    def _wrong(self, where: Where) -> str:
        """Why a value or the text is refused, without the name of the file."""
        said = self.reading.problem or self.reading.errors.get(where, "")
        return said.removeprefix(str(self.draft.path)).lstrip(",: ")

    def _state(self, where: Where) -> tuple[str, str, str]:
        """Sign, role and words of a value's origin."""
        if where in self.reading.errors:
            return CRITICAL, "critical", "not allowed"
        if where in self.changed:
            return NOTICE, "notice", "changed"
        if where in self.reading.places:
            return OK, "live", "set here"
        if where in self.reading.base:
            return " ", "dim", self._base(where)
        return " ", "dim", "default"

    def _base(self, where: Where) -> str:
        """The origin of a value that this file does not set."""
        return f"recipe {self.reading.raw.get('recipe')}" if where in self.reading.recipe else self._parent

    def about(self, name: str, columns: int, rows: int) -> list[Row]:
        """Meaning, allowed values and other values of the chosen field, in `rows` rows."""
        where, spec = self.where(name), SETTINGS.get(name)
        key = spec.key if spec else where[-1] if where[0] == "overrides" else ""
        head: Row = [(f" {name}", "title"), (f"  {key}" if key and key != name else "", "dim")]
        said = [spec.help if spec else _FREE_ABOUT.get(where[0], "Press del to remove it, a o to open the file.")]
        meaning = spec.offers.get(self.text(name)) if spec else None
        if name == "recipe" and self.draft.value(where) in recipes():
            meaning = recipe_about(self.text(name)).rstrip(".")
        if meaning:
            said.append(f"Now: {meaning}.")
        (lookup,) = reference(name) if spec else [[]]
        fits_beside = width(head) + width(lookup) + 2 <= columns
        found: list[Row] = [spread(head, lookup, columns) if fits_beside else crop(head, columns)]
        limits = [spec.allowed] if spec else []
        if where in self.reading.base:
            limits.append(f"{self._base(where)}: {shown(_from_home(self.reading.base[where].value))}")
        verl = EffectiveConfig(version=self.config.version, verl=self.config.verl)
        if spec and spec.key and (default := spec.from_verl(verl.get(spec.key))) is not None:
            limits.append(f"veRL's default: {shown(default)}")
        if spec and (range_ := usual_of(self.config, spec.key)):
            limits.append(f"usual: {range_.words}")
        parts = [(self._wrong(where), "critical"), (" ".join(said), "text"), (" · ".join(limits), "dim")]
        parts += [(advice, "notice") for advice in flag_advice(key)]
        for part, role in parts:
            lines = wrap(clean(part), columns - 2)
            if len(found) + len(lines) > rows and len(found) > 1:  # no sentence stops in its middle
                found[-1] = [*crop(found[-1], columns - 2), (f" {ELLIPSIS}", "dim")]
                break
            found += [[(f" {line.removesuffix(' ·')}", role)] for line in lines]
        return found[:rows]


_FREE_ABOUT = {
    "env": "An environment variable for veRL; export secrets in the shell instead.",
    "health": "A limit of a health rule.",
    "usual": "The lowest and highest usual value of a field in this preset.",
    "sweep": "Values of a setting that 'ppo-tui sweep' combines.",
    "overrides": "A veRL key without a preset field, passed unchanged.",
}


def _is_field(where: Where) -> bool:
    return ".".join(where) in SETTINGS


def flag_advice(key: str) -> list[str]:
    """The health rules' advice about a veRL key, in checklist order; empty for most keys."""
    when: dict[str, list[str]] = {}
    for rule in rules().values():
        for fix in rule.advice:
            if key and fix.key == key:
                when.setdefault(fix.sentence(shown_name), []).append(rule.id)
    return [f"when {', '.join(ids[:-1])}{' or ' * (len(ids) > 1)}{ids[-1]} is on: {each}" for each, ids in when.items()]


def _from_home(value: Any) -> Any:
    """Paths under the home folder, shortened: `~/data`."""
    if isinstance(value, list):
        return [_from_home(each) for each in value]
    home = f"{os.path.expanduser('~')}/"  # noqa: PTH111 (never raises)
    return f"~/{value.removeprefix(home)}" if isinstance(value, str) and value.startswith(home) else value


def value_column(columns: int) -> int:
    """The column where the values start."""
    return min(36, max(12, columns * 45 // 100))


def fits(name: str, query: str) -> bool:
    """Whether the typed text matches a field: its name, veRL key or meaning."""
    spec: Spec | None = SETTINGS.get(name)
    texts = [name, spec.key, spec.help] if spec else [name]
    return all(
        letters(name.lower(), word) >= _NEAR or any(word in text.lower() for text in texts)
        for word in query.lower().split()
    )


def best(names: Sequence[str], query: str) -> str | None:
    """The best matching field, first by words, then by letters."""

    def fit(name: str) -> tuple[float, int]:
        about = SETTINGS[name].help if name in SETTINGS else ""
        return score(query, Words(name, meaning=about)), letters(name.lower(), query.lower().strip() or name)

    return max((name for name in names if not name.startswith((HEADING, NOTE, TEXT))), key=fit, default=None)


def differences(now: Mapping[Where, Any], then: Mapping[Where, Any]) -> list[tuple[str, Any, Any]]:
    """Name, old and new value of every differing setting."""
    keys = sorted(now.keys() | then.keys())
    return [
        (".".join(key), then.get(key), now.get(key))
        for key in keys
        if now.get(key) != then.get(key) and key[0] not in ("extends", "description", "needs")
    ]

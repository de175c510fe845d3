"""The fields of a preset: one row each in fields.toml, which describes the columns."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from launcher.core.tables import record
from launcher.verl.algorithms import estimators, losses

Kind = Literal["", "path", "path or name", "command"]
Scale = Literal["", "125", "double", "divisor", "step"]
"""How a stepper finds the next value: 1-2-5 per power of ten, doubling, the divisors that the batch allows, a fixed
step. "" has no next value: text, switches, choices.
"""

_TYPES: dict[str, object] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "list[int]": list[int],
    "list[float]": list[float],
    "list[str]": list[str],
    "dict": dict[str, object],
}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list"}
_WORDS |= {dict: "a mapping"}
UNGROUPED = ("first", "last")
"""Groups of fields.toml whose fields have no group in a preset."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A row: all facts about a field for the editor, errors and the translation."""

    path: tuple[str, ...]
    help: str
    key: str  # veRL's key without `+`, or ""
    plus: str  # "+" (append), "++" (set or append) or ""
    types: tuple[Any, ...]  # empty where `choices` are the only values
    choices: tuple[str, ...]
    offers: Mapping[str, str]
    nullable: bool
    scale: Scale
    default: Any = None
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    unit: str = ""
    follows: str = ""
    kind: Kind = ""
    names: Mapping[str, str]
    suggested: tuple[str, ...] = ()
    essential: bool = False
    step: float = 1

    @property
    def name(self) -> str:
        """The dotted name, such as `actor.lr`."""
        return ".".join(self.path)

    @property
    def allowed(self) -> str:
        """The allowed values in words: `a number of at least 0 and at most 1, or null`."""
        if self.offers:
            return f"{', '.join(self.offers)}, or a name registered in veRL"
        if list[str] in self.types and (self.choices or self.kind == "command"):
            return f"a list of {', '.join(self.choices) or 'words'}" + (", or null" if self.nullable else "")
        words = [_WORDS[get_origin(kind) or kind] for kind in self.types] or ["one of " + ", ".join(self.choices)]
        named = (("above", self.gt), ("of at least", self.ge), ("below", self.lt), ("at most", self.le))
        limits = " and ".join(f"{word} {limit}" for word, limit in named if limit is not None)
        return " or ".join(words) + (f" {limits}" if limits else "") + (", or null" if self.nullable else "")

    def allows(self, value: Any) -> bool:
        """Whether a preset can have the value. Strict: "5" is not a number, 1 is not true, NaN is not allowed."""
        if value is None:
            return self.nullable
        if not self.types:
            return isinstance(value, str) and value in self.choices
        if not any(_is_a(value, kind) for kind in self.types):
            return False
        return isinstance(value, (str, list, dict)) or (
            (self.gt is None or value > self.gt)
            and (self.ge is None or value >= self.ge)
            and (self.lt is None or value < self.lt)
            and (self.le is None or value <= self.le)
        )

    def read(self, value: Any) -> Any:
        """An allowed value in its type for code: an integer in a float field becomes a float."""
        if float in self.types and type(value) is int:
            return float(value)
        return [float(item) for item in value] if list[float] in self.types and value else value

    def to_verl(self, value: Any) -> Any:
        """veRL's value for a value of this field: gae for ppo."""
        return self.names.get(value, value) if isinstance(value, str) else value

    def from_verl(self, value: Any) -> Any:
        """This field's value for a value of veRL's key."""
        ours = {theirs: name for name, theirs in self.names.items()}
        return ours.get(value, value) if isinstance(value, str) else value


def _is_a(value: Any, kind: Any) -> bool:
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_is_a(item, get_args(kind)[0]) for item in value)
    if kind is float:
        return type(value) is int or (isinstance(value, float) and math.isfinite(value))
    return type(value) is (get_origin(kind) or kind)  # True is not an int


def rows(tables: Mapping[str, Any]) -> Iterator[Spec]:
    """The rows of fields.toml, in their order."""
    registered = {"estimators": estimators(), "losses": losses()}
    offers = {name: {each.name: each.meaning for each in known.values()} for name, known in registered.items()}
    offers |= tables["offers"]
    for group, table in tables["groups"].items():
        for name, row in table["fields"].items():
            path = (name,) if group in UNGROUPED else (group, name)
            yield _spec(path, table.get("prefix", ""), dict(row), tables["choices"], offers)


def options(tables: Mapping[str, Any]) -> Iterator[Spec]:
    """The options of `health:` in fields.toml."""
    for name, row in tables["health"].items():
        yield _spec(("health", name), "", dict(row), {}, {})


def _spec(
    path: tuple[str, ...],
    prefix: str,
    row: dict[str, Any],
    choices: Mapping[str, list[str]],
    offers: Mapping[str, Mapping[str, str]],
) -> Spec:
    given = row.pop("key", f".{path[-1]}" if prefix else "")
    key = given.lstrip("+")
    types = tuple(_TYPES[name] for name in row.pop("type", "").split(" | ") if name)
    only = row.pop("choices", [])
    names = row.pop("names", {})
    offered = {_ours(name, names): meaning for name, meaning in offers.get(row.pop("offers", ""), {}).items()}
    nullable = row.pop("null", "default" not in row)
    usual = "step" if "step" in row or int in types else "125" if float in types else ""
    default = row.pop("default", None)  # a list stays one
    return record(
        Spec,
        {"scale": usual, **row},
        path=path,
        key=prefix + key if key.startswith(".") else key,
        plus=given[: len(given) - len(key)],
        types=types,
        choices=tuple(choices[only] if isinstance(only, str) else only) or tuple(offered),
        offers=offered,
        names=names,
        nullable=nullable,
        default=default,
    )


def _ours(value: str, names: Mapping[str, str]) -> str:
    return next((name for name, theirs in names.items() if theirs == value), value)

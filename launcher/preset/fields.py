"""One line a field: its type, its veRL key, its meaning, its range. The rest is read off that line."""

import types
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

Kind = Literal["", "path", "path or name"]
Scale = Literal["", "125", "double", "divisor", "step"]
"""How a stepper goes from one value to the next: 1-2-5 of each power of ten, times two, the divisors that the
batch allows, a fixed step. "" has no next value: text, switches, choices.
"""


class Group(BaseModel):
    """A part of a preset. Strict: `"5"` is not a number, 1 is not true, NaN is nothing."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)
    prefix: ClassVar[str] = ""  # what veRL's keys of the group begin with


def verl(
    about: str,
    *,
    key: str | None = None,
    default: Any = None,
    unit: str = "",
    follows: str = "",
    kind: Kind = "",
    names: dict[str, str] | None = None,
    offers: dict[str, str] | None = None,
    essential: bool = False,
    scale: Scale = "",
    step: float | None = None,
    **limits: float,
) -> Any:
    """A field of a preset.

    `key` is veRL's key as the newest version calls it: below the group's prefix when it begins with a dot, the
    prefix and the field's name when None, "" when the field is ours. A `+` stands before one that has to be
    appended, `++` where some versions have it already. A default of None means veRL's own default, which
    is then not passed. `follows` names the field whose value is taken while this one is None. `kind` says
    that the value is a path, or may also be a name (on the Hugging Face hub, a command). `names` turns our
    values into veRL's. `offers` are known values of a text with their meanings; others are passed on. A form
    shows what is `essential` first. `scale` is a stepper's (numbers have "125", whole ones "step"), `step` the
    distance of "step", which it implies. `limits` are pydantic's: gt, ge, lt, le.
    """
    extra: Any = {
        "verl": key,
        "unit": unit,
        "follows": follows,
        "kind": kind,
        "names": names or {},
        "offers": offers or {},
        "essential": essential,
        "scale": scale,
        "step": step,
    }
    return Field(default, description=about, json_schema_extra=extra, **limits)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Spec:
    """What is known about one field; the editor, the errors and the translation read it."""

    path: tuple[str, ...]
    key: str  # veRL's key without `+`, or ""
    plus: str  # "+" (append), "++" (set or append) or ""
    about: str
    unit: str
    default: Any
    follows: str
    kind: Kind
    names: dict[str, str]
    offers: dict[str, str]
    allowed: str
    choices: tuple[str, ...]
    types: tuple[Any, ...]
    essential: bool
    scale: Scale
    step: float

    @property
    def name(self) -> str:
        """`actor.lr`."""
        return ".".join(self.path)

    @property
    def nullable(self) -> bool:
        """Whether it may be null, which leaves the value to veRL."""
        return type(None) in self.types

    def to_verl(self, value: Any) -> Any:
        """The value that veRL is given for one of this field: gae for ppo."""
        return self.names.get(value, value) if isinstance(value, str) else value

    def from_verl(self, value: Any) -> Any:
        """The value of this field that stands for one of veRL's."""
        ours = {theirs: name for name, theirs in self.names.items()}
        return ours.get(value, value) if isinstance(value, str) else value


def specs(model: type[BaseModel], path: tuple[str, ...] = ()) -> dict[str, Spec]:
    """Every field of `model` and of the groups in it by its dotted name, in the order of the source."""
    found: dict[str, Spec] = {}
    for name, info in model.model_fields.items():
        here = (*path, name)
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            found.update(specs(info.annotation, here))
        else:
            found[".".join(here)] = _spec(here, info, getattr(model, "prefix", ""))
    return found


def _spec(path: tuple[str, ...], info: FieldInfo, prefix: str) -> Spec:
    extra: Any = info.json_schema_extra
    given = extra["verl"] if extra["verl"] is not None else f".{path[-1]}"
    key = given.lstrip("+")
    parts = _parts(info.annotation)
    listed = tuple(str(value) for part in parts if get_origin(part) is Literal for value in get_args(part))
    offers: dict[str, str] = extra["offers"]
    return Spec(
        path=path,
        key=prefix + key if key.startswith(".") else key,
        plus=given[: len(given) - len(key)],
        about=info.description or "",
        unit=extra["unit"],
        default=info.default,
        follows=extra["follows"],
        kind=extra["kind"],
        names=extra["names"],
        offers=offers,
        allowed=f"{', '.join(offers)}, or a name registered in veRL" if offers else _allowed(parts, info.metadata),
        choices=listed or tuple(offers),
        types=parts,
        essential=extra["essential"],
        scale=extra["scale"] or ("step" if extra["step"] is not None else _scale(parts)),
        step=1 if extra["step"] is None else extra["step"],
    )


def _scale(parts: tuple[Any, ...]) -> Scale:
    if int in parts:
        return "step"
    return "125" if float in parts else ""


def _parts(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}
_LIMITS = {Gt: "above", Ge: "of at least", Lt: "below", Le: "at most"}


def _allowed(parts: tuple[Any, ...], metadata: list[Any]) -> str:
    """`a number of at least 0 and at most 1, or null`."""
    words = []
    for part in parts:
        if get_origin(part) is Literal:
            words.append("one of " + ", ".join(str(value) for value in get_args(part)))
        elif part is not type(None):
            words.append(_WORDS.get(get_origin(part) or part, "text"))
    limits = [
        f"{word} {getattr(limit, kind.__name__.lower())}"
        for limit in metadata
        for kind, word in _LIMITS.items()
        if isinstance(limit, kind)
    ]
    text = " or ".join(words) + (" " + " and ".join(limits) if limits else "")
    return text + (", or null" if type(None) in parts else "")

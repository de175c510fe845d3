"""JSON objects as typed records."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from launcher.core.files import read_json, write_json
from launcher.record.levels import Level

SCHEMA = 1
_KEY, _RARE, _OLD = "key", "rare", "old"
RARE = {_RARE: True}
"""Metadata of a field that is written only if it differs from its default."""
FROM, TO, QUESTION = {_KEY: "from"}, {_KEY: "to"}, {_KEY: "question"}
"""Metadata of fields with these names in JSON."""


def renamed(old: str) -> dict[str, str]:
    """Metadata of a field with another name in an earlier version: the alias is also written and read."""
    return {_OLD: old}


_MISSING = object()
_FAULTS: ContextVar[list[str] | None] = ContextVar("faults", default=None)  # faults of the value being read
_WRONG = (LookupError, TypeError, ValueError, OverflowError)  # exceptions of readers for values of other types
_SCALARS: frozenset[Any] = frozenset({str, int, float, bool, NoneType, dict})
_LEVELS = {str(level): level for level in Level}
R = TypeVar("R", bound="Record")
Read = Callable[[Any], Any]


class Record:
    """The base of frozen dataclasses that the run directory stores as JSON objects."""

    __slots__ = ()

    @classmethod
    def from_json(cls: type[R], value: object) -> R:
        """Reads a JSON object, also of another version: ignores unknown keys; missing or wrongly typed fields get their
        defaults.

        Raises ValueError for such a field without a default, and for a value that is not an object.
        """
        if not isinstance(value, Mapping):
            raise ValueError(f"{cls.__name__}: not a JSON object")
        values = {}
        for field in _fields(cls):  # type: ignore[arg-type]
            item = value.get(field.key, value.get(field.old, _MISSING))
            if type(item) in field.plain:
                values[field.name] = item
                continue
            if item is _MISSING and not field.required:
                continue
            faults = _FAULTS.get()
            known = len(faults) if faults is not None else 0
            try:
                values[field.name] = _refuse(item) if item is _MISSING else field.read(item)
            except _WRONG:
                if faults is not None and len(faults) == known:
                    faults.append("")
                if field.required:
                    raise ValueError(f"{cls.__name__}: '{field.key}' is missing or invalid") from None
            finally:
                if faults is not None:
                    faults[known:] = [f"{field.key}.{fault}".rstrip(".") for fault in faults[known:]]
        return cls(**values)

    @classmethod
    def examine(cls: type[R], value: object) -> tuple[R | None, tuple[str, ...]]:
        """The record, or None; and its missing or wrongly typed fields: `checks.level`."""
        faults: list[str] = []
        token = _FAULTS.set(faults)
        record = None
        try:
            record = cls.from_json(value)
        except ValueError:
            faults = faults or ["not a JSON object"]
        finally:
            _FAULTS.reset(token)
        return record, tuple(dict.fromkeys(faults))

    @classmethod
    def read(cls: type[R], path: Path) -> R | None:
        """The record in a file; None if missing or invalid."""
        try:
            return cls.from_json(read_json(path) or None)
        except ValueError:
            return None

    def write(self, path: Path) -> None:
        """Replaces a file atomically. Raises OSError."""
        write_json(path, {"schema": SCHEMA, **self.to_json()})

    def to_json(self) -> dict[str, Any]:
        """The JSON object for orjson."""
        values = {}
        for field in _fields(type(self)):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if not (field.rare and value == field.default):
                values[field.key] = value if type(value) in _SCALARS else _plain(value)
                if field.old is not None:
                    values[field.old] = values[field.key]
        return values


class Written(NamedTuple):
    """A field in JSON: `always`: written even at its default; `old`: its alias."""

    name: str
    key: str
    hint: Any
    always: bool
    old: str | None


def written(kind: Any) -> list[Written]:
    """The fields of a record, dataclass or named tuple, in order."""
    marks = {field.name: field.metadata for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    found = []
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is not ClassVar:
            mark: Mapping[str, Any] = marks.get(name, {})
            found.append(Written(name, mark.get(_KEY, name), hint, _RARE not in mark, mark.get(_OLD)))
    return found


class _Field(NamedTuple):
    name: str
    key: str  # its name in JSON
    plain: frozenset[type]  # types of values that need no reading
    read: Read
    required: bool
    default: Any
    rare: bool
    old: str | None


@functools.cache
def _fields(kind: Any) -> list[_Field]:
    hints, fields = get_type_hints(kind), []
    for field in dataclasses.fields(kind):
        key = field.metadata.get(_KEY, field.name)
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        hint = hints[field.name]
        plain = _SCALARS & {*get_args(hint)} if _is_union(hint) else _SCALARS & {hint}
        marks = _RARE in field.metadata, field.metadata.get(_OLD)
        fields.append(_Field(field.name, key, plain, _reader(hint), required, field.default, *marks))
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, Level):
        return str(value)
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        return dict(zip(names, map(_plain, value), strict=True)) if names else [_plain(each) for each in value]
    return value


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _reader(hint: Any) -> Read:
    """A function that converts a JSON value to the type `hint`, or raises TypeError or ValueError."""
    origin, arguments = get_origin(hint), get_args(hint)
    if _is_union(hint):
        return _either([_reader(each) for each in arguments if each is not NoneType], optional=NoneType in arguments)
    if origin is tuple:
        return _sequence(_reader(arguments[0]))
    if origin is dict:
        item = _reader(arguments[1])
        return lambda value: {key: item(each) for key, each in _instance(value, dict).items()}
    if hint in (Any, object):
        return lambda value: value
    if hint is float:
        return _float
    if hint is Level:
        return lambda value: _LEVELS[value]
    kind = origin or hint
    if issubclass(kind, Record):
        return kind.from_json  # type: ignore[no-any-return]
    if issubclass(kind, tuple):
        return _named_tuple(kind)
    return lambda value: value if type(value) is kind else _instance(value, kind)


def _instance(value: Any, kind: type) -> Any:
    """`value` if it is of this type; ruamel's strings and mappings count as Python's, a bool not as a number."""
    return value if isinstance(value, kind) and not isinstance(value, bool) else _refuse(value)


def _float(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _refuse(value)


def _refuse(value: Any) -> Any:
    raise TypeError(value)


def _either(readers: list[Read], optional: bool) -> Read:
    def read(value: Any) -> Any:
        if value is None and optional:
            return None
        for each in readers[:-1]:
            try:
                return each(value)
            except _WRONG:
                continue
        return readers[-1](value)

    return read


def _sequence(each: Read) -> Read:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            return _refuse(value)  # type: ignore[no-any-return]
        items = []
        for item in value:  # a damaged one hides no other
            faults = _FAULTS.get()
            known = len(faults) if faults is not None else 0
            try:
                items.append(each(item))
            except _WRONG:
                if faults is not None and len(faults) == known:
                    faults.append("")
        return tuple(items)

    return read


def _named_tuple(kind: Any) -> Read:
    readers = [(name, _reader(hint)) for name, hint in get_type_hints(kind).items()]

    def read(value: Any) -> Any:
        try:
            return kind(*[each(value[name]) for name, each in readers])
        except KeyError:
            return _refuse(value)

    return read

"""JSON Schemas of the objects that commands print with --json, from their types and schemas.toml."""

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

import orjson

import launcher.record
from launcher.core.errors import UserError
from launcher.core.tables import read_tables
from launcher.core.text import near_hint
from launcher.record.json import Written, written
from launcher.record.levels import Level

_FILE = Path(__file__).with_name("schemas.toml")
_MEANINGS = Path(launcher.record.__path__[0]) / "meanings.toml"
_FIRST = "0.1.0"
_REF = re.compile(r'"#/\$defs/(\w+)"')
_LINK = re.compile(r"\[(.*?)\]\(.*?\)")
_OR = re.compile(r" or (?!false)")
_NAMES = {str: "text", int: "integer", float: "number", bool: "true or false", Any: "anything", Level: "level"}
_NUMBER = {"type": "number"}
_PLAIN: Mapping[str, Mapping[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": _NUMBER,
    "true or false": {"type": "boolean"},
    "null": {"type": "null"},
    "object": {"type": "object"},
    "anything": {},
    "level": {"enum": [str(level) for level in Level]},
    "value": {"anyOf": [_NUMBER, {"enum": ["nan", "inf", "-inf"]}]},
}


class SchemaField(NamedTuple):
    """A field: `kind`: its type in words. `filed`: its fields come from a file of the run, with their meanings."""

    name: str
    kind: str
    meaning: str
    since: str
    always: bool
    filed: bool


@dataclass(frozen=True)
class Shape:
    """An object, or a list if it has `items`."""

    about: str
    fields: tuple[SchemaField, ...]
    more: SchemaField | None = None
    """The type of all names that are not in `fields`."""
    items: str = ""
    closed: bool = False
    record: Any = None
    """The Python type that is written."""


def words_of(hint: Any) -> str:
    """A type in the words of the reference: `list of text or null`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(f"'{value}'" for value in arguments)
    if origin is tuple:
        return f"list of {words_of(arguments[0])}"
    if origin is dict:
        kind = words_of(arguments[1])
        return "object" if kind == "anything" else f"map of {kind}"
    if arguments:
        kinds = [words_of(each) for each in arguments if each is not NoneType]
        return " or ".join([*kinds, *(["null"] if NoneType in arguments else [])])
    return _NAMES.get(hint) or str(hint.__name__)


@cache
def printed() -> dict[str, list[str]]:
    """The printed objects per command."""
    found: dict[str, list[str]] = read_tables(_FILE)["printed"]
    return found


@cache
def shapes() -> dict[str, Shape]:
    """All objects by name."""
    meanings = read_tables(_MEANINGS)
    return {name: _shape(table, meanings) for name, table in read_tables(_FILE)["object"].items()}


def schema_of(command: str, *, closed: bool = False) -> dict[str, Any]:
    """The JSON Schema of a line of `COMMAND --json`; `closed` allows no other names. Raises UserError without JSON."""
    if command not in printed():
        known = near_hint(command, printed(), "'ppo-tui schema' lists the commands")
        raise UserError(f"'{command}' is not a command with --json", known)
    names, defined = list(printed()[command]), {}
    while names:
        if (name := names.pop()) not in defined:
            defined[name] = _defined(shapes()[name], closed)
            names += _REF.findall(orjson.dumps(defined[name]).decode())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of ppo-tui {command} --json",
        "anyOf": [_kind(name) for name in printed()[command]],
        "$defs": defined,
    }


def _shape(table: Mapping[str, Any], meanings: Mapping[str, Any]) -> Shape:
    first, rows, fields = table.get("since", _FIRST), dict(table.get("fields", {})), []
    since = {name: release for release, names in table.get("new", {}).items() for name in names}

    def entry(name: str, kind: str, meaning: str, filed: bool = False) -> SchemaField:
        plain = name.rstrip("?")
        return SchemaField(plain, kind, meaning, since.get(plain, first), plain == name, filed)

    record = _record(table["record"]) if "record" in table else None
    for each in written(record) if record is not None else ():
        mark, kind = "" if each.always else "?", words_of(each.hint)
        given = rows.pop(each.key, None) or rows.pop(f"{each.key}?", None)
        meaning = given if given is not None else _filed(record, each, meanings)
        if isinstance(given, list):
            kind, meaning = given
            mark = mark or ("?" if f"{each.key}?" in table["fields"] else "")
        fields.append(entry(each.key + mark, kind, meaning, given is None))
        if each.old is not None:
            fields.append(entry(each.old + mark, kind, f"alias of `{each.key}`"))
    more = entry("*", *rows.pop("*")) if "*" in rows else None
    fields += [entry(name, *row) for name, row in rows.items()]
    options = {name: table[name] for name in ("items", "closed") if name in table}
    return Shape(table["about"], tuple(fields), more, record=record, **options)


def _record(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _filed(kind: Any, field: Written, meanings: Mapping[str, Any]) -> str:
    """The meaning of a field in one of the run's files."""
    found: Mapping[str, str] = meanings["events"] if hasattr(kind, "kind") else meanings[kind.__name__]
    return found.get(field.key) or found[field.name]


def _defined(shape: Shape, closed: bool) -> dict[str, Any]:
    if shape.items:
        return {"description": shape.about, "type": "array", "items": _kind(shape.items)}
    about = {each.name: _LINK.sub(r"\1", each.meaning) for each in shape.fields}
    found: dict[str, Any] = {
        "description": _LINK.sub(r"\1", shape.about),
        "type": "object",
        "properties": {each.name: {"description": about[each.name], **_kind(each.kind)} for each in shape.fields},
        "required": [each.name for each in shape.fields if each.always],
    }
    if shape.more is not None:
        found["additionalProperties"] = _kind(shape.more.kind)
    elif closed or shape.closed:
        found["additionalProperties"] = False
    return found


def _kind(words: str) -> dict[str, Any]:
    kinds = list(_one(words))
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _one(words: str) -> Iterator[dict[str, Any]]:
    """The schema per type of `text or list of Check or null`; quoted texts form one schema."""
    allowed = re.findall("'(.*?)'", words)
    if allowed:
        yield {"enum": allowed}
    for word in _OR.split(words):
        if word in _PLAIN:
            yield dict(_PLAIN[word])
        elif word.startswith("list of "):
            yield {"type": "array", "items": _kind(word.removeprefix("list of "))}
        elif word.startswith("map of "):
            yield {"type": "object", "additionalProperties": _kind(word.removeprefix("map of "))}
        elif not word.startswith("'"):
            yield {"$ref": f"#/$defs/{word}"}

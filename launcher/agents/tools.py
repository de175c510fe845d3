"""The commands of ppo-tui as tools of an agent: the command line of a call, and a page of what it prints."""

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError
from launcher.core.paths import own_command
from launcher.core.tables import read_tables, record

_FILE = Path(__file__).with_name("tools.toml")
PAGE = 12_000  # characters of one answer
TIME_LIMIT = 300.0  # seconds; a check that loads a model takes one or two minutes
_SETTING = re.compile(r"\+{0,2}[A-Za-z_][\w.@/-]*=.*", re.DOTALL)
_PARTS = {"settings": _SETTING}
_PAGE_FIELDS = {
    "offset": {"type": "integer", "minimum": 0, "description": "First character of the page, from the page before."}
}


@dataclass(frozen=True)
class Tool:
    """One row of tools.toml."""

    words: tuple[str, ...]
    about: str
    places: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    write: bool = False
    json: bool = True
    end: bool = False
    drop: tuple[str, ...] = ()
    """Fields of the JSON that another tool has."""

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        known = _arguments()
        names = [*self.places, *self.options]
        properties = {name: _property(known[name]) for name in names} | ({} if self.write else _PAGE_FIELDS)
        required = [name for name in self.places if name != "settings"]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def command(self, arguments: Mapping[str, Any]) -> list[str]:
        """The words after `ppo-tui`. Raises UserError for an argument that is missing or wrong."""
        schema = self.schema()
        for name in arguments:
            if name not in schema["properties"]:
                raise UserError(f"{name}: there is no such argument", f"use {', '.join(schema['properties'])}")
        for name in schema["required"]:
            if name not in arguments:
                raise UserError(f"{name} is missing", f"give {schema['properties'][name]['description']}")
        words = [*self.words, *(["--json"] if self.json else [])]
        for name, option in self.options.items():
            for value in _values(name, arguments.get(name)):
                words.append(f"{option}={value}")
        placed = [value for name in self.places for value in _values(name, arguments.get(name))]
        return [*words, *placed]


@cache
def tools() -> dict[str, Tool]:
    """All tools by name."""
    return {name: record(Tool, row) for name, row in read_tables(_FILE)["tool"].items()}


@cache
def _arguments() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = read_tables(_FILE)["argument"]
    return found


def run(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    """What the command prints, one page of it, and whether it succeeded. Raises UserError for wrong arguments."""
    offset = arguments.get("offset")
    given = {name: value for name, value in arguments.items() if name != "offset"}
    command = own_command("launcher.cli.main", *tool.command(given))
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"no answer within {TIME_LIMIT:.0f} s", "run the command in a terminal") from None
    said = done.stderr.strip()
    text = _without(done.stdout.strip(), tool.drop) or said or "done"
    return page(text, offset, end=tool.end), done.returncode == 0


def _without(text: str, names: tuple[str, ...]) -> str:
    """JSON lines without these fields."""
    if not names:
        return text
    objects = map(json.loads, text.splitlines())
    return "\n".join(json.dumps({key: value for key, value in each.items() if key not in names}) for each in objects)


def page(text: str, offset: int | None, *, end: bool = False) -> str:
    """At most `PAGE` characters from `offset` on, whole lines where they fit; without one `end` takes the last."""
    if len(text) <= PAGE and not offset:
        return text
    if offset is None and end:
        offset = _line_start(text, len(text) - PAGE)
    begin = min(offset or 0, len(text))
    stop = min(begin + PAGE, len(text))
    if stop < len(text) and (cut := text.rfind("\n", begin, stop)) > begin:
        stop = cut + 1
    notes = []
    if begin:
        notes.append(f"earlier: offset={max(begin - PAGE, 0)}")
    if stop < len(text):
        notes.append(f"later: offset={stop}")
    return f"{text[begin:stop].rstrip()}\n[characters {begin} to {stop} of {len(text)}; {'; '.join(notes)}]"


def _line_start(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or at


def _property(row: Mapping[str, str]) -> dict[str, Any]:
    described = {"type": row["type"], "description": row["about"]}
    return described | ({"items": {"type": "string"}} if row["type"] == "array" else {})


def _values(name: str, value: Any) -> list[str]:
    """The words of an argument. Raises UserError for one that would be read as an option, or has another type."""
    if value is None:
        return []
    wanted = _arguments()[name]["type"]
    listed = value if wanted == "array" and isinstance(value, list) else [value]
    words = []
    for each in listed:
        if (wanted == "integer" and type(each) is not int) or (wanted != "integer" and not isinstance(each, str)):
            raise UserError(f"{name} is {each!r}, but must be of the type {wanted}")
        if str(each).startswith("-") or (name in _PARTS and not _PARTS[name].fullmatch(str(each))):
            raise UserError(f"{name}: {each!r} is not allowed", _arguments()[name]["about"])
        words.append(str(each))
    return words

"""The rows of tests/data/consoles.toml: consoles with known facts about their end, and the diagnosis of each.

`␛` is an escape, `␍` a carriage return. A line `@NAME PART` is a recorded log up to its first line with the part.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tomllib
from console_logs import diagnosis_of, stored

DATA = Path(__file__).parents[1] / "data"


class Ending(NamedTuple):
    """A console, the known facts about its end, and the cause with the lines of its evidence."""

    why: str
    console: bytes
    known: dict[str, Any]
    cause: str
    lines: list[int]


def endings() -> Iterator[Ending]:
    for row, console in _rows("consoles.toml"):
        yield from (Ending(f"{row['why']} {known}", console, known, *found) for known, *found in row["ends"])


def events() -> Iterator[tuple[str, bytes, list[str]]]:
    """Consoles with the reader's events: tests/data/events.toml."""
    yield from ((row["why"], console, row["events"]) for row, console in _rows("events.toml"))


def _rows(table: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    for row in tomllib.loads((DATA / table).read_text("utf-8"))["consoles"]:
        yield row, b"".join(map(_line, row["text"].split("\n")))[:-1]


def _line(line: str) -> bytes:
    if not line.startswith("@"):
        return line.replace("␛", "\x1b").replace("␍", "\r").encode() + b"\n"
    name, _, part = line[1:].partition(" ")
    log = stored(name)
    return log[: log.index(b"\n", log.index(part.encode())) + 1] if part else log


def diagnoses() -> dict[str, str]:
    """All diagnoses, complete, for the golden."""
    return {
        row.why: json.dumps(diagnosis_of(row.console, **row.known).to_json(), indent=0, ensure_ascii=False)
        for row in endings()
    }

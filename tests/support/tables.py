"""Test rows as data: in tests/data/tables, one file per module, with parts named after the tests."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).parents[1] / "data" / "tables"


def tabled(test: Callable[..., Any]) -> Any:
    """Parametrizes a test with the rows in the part of its name."""
    names, rows = parts(test.__module__.rpartition("test_")[2])[test.__name__]
    return pytest.mark.parametrize(names, rows)(test)


@functools.cache
def parts(name: str) -> dict[str, tuple[str, list[Any]]]:
    """The parts of a file: `NAME: PARAMETERS`, then one JSON row per line; `#` starts a comment."""
    found: dict[str, tuple[str, list[Any]]] = {}
    for line in (_FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if line[:1].isalpha():
            title, _, names = line.partition(": ")
            found[title] = (names, rows := [])
        elif line and not line.startswith("#"):
            row, end = json.JSONDecoder().raw_decode(line)
            assert not line[end:].partition("#")[0].strip(), line
            rows.append(row)
    return found

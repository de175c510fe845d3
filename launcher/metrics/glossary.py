"""Meaning and unit of the keys in veRL's step lines: glossary.toml."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from launcher.core.tables import read_tables, record

GLOSSARY = Path(__file__).with_name("glossary.toml")
_OVER = {"mean": "mean over the batch", "max": "highest of the batch", "min": "lowest of the batch"}
_VARIANT = re.compile(r"/(mean|std|best|worst|maj)@(\d+)(?:/(mean|std))?$")
_VARIANTS = {
    "mean": "mean of {n} responses per prompt",
    "std": "standard deviation of {n} responses per prompt",
    "best": "best of {n} responses",
    "worst": "worst of {n} responses",
    "maj": "most frequent of {n} responses",
}
UNKNOWN = "logged by veRL or your reward function"


@dataclass(frozen=True)
class Metric:
    """One-line meaning of a metric, and its unit ("" for a bare number)."""

    meaning: str
    unit: str = ""


@functools.cache
def describe(key: str) -> Metric:
    """Describes a key of veRL's step line; unknown keys have the meaning `UNKNOWN`."""
    name, words = _split(key)
    if metric := _look_up(name):
        return Metric(f"{metric.meaning}; {words}" if words else metric.meaning, metric.unit)
    return _look_up(key) or Metric(UNKNOWN)


def meanings(keys: Iterable[str]) -> dict[str, str]:
    """Keys with their meanings, in glossary order, means first: suggestions for a misspelled name."""
    places = {name: place for place, name in enumerate(_rows())}
    order = sorted(keys, key=lambda key: (places.get(_split(key)[0], len(places)), not key.endswith("/mean"), key))
    return {key: describe(key).meaning for key in order}


def examples() -> list[str]:
    """One key per row, without metrics whose names depend on the run."""
    keys = (
        pattern.replace("*/", "actor/", 1) if pattern.startswith("*/") else pattern.strip("*") for pattern in _rows()
    )
    return [key for key in keys if "*" not in key and not key.endswith("/")]


def _split(key: str) -> tuple[str, str]:
    """The name of the measured quantity, and the ending (`/max`, `/best@4/mean`) in words."""
    if variant := _VARIANT.search(key):
        kind, count, over = variant.groups()
        words = _VARIANTS[kind].format(n=count) if (kind, count) != ("mean", "1") else "one response per prompt"
        return key, f"{words} (standard deviation)" if over == "std" else words
    name, _, over = key.rpartition("/")
    return (name, _OVER[over]) if over in _OVER else (key, "")


@functools.cache
def _rows() -> dict[str, dict[str, str]]:
    return {pattern: row for section in read_tables(GLOSSARY).values() for pattern, row in section.items()}


def _look_up(key: str) -> Metric | None:
    rows = _rows()  # an exact name needs no pattern, which the first frame would compile
    fitting = (row for pattern, row in rows.items() if "*" in pattern and fnmatchcase(key, pattern))
    row = rows.get(key) or next(fitting, None)
    return record(Metric, row) if row else None

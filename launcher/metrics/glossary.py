"""Meaning and unit of the keys in veRL's step lines: glossary.toml."""

import functools
import re
from dataclasses import dataclass
from fnmatch import translate
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
    """The meaning of a metric in one line, and its unit ("" for a bare number)."""

    meaning: str
    unit: str = ""


@functools.cache
def describe(key: str) -> Metric:
    """Describes a key of veRL's step line; the meaning of an unknown one is `UNKNOWN`."""
    name, words = _split(key)
    if metric := _look_up(name):
        return Metric(f"{metric.meaning}; {words}" if words else metric.meaning, metric.unit)
    return _look_up(key) or Metric(UNKNOWN)


def _split(key: str) -> tuple[str, str]:
    """The name of what was measured, and the end of the key (`/max`, `/best@4/mean`) in words."""
    if variant := _VARIANT.search(key):
        kind, count, over = variant.groups()
        words = _VARIANTS[kind].format(n=count) if (kind, count) != ("mean", "1") else "one response per prompt"
        return key, f"{words} (standard deviation)" if over == "std" else words
    name, _, over = key.rpartition("/")
    return (name, _OVER[over]) if over in _OVER else (key, "")


@functools.cache
def _patterns() -> list[tuple[re.Pattern[str], Metric]]:
    sections = read_tables(GLOSSARY).values()
    rows = ((pattern, record(Metric, row)) for section in sections for pattern, row in section.items())
    return [(re.compile(translate(pattern)), metric) for pattern, metric in rows]


def _look_up(key: str) -> Metric | None:
    return next((metric for pattern, metric in _patterns() if pattern.match(key)), None)

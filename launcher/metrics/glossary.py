"""What the keys in veRL's step lines mean, and in which unit they are: glossary.toml."""

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
    """What a metric is: its meaning in one line and its unit ("" for a bare number)."""

    meaning: str
    unit: str = ""


@functools.cache
def describe(key: str) -> Metric:
    """Unit and meaning of a key of veRL's step line; an unknown one says so."""
    figure, words = _taken_apart(key)
    if found := _look_up(figure):
        return Metric(f"{found.meaning}; {words}" if words else found.meaning, found.unit)
    return _look_up(key) or Metric(UNKNOWN)


def _taken_apart(key: str) -> tuple[str, str]:
    """What was measured, and in words what the end of the name says about it (`/max`, `/best@4/mean`)."""
    if found := _VARIANT.search(key):
        kind, count, over = found.groups()
        words = _VARIANTS[kind].format(n=count) if (kind, count) != ("mean", "1") else "one response per prompt"
        return key, f"{words} (standard deviation)" if over == "std" else words
    figure, _, over = key.rpartition("/")
    return (figure, _OVER[over]) if over in _OVER else (key, "")


@functools.cache
def _patterns() -> list[tuple[re.Pattern[str], Metric]]:
    sections = read_tables(GLOSSARY).values()
    rows = ((pattern, record(Metric, row)) for section in sections for pattern, row in section.items())
    return [(re.compile(translate(pattern)), metric) for pattern, metric in rows]


def _look_up(key: str) -> Metric | None:
    return next((metric for pattern, metric in _patterns() if pattern.match(key)), None)

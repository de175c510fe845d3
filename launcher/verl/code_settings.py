"""The veRL code that each setting enables, and the packages that each veRL requires.

From code_settings.json.gz, which `tools/code_settings.py` made from the wheels of 0.5.0 to 0.9.1.
"""

import functools
import gzip
import importlib.resources
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypedDict

import orjson

from launcher.verl.defaults import NEWEST, bundled, leaf, resolve

_WRITTEN = re.compile(r"([\w.+-]+?)(?:(=|>)(.*))?")
_OFF = ("false", "null", "none", "0", "0.0", "", "[]", "{}")
_BROAD = re.compile(
    r"strategy|rollout\.(?:name|mode)|use_v1|trainer_mode|use_legacy_worker_impl|adv_estimator|hybrid_engine"
)


class _Table(TypedDict):
    settings: list[str]
    places: dict[str, list[int]]
    """Path, `path:function` or `import NAME` -> indexes of its settings."""
    calls: dict[str, dict[str, list[int]]]
    """`path:function` -> its calls -> indexes."""
    requires: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Condition:
    """The value of a setting that enables code. Written `KEY` (on), `KEY=` (off), `KEY=a|b` (one of these), `KEY>1`."""

    key: str
    sign: str = ""
    values: tuple[str, ...] = ()

    @classmethod
    def read(cls, written: str) -> "Condition":
        match = _WRITTEN.fullmatch(written)
        assert match is not None, written
        return cls(match[1], match[2] or "", tuple(match[3].split("|")) if match[3] else ())

    def holds(self, value: str) -> bool:
        """Whether the condition holds for a value in command form."""
        plain = value.strip("'\"")
        if self.sign == ">":
            return plain.isdigit() and int(plain) > int(self.values[0])
        return plain in self.values if self.values else (plain.lower() in _OFF) is (self.sign == "=")

    @property
    def broad(self) -> bool:
        """Whether it decides on a whole engine or trainer, or holds by default, which explains little."""
        return _BROAD.search(self.key) is not None or self.holds(default_of(self.key))

    @property
    def without(self) -> str | None:
        """A value that disables the code; None if each also changes other things."""
        if self.broad:
            return None
        default = default_of(self.key)
        off = self.values[0] if self.sign == ">" else "True" if self.sign == "=" else "False"
        return default if default != "null" and not self.holds(default) else off if not self.values else None

    @property
    def words(self) -> str:
        """`KEY=a or b`, `KEY` set, `KEY` off."""
        if self.sign == ">":
            return f"{self.key} > {self.values[0]}"
        return f"{self.key}={' or '.join(self.values) or ('False' if self.sign else 'True')}"


@functools.cache
def default_of(key: str) -> str:
    """A key's default in the newest veRL, in command form; "null" for an unknown key."""
    tree = bundled(NEWEST)
    found, value = leaf(tree, key)
    value = resolve(value, key, lambda name, otherwise: leaf(tree, name)[1] if leaf(tree, name)[0] else otherwise)
    return "null" if not found or value is None else str(value)


def conditions(place: str, code: str = "") -> Iterator[Condition]:
    """The settings that enable a place (`verl/utils/ulysses.py:Gather`, `import liger_kernel.ops`), first those for the
    calls in its line `code`.
    """
    table, path = _table(), place.partition(":")[0]
    calls = table["calls"].get(place, {}).items()
    called = [numbers for name, numbers in calls if re.search(rf"\b{re.escape(name)}\(", code)]
    for numbers in (*called, table["places"].get(place, ()), table["places"].get(path, ())):
        yield from (Condition.read(table["settings"][number]) for number in numbers)


def requirements() -> Mapping[str, Mapping[str, str]]:
    """Required range per package, by veRL's version."""
    return _table()["requires"]


def within(version: str, range_: str) -> bool:
    """Whether a version is in a pip range; True for text that is not a version."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(range_).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True


@functools.cache
def _table() -> _Table:
    packed = importlib.resources.files("launcher.verl").joinpath("code_settings.json.gz").read_bytes()
    table: _Table = orjson.loads(gzip.decompress(packed))
    return table

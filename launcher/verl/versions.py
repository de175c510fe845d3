"""The names of veRL's keys in each version, 0.5.0 to 0.9.1 (versions.toml), and ignored keys (ignored.toml).

Hydra accepts every key of the configuration tree, whether the trainer reads it or not.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launcher.core.errors import UserError
from launcher.core.tables import record, tables_of
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.verl.defaults import bundled, leaf, life
from launcher.verl.defaults import number as number

OLDEST = "0.5.0"
_V1 = "trainer.use_v1"


@dataclass(frozen=True)
class Move:
    """`new` is the name since version `since`, `old` the one before. A final `.` includes all keys below it."""

    new: str
    old: str
    since: str


@dataclass(frozen=True)
class Foreign:
    """Whose key it is: a fork, or veRL before all known versions. `instead` means the same; empty if none does."""

    of: str
    instead: str = ""


@dataclass(frozen=True)
class _Ignored:
    """`key` has no effect since version `since`, although veRL accepts it. A final `.` includes all keys below it."""

    key: str
    since: str
    why: str
    v1: bool = False  # only in the v1 trainer (trainer.use_v1)


def unlisted_before() -> Mapping[str, str]:
    """Keys that versions before the given one read (with a `+`) although their configuration lacks them."""
    unlisted: dict[str, str] = _tables()["unlisted"]
    return unlisted


@functools.cache
def moves() -> tuple[Move, ...]:
    """All renamed keys."""
    return tuple(record(Move, row) for row in _tables()["moves"])


@functools.cache
def foreign() -> Mapping[str, Foreign]:
    """Keys that no known version has, with the newest names of the blocks above them."""
    return {key: record(Foreign, row) for key, row in _tables()["foreign"].items()}


@functools.cache
def _ignored() -> tuple[_Ignored, ...]:
    return tuple(record(_Ignored, row) for row in tables_of(__file__, "ignored.toml")["ignored"])


@functools.cache
def _tables() -> Mapping[str, Any]:
    return tables_of(__file__)


@functools.lru_cache(maxsize=8192)
def newest(key: str) -> str:
    """The key as the newest version names it."""
    return _renamed(key, [(move.old, move.new) for move in moves()])


@functools.lru_cache(maxsize=8192)
def at(key: str, version: str) -> str:
    """The newest name `key` as `version` names it. Raises UserError when that version has no such key.

    A version older than all known ones, which only a fork may have, is treated like the oldest.
    """
    have = max(number(version), number(OLDEST))
    name = _renamed(key, [(move.new, move.old) for move in moves() if have < number(move.since)])
    since, gone = life(name) if life(name)[0] else life(key)
    if since and have < number(since) and not unlisted(key, version):
        raise UserError(f"veRL {version} has no '{key}'; it was added in {since}", f"update veRL, or delete {key}")
    if gone and have >= number(gone) and not unlisted(key, version):
        raise UserError(f"veRL {version} has no '{key}'; it was removed in {gone}", f"delete {key}")
    return name


def unlisted(key: str, version: str) -> bool:
    """Whether `version` accepts the newest name `key` without listing it, so that it needs a `+`.

    Keys below a block that is free for the user in this version (`engine_kwargs.vllm`) are also accepted.
    """
    if (listed_from := unlisted_before().get(key)) is not None:
        return number(version) < number(listed_from)
    listed = bundled(version)
    return life(key)[0] != "" and not leaf(listed, key)[0] and leaf(listed, key.rpartition(".")[0])[1] == {}


def ignored(keys: Mapping[str, Any], version: str) -> Iterator[tuple[str, str]]:
    """The veRL keys (as `version` names them, with their values) that have no effect, and why."""
    legacy = keys.get(_V1) is False
    for key in keys:
        if legacy and key.startswith("trainer.v1."):
            yield key, f"the legacy trainer ignores it ({_V1}=False)"
        for rule in _ignored():
            if _matches(key, rule.key) and number(version) >= number(rule.since) and not (rule.v1 and legacy):
                yield key, rule.why


def step_contains(keys: Iterable[str]) -> frozenset[str] | None:
    """The timers of validation and saving within veRL's own time of a step, by its configuration; None if unknown."""
    known = tuple(keys)
    for row in _tables()["step_contains"]:
        if any(key.startswith(row["block"]) for key in known):
            return frozenset(row["timers"])
    return None


def check(version: str) -> None:
    """Raises UserError for a veRL that is too old to be launched."""
    if number(version) < number(OLDEST):
        raise UserError(
            f"veRL {version or '(unknown version)'} is not supported", f"use {OLDEST} or newer, preferably {SUPPORTED}"
        )


def _renamed(key: str, pairs: list[tuple[str, str]]) -> str:
    return next((target + key[len(source) :] for source, target in pairs if _matches(key, source)), key)


def _matches(key: str, name: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name

"""veRL's key names per version, 0.5.0 to 0.9.1 (versions.toml), and ignored keys (ignored.toml).

Hydra accepts every key of the configuration tree, even if the trainer does not read it.
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
    """`new`: the name since version `since`; `old`: the previous one. A final `.` includes all keys below it."""

    new: str
    old: str
    since: str


@dataclass(frozen=True)
class Foreign:
    """The owner of a key: a fork, or veRL before all known versions. `instead`: the equivalent key, or empty."""

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
    """Keys of no known version, with the newest names of their parent blocks."""
    return {key: record(Foreign, row) for key, row in _tables()["foreign"].items()}


@functools.cache
def _ignored() -> tuple[_Ignored, ...]:
    return tuple(record(_Ignored, row) for row in tables_of(__file__, "ignored.toml")["ignored"])


@functools.cache
def _tables() -> Mapping[str, Any]:
    return tables_of(__file__)


@functools.lru_cache(maxsize=8192)
def newest(key: str) -> str:
    """The newest version's name of a key."""
    return _renamed(key, [(move.old, move.new) for move in moves()])


@functools.lru_cache(maxsize=8192)
def at(key: str, version: str) -> str:
    """`version`'s name of the newest name `key`. Raises UserError if that version lacks the key.

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

    This includes keys below a free-form block of this version (`engine_kwargs.vllm`).
    """
    if (listed_from := unlisted_before().get(key)) is not None:
        return number(version) < number(listed_from)
    listed = bundled(version)
    return life(key)[0] != "" and not leaf(listed, key)[0] and leaf(listed, key.rpartition(".")[0])[1] == {}


def ignored(keys: Mapping[str, Any], version: str) -> Iterator[tuple[str, str]]:
    """Keys without an effect (with `version`'s names and their values), and the reasons."""
    legacy = keys.get(_V1) is False
    for key in keys:
        if legacy and key.startswith("trainer.v1."):
            yield key, f"the legacy trainer ignores it ({_V1}=False)"
        for rule in _ignored():
            if _matches(key, rule.key) and number(version) >= number(rule.since) and not (rule.v1 and legacy):
                yield key, rule.why


def step_contains(keys: Iterable[str]) -> frozenset[str] | None:
    """The timers of validation and saving included in veRL's step time, by its configuration; None if unknown."""
    known = tuple(keys)
    for row in _tables()["step_contains"]:
        if any(key.startswith(row["block"]) for key in known):
            return frozenset(row["timers"])
    return None


def check(version: str) -> None:
    """Raises UserError for a veRL version that is too old to be launched."""
    if number(version) < number(OLDEST):
        raise UserError(
            f"veRL {version or '(unknown version)'} is not supported", f"use {OLDEST} or newer, preferably {SUPPORTED}"
        )


def _renamed(key: str, pairs: list[tuple[str, str]]) -> str:
    return next((target + key[len(source) :] for source, target in pairs if _matches(key, source)), key)


def _matches(key: str, name: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name

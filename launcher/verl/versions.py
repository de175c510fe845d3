"""What veRL's keys are called in each version, 0.5.0 to 0.9.1: versions.toml."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError
from launcher.core.tables import read_tables, record
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.verl.defaults import bundled, leaf, life
from launcher.verl.defaults import number as number

OLDEST = "0.5.0"


@dataclass(frozen=True)
class Move:
    """`new` is the name from version `since` on, `old` before. One that ends in `.` stands for all below."""

    new: str
    old: str
    since: str


def unlisted_before() -> Mapping[str, str]:
    """Keys that versions before that one read although their configuration does not list them: with a `+`."""
    unlisted: dict[str, str] = _tables()["unlisted"]
    return unlisted


@functools.cache
def moves() -> tuple[Move, ...]:
    """All renamed keys."""
    return tuple(record(Move, row) for row in _tables()["moves"])


@functools.cache
def _tables() -> dict[str, Any]:
    return read_tables(Path(__file__).with_suffix(".toml"))


def newest(key: str) -> str:
    """The key as the newest version calls it."""
    return _renamed(key, [(move.old, move.new) for move in moves()])


@functools.lru_cache(maxsize=8192)
def at(key: str, version: str) -> str:
    """The newest name `key` as `version` calls it. Raises UserError when that version has no such key.

    A version older than all that are known, which only a fork may have, is taken for the oldest.
    """
    have = max(number(version), number(OLDEST))
    name = _renamed(key, [(move.new, move.old) for move in moves() if have < number(move.since)])
    since, gone = life(name) if life(name)[0] else life(key)
    if since and have < number(since) and not unlisted(key, version):
        raise UserError(f"veRL {version} has no '{key}'; it was added in {since}")
    if gone and have >= number(gone) and not unlisted(key, version):
        raise UserError(f"veRL {version} has no '{key}'; it was removed in {gone}")
    return name


def unlisted(key: str, version: str) -> bool:
    """Whether `version` takes the newest name `key` without listing it, so that it needs a `+`.

    Besides those it reads, these are keys that other versions list in a block which is the user's own here
    (`engine_kwargs.vllm`).
    """
    if (listed_from := unlisted_before().get(key)) is not None:
        return number(version) < number(listed_from)
    listed = bundled(version)
    return life(key)[0] != "" and not leaf(listed, key)[0] and leaf(listed, key.rpartition(".")[0])[1] == {}


def check(version: str) -> None:
    """Raises UserError for a veRL that is too old to be launched."""
    if number(version) < number(OLDEST):
        raise UserError(
            f"veRL {version or '(unknown version)'} is not supported", f"use {OLDEST} or newer, preferably {SUPPORTED}"
        )


def _renamed(key: str, pairs: list[tuple[str, str]]) -> str:
    for source, target in pairs:
        if _matches(key, source):
            return target + key[len(source) :]
    return key


def _matches(key: str, name: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name

"""What can be typed under `overrides:`: a veRL version's keys, and what is meant by one that it lacks."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable
from pathlib import Path

from launcher.errors import UserError
from launcher.preset import hydra, versions
from launcher.preset.defaults import NEWEST, default_of, leaf, leaves, tree
from launcher.preset.layers import ROOTS
from launcher.preset.schema import BY_KEY
from launcher.text import nearest

__all__ = ["default_of", "keys", "unknown_keys"]

# What is added below these is handed on as it is, or read without being listed anywhere.
_OPEN = (
    "ray_kwargs.ray_init", "reward.custom_reward_function.reward_kwargs",
    "custom_reward_function.reward_kwargs",
)  # fmt: skip


@functools.cache
def _sorted(version: str, verl: Path | None) -> tuple[str, ...]:
    return tuple(sorted(leaves(tree(version, verl))))


def keys(prefix: str = "", version: str = NEWEST, verl: Path | None = None) -> list[str]:
    """The keys of veRL `version` for what has been typed: those that begin so, else those that contain it.

    A leading `+` is left out of the comparison. `verl` is the folder of the installed veRL; the first call
    for it takes half a second.
    """
    typed = prefix.lstrip("+").lower()
    known = _sorted(version, verl)
    begin = [key for key in known if key.lower().startswith(typed)]
    return begin or [key for key in known if typed in key.lower()]


def unknown_keys(overrides: Iterable[str], version: str, verl: Path | None = None) -> list[tuple[str, str]]:
    """The keys under `overrides:` that veRL `version` does not have, each with a sentence that says so.

    Without `+` Hydra refuses such a key at the start. With `+` it takes anything: there only what looks like
    a slip is told. Fields of a preset are always known, and need not be asked about.
    """
    found = []
    for spelled in overrides:
        prefix, key = hydra.split_key(spelled, "overrides")
        try:
            name = versions.at(key, version)
        except UserError as error:
            found.append((spelled, str(error)))
            continue
        if _known(name, version, verl):
            continue
        near = _near(name, version, verl)
        if prefix and near and _alike(name, near):
            found.append(
                (spelled, f"'{spelled}' adds a key that veRL {version} does not read: is '{near}' meant?")
            )
        elif not prefix:
            meant = f"; is '{near}' meant?" if near else ""
            found.append((spelled, f"veRL {version} has no key '{key}'{meant} (`+{key}` would add it)"))
    return found


def _known(name: str, version: str, verl: Path | None) -> bool:
    if name in BY_KEY or any(name.startswith(f"{block}.") for block in _OPEN):
        return True
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        there, value = leaf(tree(version, verl), ".".join(parts[:count]))
        if there:  # an empty block, or one that follows another, takes anything below it
            return count == len(parts) or value == {} or (isinstance(value, str) and "${" in value)
    return False


def _near(name: str, version: str, verl: Path | None) -> str | None:
    """The nearest key: among those of the same block first, for there a slip is most likely."""
    known = _sorted(version, verl)
    block, _, last = name.rpartition(".")
    here = {key.rpartition(".")[2]: key for key in known if key.rpartition(".")[0] == block}
    near = nearest(last, here)
    if near:
        return here[near]
    same_name = [key for key in known if key.rpartition(".")[2] == last]
    return same_name[0] if len(same_name) == 1 else nearest(name, [*known, *ROOTS])


def _alike(name: str, near: str) -> bool:
    """Whether two keys of one block differ by a slip of the finger only."""
    block, _, last = name.rpartition(".")
    other_block, _, other = near.rpartition(".")
    return block == other_block and difflib.SequenceMatcher(None, last, other).ratio() >= 0.85

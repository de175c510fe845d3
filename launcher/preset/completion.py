"""What can be typed under `overrides:`: a veRL version's keys; `defaults.default_of` has their values."""

from __future__ import annotations

import functools
from pathlib import Path

from launcher.preset.defaults import NEWEST, leaves, tree


def keys(typed: str = "", version: str = NEWEST, verl: Path | None = None) -> list[str]:
    """The keys of veRL `version` that begin with what has been typed, else those that contain it.

    A leading `+` is left out of the comparison. `verl` is the folder of the installed veRL; the first call
    for it takes half a second.
    """
    typed = typed.lstrip("+").lower()
    known = _known(version, verl)
    begin = [key for key in known if key.lower().startswith(typed)]
    return begin or [key for key in known if typed in key.lower()]


@functools.cache
def _known(version: str, verl: Path | None) -> tuple[str, ...]:
    return tuple(sorted(leaves(tree(version, verl))))

"""Keys that a veRL version accepts but ignores: ignored.toml.

Hydra accepts every key of the configuration tree, whether the trainer reads it or not. A key stands there
under its own name, not the newest one: `versions` already turns old names into those that are read.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.core.tables import read_tables, record
from launcher.verl.defaults import number

_V1 = "trainer.use_v1"


@dataclass(frozen=True)
class _Ignored:
    """`key` has no effect from version `since` on. One that ends in `.` stands for all below."""

    key: str
    since: str
    why: str
    v1: bool = False  # only in 0.9's new trainer, which trainer.use_v1=False leaves


@functools.cache
def _rules() -> tuple[_Ignored, ...]:
    return tuple(record(_Ignored, row) for row in read_tables(Path(__file__).with_suffix(".toml"))["ignored"])


def ignored(keys: Mapping[str, Any], version: str) -> list[tuple[str, str]]:
    """Those of the veRL keys (as `version` calls them, with their values) that have no effect, and why."""
    old_trainer = keys.get(_V1) is False
    found = []
    for key in keys:
        if old_trainer and key.startswith("trainer.v1."):
            found.append((key, f"the old trainer does not read it ({_V1}=False)"))
        for rule in _rules():
            hit = key.startswith(rule.key) if rule.key.endswith(".") else key == rule.key
            if hit and number(version) >= number(rule.since) and not (rule.v1 and old_trainer):
                found.append((key, rule.why))
    return found

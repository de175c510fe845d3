"""Finds veRL's example script that is nearest to a run, and the settings that differ."""

from __future__ import annotations

import functools
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from launcher import verl
from launcher.preset.effective import EffectiveConfig
from launcher.preset.translate import OURS
from launcher.record.info import Edit
from launcher.verl.config import ENGINE, ESTIMATOR

_FAR = 1000  # an example with another algorithm or engine
_OTHER = {ESTIMATOR: _FAR, ENGINE: _FAR // 10, "actor_rollout_ref.actor.strategy": _FAR // 10}
_UNCOUNTED = ("trainer.", "ray_kwargs.", "transfer_queue.")  # say where and how long it runs, not what


@dataclass(frozen=True)
class Nearest:
    """An example by its path in veRL's repository at `tag`; `diff` has its value as before, the run's as now."""

    path: str
    tag: str
    diff: tuple[Edit, ...]

    @property
    def url(self) -> str:
        return f"https://github.com/verl-project/verl/blob/{self.tag}/{self.path}"


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = orjson.loads(
        gzip.decompress((Path(verl.__path__[0]) / "verl_examples.json.gz").read_bytes())
    )
    return table


def nearest(config: EffectiveConfig) -> Nearest:
    """The example with the same algorithm and engine and the fewest other differences to a configuration."""
    table = _table()
    found = {path: _differences(config, example) for path, example in table["examples"].items()}
    path = min(found, key=lambda each: (sum(_OTHER.get(edit.key, 1) for edit in found[each]), each))
    return Nearest(path, table["tag"], tuple(found[path]))


def _differences(config: EffectiveConfig, example: Mapping[str, Any]) -> list[Edit]:
    """The differing keys: those of the example, and those that the run changes from veRL's default."""
    plain = _default(config.version)
    ours = {key for key in config.settings if not key.startswith(_UNCOUNTED) and key not in OURS and not _personal(key)}
    return [
        Edit(key, before, now)
        for key in sorted(ours | example.keys())
        for before, now in [(example.get(key, plain.get(key)), config.get(key))]
        if before != now
    ]


@functools.cache
def _default(version: str) -> EffectiveConfig:
    return EffectiveConfig(version=version)


def _personal(key: str) -> bool:
    return key.endswith(("path", "_files", "_name", "_dir"))

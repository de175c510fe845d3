"""veRL's advantage estimators and policy losses, from algorithms.toml.

Names registered by a user's module are used unchanged: nothing here limits the names.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from launcher.core.tables import record, tables_of


@dataclass(frozen=True)
class Algorithm:
    """An estimator or loss. `group`: compares several responses per prompt, so that rollout.n must be above 1. `lacks`:
    an input that the v1 trainer does not pass, so that it needs the legacy trainer.
    """

    name: str
    meaning: str
    paper: str
    since: str = "0.4.1"
    group: bool = False
    lacks: str = ""


def estimators() -> Mapping[str, Algorithm]:
    """Advantage estimators by veRL's name."""
    return _read()["estimators"]


def losses() -> Mapping[str, Algorithm]:
    """Policy losses by veRL's name."""
    return _read()["losses"]


@functools.cache
def _read() -> dict[str, dict[str, Algorithm]]:
    tables = tables_of(__file__)
    return {
        kind: {name: record(Algorithm, row, name=name) for name, row in rows.items()} for kind, rows in tables.items()
    }

"""The advantage estimators and policy losses of veRL, from algorithms.toml.

Names that a user's module registers in veRL are used as they are: nothing here limits the names.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from launcher.core.tables import record, tables_of


@dataclass(frozen=True)
class Algorithm:
    """An estimator or a loss. `group`: it compares several responses to a prompt, so rollout.n must be above 1. `lacks`
    is an input that the v1 trainer does not pass, so that only the legacy trainer runs it.
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

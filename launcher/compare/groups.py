"""Runs that repeat each other: the same settings but for seeds, drawn as one mean with its range."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from launcher.metrics.store import Series
from launcher.record.info import RunInfo
from launcher.runs.watch.run_settings import settings

_VERSIONS = "versions."


class Band(NamedTuple):
    """Mean, lowest and highest value of several runs at the steps that all of them have."""

    mean: Series
    low: Series
    high: Series


def groups(infos: Sequence[RunInfo]) -> list[int]:
    """The group of each run, counted from 0 in the order of the runs; one without a preset is alone."""
    found: dict[object, int] = {}
    return [found.setdefault(_alike(info, place), len(found)) for place, info in enumerate(infos)]


def _alike(info: RunInfo, place: int) -> object:
    if info.preset is None:
        return place
    known = settings(info).items()
    return frozenset(
        (key, repr(value)) for key, value in known if not key.endswith("seed") and not key.startswith(_VERSIONS)
    )


def band(runs: Sequence[Series]) -> Band:
    """The values of several runs, step by step; a step is left out that one of them has no finite value of."""
    found = Band(Series(), Series(), Series())
    steps = set(runs[0].steps).intersection(*(run.steps for run in runs[1:]))
    for step in sorted(steps):
        values = [value for run in runs if (value := run.at(step)) is not None and math.isfinite(value)]
        if len(values) == len(runs):
            found.mean.append(step, math.fsum(values) / len(values))
            found.low.append(step, min(values))
            found.high.append(step, max(values))
    return found

"""How a run looks at three sizes and in two themes: a usual one, one with little and one with much to show.

After a wanted change: pytest tests/tui/test_snapshots_sizes.py --snapshot-update.
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot

SIZES = [(80, 24), (160, 48)]
THEMES = ["dark", "light"]
Compare = Callable[..., bool]


async def ready(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def long(make: SimpleNamespace) -> Path:
    """10,000 steps."""
    steps = make.made_up(
        10_000,
        critic__score__mean=lambda step: 1 - math.exp(-step / 2500) + math.sin(step) / 20,
        actor__kl_loss=lambda step: step / 50_000,
        actor__entropy=lambda step: 0.5 * math.exp(-step / 8000),
        perf__throughput=lambda step: 1700 + 100 * math.sin(step / 37),
    )
    state = make.running(step=10_000, total=20_000, checks=make.checks())
    return Path(make.run(attempts=[steps], state=state, machine=[make.gpus(1)], log=make.log))


def diverged(make: SimpleNamespace) -> Path:
    """Nothing but NaN."""
    names = ("critic__score__mean", "actor__kl_loss", "actor__entropy", "perf__throughput")
    found = ("CRITICAL", "critic/score/mean is nan since step 1")
    state = make.running(step=30, verdict="CRITICAL", flags=("NUM-1",), checks=make.checks(NUM_1=found))
    steps = make.made_up(30, **dict.fromkeys(names, math.nan))
    return Path(make.run(attempts=[steps], state=state, machine=[make.gpus(1)], log=make.log))


def empty(make: SimpleNamespace) -> Path:
    """Queued: nothing has been written but that."""
    nothing = dict.fromkeys(("phase", "step", "total", "eta", "rollout", "step_seconds"))
    return Path(make.run(state=make.running(state="queued", checks=(), verdict="WARM", **nothing)))


def failed(make: SimpleNamespace) -> Path:
    """Ended before the first step."""
    why = "the model Qwen/Qwen2.5-0.5B-Instruct was not found: download it, or give a folder in model.path"
    log = "(TaskRunnerV1) loading\nTraceback (most recent call last):\nOSError: not found\n"
    state = make.ended("failed", step=None, error=why, checks=(), verdict="WARM")
    return Path(make.run(state=state, machine=[make.host()], log=log))


@pytest.mark.parametrize(("size", "theme"), itertools.product(SIZES, THEMES))
def test_usual(snap_compare: Compare, make: SimpleNamespace, warned: Path, size: tuple[int, int], theme: str) -> None:
    assert snap_compare(make.app(warned, theme=theme), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [long, diverged, empty, failed], ids=lambda kind: kind.__name__)
def test_unusual(
    snap_compare: Compare, make: SimpleNamespace, kind: Callable[..., Path], size: tuple[int, int]
) -> None:
    assert snap_compare(make.app(kind(make)), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("theme", ["colour-blind", "terminal"])
def test_the_other_themes(snap_compare: Compare, make: SimpleNamespace, warned: Path, theme: str) -> None:
    assert snap_compare(make.app(warned, theme=theme), terminal_size=SIZES[0], run_before=ready)

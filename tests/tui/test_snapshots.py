"""How the screens look. After a wanted change: pytest tests/tui/test_snapshots.py --snapshot-update."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot

from launcher.record.standstill import Standstill
from launcher.runs.watch.stalls import sentence

SIZES = [(80, 24), (160, 48)]
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


def refused(make: SimpleNamespace) -> Path:
    """Ended before the first step."""
    why = "the model Qwen/Qwen2.5-0.5B-Instruct was not found: download it, or give a folder in model.path"
    log = "(TaskRunnerV1) loading\nTraceback (most recent call last):\nOSError: not found\n"
    state = make.ended("failed", step=None, error=why, checks=(), verdict="WARM")
    return Path(make.run(state=state, machine=[make.host()], log=log))


@pytest.mark.parametrize("size", SIZES)
def test_warned(snap_compare: Compare, make: SimpleNamespace, warned: Path, size: tuple[int, int]) -> None:
    assert snap_compare(make.app(warned), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", SIZES)
def test_failed(snap_compare: Compare, make: SimpleNamespace, size: tuple[int, int]) -> None:
    why = "the GPU ran out of memory while the engine woke up: lower rollout.gpu_memory_utilization"
    run = make.run(
        attempts=[make.recorded(30)],
        state=make.ended(
            "failed",
            step=30,
            error=why,
            verdict="CRITICAL",
            flags=("ERR-1", "MEM-1"),
            checks=make.checks(
                ERR_1=("CRITICAL", "CUDA out of memory. Tried to allocate 2.1 GiB"),
                MEM_1=("WARN", "23.9 of 24.0 GB reserved, growing"),
            ),
        ),
        machine=[make.gpus(8)],
        log=make.log,
    )
    assert snap_compare(make.app(run), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", SIZES)
def test_a_run_that_stands_still(snap_compare: Compare, make: SimpleNamespace, size: tuple[int, int]) -> None:
    found = Standstill(
        "reward",
        "The reward function does not return",
        since=make.start + 200,
        noticed=make.start + 260,
        stage="rollout",
        usual=4.0,
        evidence=("/home/me/project/rewards/judge.py:31 ask_judge, in ray::RewardLoopWorker.compute_score (pid 4711)",),
    )
    state = make.running(stalled=True, stall=sentence(found, make.start + 270), standstill=found)
    run = make.run(attempts=[make.recorded(62)], state=state, machine=[make.gpus(1)], log=make.log)
    assert snap_compare(make.app(run), terminal_size=size, run_before=ready)


def test_starting(snap_compare: Compare, make: SimpleNamespace) -> None:
    state = make.running(
        state="starting", phase="model", phase_since=make.start + 185, step=None, checks=(), verdict="WARM"
    )
    run = make.run(state=state, machine=[make.gpus(1)], log=make.log)
    assert snap_compare(make.app(run), terminal_size=(80, 24), run_before=ready)


def test_cpu_run_that_finished(snap_compare: Compare, make: SimpleNamespace) -> None:
    run = make.run(
        attempts=[make.recorded(80)],
        state=make.ended("finished", step=80),
        machine=[make.host()],
        log=make.log,
        argv=["python", "-u", "-m", "verl.trainer.main_ppo", "trainer.device=cpu"],
    )
    assert snap_compare(make.app(run), terminal_size=(80, 24), run_before=ready)


def test_without_kl(snap_compare: Compare, make: SimpleNamespace) -> None:
    steps = make.recorded(62)
    for record in steps:
        record.data.pop("actor/kl_loss", None)
    run = make.run(attempts=[steps], machine=[make.gpus(2)], log=make.log)
    assert snap_compare(make.app(run), terminal_size=(80, 24), run_before=ready)


@pytest.mark.parametrize(
    "look", [{"theme": "light"}, {"theme": "terminal"}, {"ascii": True}], ids=["light", "terminal", "ascii"]
)
def test_looks(snap_compare: Compare, make: SimpleNamespace, warned: Path, look: dict[str, Any]) -> None:
    assert snap_compare(make.app(warned, **look), terminal_size=(80, 24), run_before=ready)


@pytest.mark.parametrize("size", [(40, 12), (20, 5)])
def test_small(snap_compare: Compare, make: SimpleNamespace, warned: Path, size: tuple[int, int]) -> None:
    assert snap_compare(make.app(warned), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("key", ["question_mark", "x", "K"], ids=["help", "stop", "reference"])
def test_over_the_dashboard(snap_compare: Compare, make: SimpleNamespace, warned: Path, key: str) -> None:
    async def pressed(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press(key)
        await pilot.pause(0.2)

    assert snap_compare(make.app(warned), terminal_size=(80, 24), run_before=pressed)


@pytest.mark.parametrize(
    ("kind", "size"),
    [*((kind, SIZES[0]) for kind in (long, diverged, empty, refused)), (long, SIZES[1]), (empty, SIZES[1])],
    ids=lambda each: each.__name__ if callable(each) else f"{each[0]}x{each[1]}",
)
def test_unusual(
    snap_compare: Compare, make: SimpleNamespace, kind: Callable[..., Path], size: tuple[int, int]
) -> None:
    assert snap_compare(make.app(kind(make)), terminal_size=size, run_before=ready)

"""How the screens look. After a wanted change: pytest tests/tui/test_snapshots.py --snapshot-update."""

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


@pytest.mark.parametrize("look", [{"theme": "light"}, {"ascii": True}], ids=["light", "ascii"])
def test_looks(snap_compare: Compare, make: SimpleNamespace, warned: Path, look: dict[str, Any]) -> None:
    assert snap_compare(make.app(warned, **look), terminal_size=(80, 24), run_before=ready)


@pytest.mark.parametrize("size", [(40, 12), (20, 5)])
def test_small(snap_compare: Compare, make: SimpleNamespace, warned: Path, size: tuple[int, int]) -> None:
    assert snap_compare(make.app(warned), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", SIZES)
def test_reference(snap_compare: Compare, make: SimpleNamespace, warned: Path, size: tuple[int, int]) -> None:
    async def asked(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("K")
        await pilot.pause(0.2)

    assert snap_compare(make.app(warned), terminal_size=size, run_before=asked)


@pytest.mark.parametrize("key", ["h", "question_mark", "x"], ids=["checks", "help", "stop"])
def test_over_the_dashboard(snap_compare: Compare, make: SimpleNamespace, warned: Path, key: str) -> None:
    async def pressed(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press(key)
        await pilot.pause(0.2)

    assert snap_compare(make.app(warned), terminal_size=(80, 24), run_before=pressed)

"""The page of the time: lanes of a step, stages, and what would save most."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import span_runs
from commands import call
from pilots import until
from textual.pilot import Pilot

from launcher.metrics.records import StepRecord
from launcher.preset.files import load
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import RunDir
from launcher.record.machine import GpuSample
from tui.pages.editor.screen import EditorScreen
from tui.pages.time.screen import NOTHING, STEPLESS, TIMELESS, TimeScreen, TimeView

GIB = 1 << 30
METRICS = {
    **{"response_length/mean": 180.0, "response_length/max": 256.0, "prompt_length/mean": 90.0},
    "perf/total_num_tokens": 276_480.0,
}


def toy(make: SimpleNamespace, *, spans: bool = True) -> Path:
    """The recorded toy run."""
    preset = load("toy-cpu", ("trainer.save_every=3", "trainer.validate_every=3")).snapshot()
    state = make.ended("finished", step=6, total=6, verdict="WARM", checks=())
    path: Path = make.run(attempts=[span_runs.recorded_steps()], state=state, preset=preset)
    if spans:
        span_runs.write_spans(RunDir(path).attempt(1), span_runs.recorded())
    return path


def gpus(make: SimpleNamespace) -> Path:
    """40 steps on eight GPUs, whose rollouts become longer."""
    records = []
    for step in range(1, 41):
        gen = 9.5 * (1 + 0.03 * step)
        rest = {"old_log_prob": 1.5, "ref": 1.2, "update_critic": 2.0, "update_actor": 4.0, "update_weights": 0.8}
        times = {"gen": gen, "step": gen + 10, **rest, **({"save_checkpoint": 3.0} if step % 4 == 0 else {})}
        data = METRICS | {f"timing_s/{name}": value for name, value in times.items()}
        records.append(StepRecord(step, span_runs.START + 20 * step, None, data))
    name = "NVIDIA H100 80GB HBM3"
    sample = [GpuSample(at, name, used=60 * GIB, total=80 * GIB, util=90, run_used=59 * GIB) for at in range(8)]
    path: Path = make.run(
        name="gsm8k-0.5b-8gpu",
        attempts=[records],
        state=make.ended("finished", step=40, total=40, checks=()),
        preset=load("gsm8k-0.5b-8gpu").snapshot(),
        machine=[make.host(gpus=tuple(sample))],
    )
    span_runs.write_spans(RunDir(path).attempt(1), span_runs.made_up(40))
    return path


RUNS: dict[str, Callable[[SimpleNamespace], Path]] = {
    "toy": toy,
    "gpus": gpus,
    "rough": lambda make: toy(make, spans=False),
}


async def shown(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.press("t")
    await pilot.pause(0.2)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def text(pilot: Pilot[Any]) -> str:
    view = pilot.app.screen.query_one(TimeView)
    return "\n".join("".join(part for part, _ in row) for row in view.draw(*view.size))


async def test_arrows_show_other_steps_and_f_the_newest(make: SimpleNamespace) -> None:
    app = make.app(toy(make))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert isinstance(app.screen, TimeScreen)
        assert "Step 6  5.39 s" in text(pilot) and "validation" in text(pilot)
        await pilot.press("left", "left")
        assert "Step 4  3.28 s" in text(pilot)
        for _ in range(9):
            await pilot.press("left")
        assert "Step 1  " in text(pilot)
        await pilot.press("f")
        assert "Step 6  " in text(pilot)
        await pilot.press("t")
        assert not isinstance(app.screen, TimeScreen)


async def test_new_spans_are_shown_as_they_come(make: SimpleNamespace) -> None:
    path = toy(make, spans=False)
    app = make.app(path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert "no trace of this step was read" in text(pilot) and "rank 0" not in text(pilot)
        span_runs.write_spans(RunDir(path).attempt(1), span_runs.recorded())
        await until(pilot, lambda: "rank 0" in text(pilot))


async def test_e_edits_with_the_first_fix(make: SimpleNamespace) -> None:
    app = make.app(toy(make))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await until(pilot, lambda: "raise trainer.validate_every from 3 to 6" in text(pilot))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        assert app.screen.draft.loaded().preset.trainer.validate_every == 6


async def test_the_steps_of_earlier_attempts_are_shown_as_by_the_command(make: SimpleNamespace) -> None:
    path = toy(make)
    LaunchRecord(resume_step=6).write(RunDir(path).add_attempt().launch)  # it has not trained a step yet
    command = call(["time", path.name])[0].decode()
    app = make.app(path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await until(pilot, lambda: "rank 0" in text(pilot))
        assert "Step 6  5.39 s" in text(pilot) and "step 6: 5.39 s" in command and "rank 0" in command


@pytest.mark.parametrize(
    ("steps", "state", "words"),
    [
        ([], "running", NOTHING),
        ([], "stopped", STEPLESS),
        ([], "imported", NOTHING),
        ([StepRecord(1, 1.0, None, {"loss": 1.0})], "stopped", TIMELESS),
    ],
    ids=["live", "ended", "a log that stops", "no timers"],
)
async def test_without_times_the_page_says_why(
    make: SimpleNamespace, steps: list[StepRecord], state: str, words: str
) -> None:
    found = make.running(step=None) if state == "running" else make.ended(state)
    found = replace(found, outcome="running") if state == "imported" else found
    app = make.app(make.run(attempts=[steps], state=found))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert words[:30] in text(pilot)


@pytest.mark.parametrize("size", [(20, 5), (200, 60)])
@pytest.mark.parametrize("kind", RUNS)
async def test_any_size_will_do(make: SimpleNamespace, kind: str, size: tuple[int, int]) -> None:
    app = make.app(RUNS[kind](make))
    async with app.run_test(size=size) as pilot:
        await shown(pilot)
        assert "Step" in text(pilot)


@pytest.mark.parametrize(
    ("kind", "size"),
    [*((kind, (80, 24)) for kind in RUNS), ("gpus", (160, 48))],
    ids=[*(f"80x24-{kind}" for kind in RUNS), "160x48-gpus"],
)
def test_looks(snap_compare: Callable[..., bool], make: SimpleNamespace, kind: str, size: tuple[int, int]) -> None:
    assert snap_compare(make.app(RUNS[kind](make)), terminal_size=size, run_before=shown)

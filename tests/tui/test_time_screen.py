"""The page of the time, and the split of a step: lanes, stages, and what would save most."""

import gzip
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import span_runs
from commands import call
from pilots import words

from launcher.metrics.records import StepRecord, read_metrics
from launcher.metrics.store import SeriesStore
from launcher.metrics.timing import last_split, usual_split
from launcher.preset.files import load
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import RunDir
from launcher.record.machine import GpuSample
from launcher.timing.stages import STAGES
from tui.kit.drawing.rows import width
from tui.pages.dashboard.timing_split import TimingSplit
from tui.pages.time.screen import NOTHING, STEPLESS, TIMELESS

GIB = 1 << 30


METRICS = {
    **{"response_length/mean": 180.0, "response_length/max": 256.0, "prompt_length/mean": 90.0},
    "perf/total_num_tokens": 276_480.0,
}


def toy(make, *, spans=True):
    """The recorded toy run."""
    preset = load("toy-cpu", ("trainer.save_every=3", "trainer.validate_every=3")).snapshot()
    state = make.ended("finished", step=6, total=6, verdict="WARM", checks=())
    path = make.run(attempts=[span_runs.recorded_steps()], state=state, preset=preset)
    if spans:
        span_runs.write_spans(RunDir(path).attempt(1), span_runs.recorded())
    return path


def gpus(make):
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
    path = make.run(
        name="gsm8k-0.5b-8gpu",
        attempts=[records],
        state=make.ended("finished", step=40, total=40, checks=()),
        preset=load("gsm8k-0.5b-8gpu").snapshot(),
        machine=[make.host(gpus=tuple(sample))],
    )
    span_runs.write_spans(RunDir(path).attempt(1), span_runs.made_up(40))
    return path


RUNS = {"toy": toy, "gpus": gpus, "rough": lambda make: toy(make, spans=False)}


def text(user):
    return user.drawn("TimeView")


async def test_steps_of_all_attempts_are_shown_and_e_edits_with_the_first_fix(make):
    path = toy(make, spans=False)
    async with make.open(path) as user:
        await user("t", "TimeScreen", 0.2, "...")
        assert "this step has no trace" in text(user) and "rank 0" not in text(user)
        span_runs.write_spans(RunDir(path).attempt(1), span_runs.recorded())
        await user(lambda: "rank 0" in text(user))
        assert "Step 6  5.39 s" in text(user) and "validation" in text(user)
        await user("left", "left")
        assert "Step 4  3.28 s" in text(user)
        await user(*["left"] * 9)
        assert "Step 1  " in text(user)
        await user("f")
        assert "Step 6  " in text(user)
        await user("t", "DashboardScreen")
    LaunchRecord(resume_step=6).write(RunDir(path).add_attempt().launch)  # it has not trained a step yet
    command = call(["time", path.name])[0].decode()
    assert "step 6: 5.39 s" in command and "rank 0" in command
    async with make.open(path) as user:
        await user("t", "TimeScreen", lambda: "rank 0" in text(user))
        assert "Step 6  5.39 s" in text(user)
        await user(lambda: "raise trainer.validate_every from 3 to 6" in text(user), "e", "EditorScreen")
        assert user.screen.draft.loaded().preset.trainer.validate_every == 6


@pytest.mark.parametrize(
    ("steps", "state", "told"),
    [
        ([], "running", NOTHING),
        ([], "stopped", STEPLESS),
        ([], "imported", NOTHING),
        ([StepRecord(1, 1.0, None, {"loss": 1.0})], "stopped", TIMELESS),
    ],
    ids=["live", "ended", "a log that stops", "no timers"],
)
async def test_without_times_the_page_says_why(make, steps, state, told):
    found = make.running(step=None) if state == "running" else make.ended(state)
    found = replace(found, outcome="running") if state == "imported" else found
    async with make.open(make.run(attempts=[steps], state=found)) as user:
        await user("t", "TimeScreen", lambda: told[:30] in text(user))


@pytest.mark.parametrize(
    ("kind", "size"),
    [*((kind, (80, 24)) for kind in RUNS), ("gpus", (160, 48))],
    ids=[*(f"80x24-{kind}" for kind in RUNS), "160x48-gpus"],
)
def test_looks(shot, make, kind, size):
    assert shot(make.app(RUNS[kind](make)), "t", 0.2, "...", size=size)


LOGS = Path(__file__).parent.parent / "data" / "logs"


def store_of(name, last=None):
    store = SeriesStore()
    for line in gzip.decompress((LOGS / f"{name}.jsonl.gz").read_bytes()).splitlines()[:last]:
        row = json.loads(line)
        store.add(StepRecord(row["step"], float(row["step"]), None, read_metrics(row["data"])))
    return store


def drawn(store, columns, rows):
    widget = TimingSplit()
    widget.last, widget.usual = last_split(store), usual_split(store)
    lines = widget.draw(columns, rows)
    assert all(width(line) <= max(columns, 50) for line in lines) and len(lines) <= rows
    return words(lines).split("\n") if lines else []


@pytest.mark.parametrize("name", ["learning", "grpo", "two-gpus", "cpu-toy", "kl-blowup"])
def test_the_parts_of_a_real_step_make_up_the_whole(name):
    store = store_of(name)
    split, usual = last_split(store), usual_split(store)
    assert split is not None and usual is not None
    whole = store.get("timing_s/step")
    assert whole is not None and split.seconds == pytest.approx(whole.values[-1])
    assert sum(split.share(part) for part in split.parts) == pytest.approx(1)
    assert (split.parts["critic"] == 0) is (name == "grpo")
    assert 0.3 < usual.seconds / split.seconds < 3
    assert [usual_split(store_of(name, last)) is None for last in (1, 3)] == [True, False]


def test_bars_share_a_scale_and_have_a_gap_after_each_part():
    legend, last, usual = drawn(store_of("learning"), 150, 3)
    split = last_split(store_of("learning"))
    assert split is not None
    for part in ("rollout", "log-prob", "reference", "critic", "update", "other"):
        assert part in STAGES
        assert part in legend and f"{split.share(part):.0%}"[:-1] in legend
    room = 60  # cells at most
    first, *others = last.partition(" s ")[2].split()
    assert len(first) == pytest.approx(split.share("rollout") * room, abs=2) and len(others) == 5
    assert max(len(last.rstrip()), len(usual.rstrip())) == pytest.approx(len(" last step  17.8 s ") + room, abs=2)
    assert [part[0] for part in (first, *others)] == [*"rlrcuo"]
    assert {*"".join(part[1:] for part in (first, *others))} == {"█"}


def test_any_size_will_do():
    store = store_of("learning")
    for columns, rows in itertools.product([1, 20, 40, 60, 80, 160], [0, 1, 2, 3, 5]):
        assert len(drawn(store, columns, rows)) <= rows


def test_odd_times_do_no_harm_and_waiting_with_lent_gpus_is_generation():
    store = SeriesStore()
    assert last_split(store) is None and drawn(store, 80, 3) == []
    store.add(StepRecord(0, 1.0, None, {"timing_s/testing": 9.0}))
    store.add(StepRecord(1, 2.0, None, {"timing_s/step": float("nan"), "timing_s/gen": 1.0}))
    assert last_split(store) is None
    store = SeriesStore()
    store.add(StepRecord(2, 3.0, None, {"perf/time_per_step": 1.0, "timing_s/gen": 4.0, "timing_s/ref": math.inf}))
    split = last_split(store)
    assert split.parts["other"] == 0 and split.share("rollout") == 1
    data = {"timing_s/step": 10.0, "timing_s/gen": 1.0, "timing_s/switch_wait": 4.0, "timing_s/update_actor": 2.0}
    store.add(StepRecord(3, 4.0, None, data))
    assert (last_split(store).parts["rollout"], last_split(store).parts["other"]) == (5.0, 3.0)

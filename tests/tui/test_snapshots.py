"""How the dashboard looks. After a wanted change: pytest tests/tui/test_snapshots.py --snapshot-update."""

import math

import pytest

from launcher.record.standstill import Standstill
from launcher.runs.watch.stalls import sentence

SMALL, LARGE = (80, 24), (160, 48)
WHY = "the GPU ran out of memory while the engine woke up: lower rollout.gpu_memory_utilization"
ABSENT = "the model Qwen/Qwen2.5-0.5B-Instruct was not found: download it, or give a folder in model.path"
REWARD = "/home/me/project/rewards/judge.py:31 ask_judge, in ray::RewardLoopWorker.compute_score (pid 4711)"


def failed(make):
    oom = ("CRITICAL", "CUDA out of memory. Tried to allocate 2.1 GiB")
    checks = make.checks(ERR_1=oom, MEM_1=("WARN", "23.9 of 24.0 GB reserved, growing"))
    more = {"verdict": "CRITICAL", "flags": ("ERR-1", "MEM-1"), "checks": checks}
    state = make.ended("failed", step=30, error=WHY, **more)
    return make.run(attempts=[make.recorded(30)], state=state, machine=[make.gpus(8)], log=make.log)


def hangs(make):
    times = {"since": make.start + 200, "noticed": make.start + 260}
    what = "The reward function does not return"
    found = Standstill("reward", what, stage="rollout", usual=4.0, evidence=(REWARD,), **times)
    state = make.running(stalled=True, stall=sentence(found, make.start + 270), standstill=found)
    return make.run(attempts=[make.recorded(62)], state=state, machine=[make.gpus(1)], log=make.log)


def starting(make):
    where = {"phase": "model", "phase_since": make.start + 185, "step": None}
    state = make.running(state="starting", checks=(), verdict="WARM", **where)
    return make.run(state=state, machine=[make.gpus(1)], log=make.log)


def finished(make):
    argv = ["python", "-u", "-m", "verl.trainer.main_ppo", "trainer.device=cpu"]
    state = make.ended("finished", step=80)
    return make.run(attempts=[make.recorded(80)], state=state, machine=[make.host()], log=make.log, argv=argv)


def without_kl(make):
    steps = make.recorded(62)
    for record in steps:
        record.data.pop("actor/kl_loss", None)
    return make.run(attempts=[steps], machine=[make.gpus(2)], log=make.log)


def long(make):
    """10,000 steps."""
    steps = make.made_up(
        10_000,
        critic__score__mean=lambda step: 1 - math.exp(-step / 2500) + math.sin(step) / 20,
        actor__kl_loss=lambda step: step / 50_000,
        actor__entropy=lambda step: 0.5 * math.exp(-step / 8000),
        perf__throughput=lambda step: 1700 + 100 * math.sin(step / 37),
    )
    state = make.running(step=10_000, total=20_000, checks=make.checks())
    return make.run(attempts=[steps], state=state, machine=[make.gpus(1)], log=make.log)


def diverged(make):
    """Nothing but NaN."""
    names = ("critic__score__mean", "actor__kl_loss", "actor__entropy", "perf__throughput")
    found = ("CRITICAL", "critic/score/mean is nan since step 1")
    state = make.running(step=30, verdict="CRITICAL", flags=("NUM-1",), checks=make.checks(NUM_1=found))
    steps = make.made_up(30, **dict.fromkeys(names, math.nan))
    return make.run(attempts=[steps], state=state, machine=[make.gpus(1)], log=make.log)


def empty(make):
    """Queued: nothing has been written but that."""
    nothing = dict.fromkeys(("phase", "step", "total", "eta", "rollout", "step_seconds"))
    return make.run(state=make.running(state="queued", checks=(), verdict="WARM", **nothing))


def refused(make):
    """Ended before the first step."""
    log = "(TaskRunnerV1) loading\nTraceback (most recent call last):\nOSError: not found\n"
    state = make.ended("failed", step=None, error=ABSENT, checks=(), verdict="WARM")
    return make.run(state=state, machine=[make.host()], log=log)


BOTH = (failed, hangs, long, empty)
RUNS = [
    *((run, SMALL) for run in (*BOTH, starting, finished, without_kl, diverged, refused)),
    *((r, LARGE) for r in BOTH),
]


@pytest.mark.parametrize(("run", "size"), RUNS, ids=lambda it: it.__name__ if callable(it) else f"{it[0]}x{it[1]}")
def test_runs(shot, make, run, size):
    assert shot(make.app(run(make)), size=size)


@pytest.mark.parametrize("size", [LARGE, SMALL, (40, 12), (20, 5)])
def test_warned(shot, make, warned, size):
    assert shot(make.app(warned), size=size)


@pytest.mark.parametrize(
    "look", [{"theme": "light"}, {"theme": "terminal"}, {"ascii": True}], ids=["light", "terminal", "ascii"]
)
def test_looks(shot, make, warned, look):
    assert shot(make.app(warned, **look))


@pytest.mark.parametrize("key", ["question_mark", "x", "K"], ids=["help", "stop", "reference"])
def test_over_the_dashboard(shot, make, warned, key):
    assert shot(make.app(warned), key, 0.2)

"""A run directory with every file that ppo-tui reads, made of ppo-tui's own records."""

import os
import time
from dataclasses import replace
from pathlib import Path

import orjson

from launcher.core.format import GIB
from launcher.health.checklist import Checklist
from launcher.metrics.records import StepRecord
from launcher.preset.files import load
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import Action, Alert, DriverExit, Event, LevelChange, Note, PhaseChange, StateChange
from launcher.record.info import Edit, Origin, Preflight, RunInfo
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.machine import GpuSample, Holder, HostSample, MachineSample, ProcessesSample
from launcher.record.note import RunNote, looked
from launcher.record.process import ProcessId
from launcher.record.state import Rollout, RunState, StateFile

STEPS = 24
_DUMP = "{'actor_rollout_ref': {'actor': {'optim': {'lr': 1e-06}}},\n 'trainer': {'total_epochs': 1}}"


def whole_run(home: Path, hex_id: str = "7f3a1c", name: str = "toy-cpu", *, failed: bool = True) -> RunDir:
    """An ended run below `home` (PPO_TUI_HOME): failed or finished, with a flag, notes and samples."""
    run = RunDir(home / "runs" / f"{hex_id}-{name}")
    now = time.time() - 1000
    for folder in (run.control, run.rollouts, run.validations):
        folder.mkdir(parents=True)
    attempt = run.add_attempt()
    figures = [
        {
            "critic/score/mean": 0.3 + step / 100,
            "actor/ppo_kl": 0.001 * step,
            "actor/reward_kl_penalty": 0.01 * step,
            "actor/entropy": 1.0 / step,
            "perf/throughput": 900.0,
            "perf/time_per_step": 2.0,
            "timing_s/gen": 1.0,
            "response_length/mean": 12.0,
        }
        for step in range(1, STEPS + 1)
    ]
    records = [StepRecord(at, now + 2 * at, 100 * at, data) for at, data in enumerate(figures, 1)]
    checklist = Checklist()
    for record in records:
        checklist.step(record.step, record.data, t=record.t)
    lines = [f"step:{r.step} - " + " - ".join(f"{key}:{value}" for key, value in r.data.items()) for r in records]
    traceback = "Traceback (most recent call last):\n  File \"/x/reward.py\", line 3, in score\nKeyError: 'answer'\n"
    attempt.console.write_text("\n".join([_DUMP, *lines, f"Error executing job with overrides: []\n{traceback}"]))
    attempt.metrics.write_bytes(b"".join(orjson.dumps({"step": r.step, "data": r.data}) + b"\n" for r in records))
    attempt.steps.write_bytes(b"".join(record.to_line() for record in records))
    argv = ("python", "-m", "verl.trainer.main_ppo", "trainer.total_epochs=1")
    preset = load("toy-cpu").snapshot()
    LaunchRecord(argv, {"A": "b"}, ("C",), {"trainer.save_freq": 5}, str(run.path), now, now).write(attempt.launch)
    ended = Exit(int(failed), None, None, now + 60)
    ended.write(attempt.exit)
    RunInfo(
        run.id,
        name,
        now,
        preset,
        preset_notes=("a note",),
        preset_file="/x/toy.yaml",
        overrides=("actor.lr=1e-6",),
        argv=argv,
        on_cpu=True,
        env={"A": "b"},
        cwd=str(run.path),
        versions={"verl": "0.9.1"},
        host={"name": "here", "cpus": 2},
        preflight=Preflight(True, ({"id": "V5", "level": "error", "message": "m", "fix": "f"},)),
        after=Origin("0ld", (Edit("actor.lr", 1, 2),)),
    ).write(run.run_yaml)
    process = ProcessId(4_000_000, now, 12, "another boot")
    RunState(
        ended.state,
        attempt=1,
        created=now,
        started=now,
        supervisor=process,
        driver=process,
        exit=ended,
        error="the reward function failed" if failed else None,
        cause="reward-raises" if failed else "finished",
        phase="update",
        phase_since=now + 50,
        step=STEPS,
        total=30,
        eta=12.0,
        step_seconds=2.0,
        rollout=Rollout(3, 1, 8),
        verdict="WARN",
        flags=("KL-1",),
        checks=tuple(checklist.checks()),
        updated=now + 61,
        heartbeat=now + 61,
    ).write(run.state)
    rise = LevelChange(7, "KL-1", Level.OK, Level.WARN, "KL rose")
    said = [StateChange("queued", "starting"), PhaseChange("model"), rise, Action("mute", rule="KL-1")]
    said += [
        Alert("on_alert: failed"),
        Note("a note"),
        DriverExit(ended.code, ended.signal, ended.requested_by),
        Action("resume", settings=("actor.lr=1",)),
    ]
    run.events.write_bytes(b"".join(Event(now + at, what).to_line() for at, what in enumerate(said)))
    holder = Holder(77, "others", "python", "user", GIB)
    gpu = GpuSample(0, "H200", GIB, 9 * GIB, 50, 300, 60, GIB, ("heat",), 1, 700, 90, (holder,))
    samples = [MachineSample(now + at, HostSample(GIB, 9 * GIB), ProcessesSample(GIB), (gpu,)) for at in range(5)]
    run.machine.write_bytes(b"".join(orjson.dumps(sample.to_json()) + b"\n" for sample in samples))
    RunNote("a baseline", ("sweep",)).write(run.note)
    answer = {"input": "1+1=", "output": "2", "gts": "2", "score": 1.0, "step": 5, "acc": 1.0}
    for folder in (run.rollouts, run.validations):
        (folder / "5.jsonl").write_bytes(orjson.dumps(answer) + b"\n")
    looked(run.id, now + 10_000)
    return run


def lose_supervisor(run: RunDir) -> RunDir:
    """Makes it a run of this boot whose supervisor and driver are gone without a record."""
    me = ProcessId.of(os.getpid())
    assert me is not None and run.last_attempt() is not None
    gone = replace(me, pid=4_000_000, ticks=1)
    StateFile(run).write(RunState("running", attempt=1, created=1.0, started=1.0, supervisor=gone, driver=gone))
    run.attempt(1).exit.unlink(missing_ok=True)
    return run


def files(run: RunDir) -> list[Path]:
    """Every file of it, in the same order each time."""
    return sorted(path for path in run.path.rglob("*") if path.is_file())

"""Run directories on disk, written as the supervisor writes them, from a real veRL run."""

import dataclasses
import functools
import gzip
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import caches
import pytest

from launcher.cli.screen import ScreenRequest
from launcher.data.toy import RECIPE
from launcher.health.checklist import Checklist
from launcher.health.verdict import sort
from launcher.metrics.records import StepRecord, read_metrics
from launcher.record.check import Check
from launcher.record.events import Event, LevelChange
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.machine import GpuSample, HostSample, MachineSample, ProcessesSample
from launcher.record.note import looked
from launcher.record.process import ProcessId
from launcher.record.state import Rollout, RunState
from launcher.settings import Settings
from tui.app import PpoTui

LOGS = Path(__file__).parent.parent / "data" / "logs"
START = 1_795_255_787.0  # when the recorded run began, unix seconds
GIB = 1 << 30

RULES = (
    "NUM-1",
    "KL-0",
    "KL-1",
    "KL-2",
    "KL-3",
    "KL-4",
    "CLIP-1",
    "ENT-1",
    "ENT-2",
    "REW-1",
    "REW-2",
    "SIG-1",
    "LEN-1",
    "TRUNC-1",
    "CRIT-1",
    "GRAD-1",
    "MIS-1",
    "STALE-1",
    "THR-1",
    "MEM-1",
    "STALL-1",
    "ERR-1",
)
FIGURES = {
    "KL-1": "KL 0.31 vs usual 0.24",
    "ENT-1": "entropy 0.231, 5-step ratio 0.94",
    "REW-1": "reward 0.83, best so far 0.86",
    "TRUNC-1": "3 % of responses hit the limit",
    "NUM-1": "112 figures, all finite",
}


@functools.cache
def _recording() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((LOGS / "cpu-toy.jsonl.gz").read_bytes()).splitlines()]


def recorded(limit: int = 80) -> list[StepRecord]:
    """The steps of the recorded run (80, and the validation before them)."""
    return [
        StepRecord(row["step"], START + 40 + 2.1 * row["step"], None, read_metrics(row["data"]))
        for row in _recording()
        if row["step"] <= limit
    ]


def made_up(count: int, **values: Any) -> list[StepRecord]:
    """`count` steps with these metrics (`perf__throughput` is perf/throughput); a callable gets the step."""
    names = {key: key.replace("__", "/") for key in values}
    return [
        StepRecord(
            step,
            START + step,
            None,
            {names[key]: float(value(step) if callable(value) else value) for key, value in values.items()},
        )
        for step in range(1, count + 1)
    ]


@functools.cache
def _judged() -> dict[str, Check]:
    """The rows of the recorded run at step 62, with their metrics, limits and advice."""
    checklist = Checklist()
    for record in recorded(62):
        checklist.step(record.step, record.data, t=record.t)
    return {check.rule: check for check in checklist.checks()}


def checks(**levels: tuple[str, str]) -> tuple[Check, ...]:
    """Rows of the checklist: OK but for those named (`KL_4=("WARN", "KL rose ...")`) and two without data."""
    rows = []
    for rule in RULES:
        word, message = levels.get(rule.replace("-", "_"), ("OK", FIGURES.get(rule, "")))
        level = Level[word]
        if rule in ("KL-3", "STALE-1"):
            level, message = Level.N_A, "not logged by this run"
        since = 60 if level > Level.OK else None
        said = {"level": level, "message": message, "since": since, "cleared": None, "was": None}
        rows.append(dataclasses.replace(_judged()[rule], **said))
    return tuple(sort(rows))


def running(**more: Any) -> RunState:
    """The state of a live run; its supervisor is this test's own process."""
    me = ProcessId.of(os.getpid())
    known: dict[str, Any] = {
        "state": "running",
        "phase": "rollout",
        "phase_since": START + 200,
        "attempt": 1,
        "supervisor": me,
        "driver": me,
        "step": 62,
        "total": 80,
        "eta": 38.0,
        "step_seconds": 2.1,
        "rollout": Rollout(finished=24, total=32),
        "verdict": "OK",
        "checks": checks(),
        "created": START,
        "started": START,
        "updated": START + 200,
        "heartbeat": time.time(),
    }
    return RunState(**known | more)


def ended(state: str, **more: Any) -> RunState:
    """The state of a run that is over."""
    known = {"state": state, "phase": "final", "rollout": None, "eta": None, "heartbeat": START + 200}
    return running(**known | more)


def write_run(
    home: Path,
    *,
    name: str = "toy-cpu",
    hex_id: str = "7f3a1c",
    attempts: Sequence[Sequence[StepRecord]] = (),
    state: RunState | None = None,
    events: Sequence[Event] = (),
    machine: Sequence[MachineSample] = (),
    log: str = "",
    **info: Any,
) -> Path:
    """A whole run directory; returns its path. `info` are further fields of run.yaml."""
    run = RunDir(home / "runs" / f"{hex_id}-{name}")
    run.attempts.mkdir(parents=True)
    run.control.mkdir()
    state = state or running()
    argv = ("python", "-u", "-m", "verl.trainer.main_ppo")
    RunInfo(**{"id": run.id, "name": name, "created": state.created, "argv": argv, **info}).write(run.run_yaml)
    state.write(run.state)
    run.events.write_bytes(b"".join(event.to_line() for event in events))
    write_samples(run, machine)
    for records in attempts or [[]]:
        attempt = run.add_attempt()
        attempt.steps.write_bytes(b"".join(record.to_line() for record in records))
        attempt.console.write_text(log)
    looked(run.id, START + 10_000)  # nothing was missed
    return run.path


def write_state(run: Path, state: RunState) -> None:
    """Replaces state.json."""
    state.write(RunDir(run).state)


def write_info(run: Path, **info: Any) -> RunInfo:
    """Changes these fields of run.yaml; returns what it says then."""
    directory = RunDir(run)
    changed = dataclasses.replace(directory.read_info(), **info)
    changed.write(directory.run_yaml)
    return changed


def add_events(run: Path, *events: Event) -> None:
    """Appends to events.jsonl."""
    with RunDir(run).events.open("ab") as file:
        file.writelines(event.to_line() for event in events)


def write_samples(run: RunDir, samples: Sequence[MachineSample]) -> None:
    """Replaces gpu.jsonl."""
    run.machine.write_text("".join(json.dumps(sample.to_json()) + "\n" for sample in samples))


def write_responses(run: RunDir) -> None:
    """Eight equal responses at each of two steps."""
    run.rollouts.mkdir(parents=True)
    for step in (59, 60):
        response = {"input": "1+1=", "output": f"{step}", "gts": "2", "score": 1.0, "step": step}
        (run.rollouts / f"{step}.jsonl").write_text(f"{json.dumps(response)}\n" * 8)


def host_sample(**more: Any) -> MachineSample:
    """A sample of a machine without a GPU."""
    host, run = HostSample(int(9.2 * GIB), 31 * GIB), ProcessesSample(int(3.4 * GIB))
    return MachineSample(**{"t": START + 200, "host": host, "run": run, **more})


def gpu_sample(count: int) -> MachineSample:
    """A sample of a machine with `count` GPUs."""
    gpus = [
        GpuSample(
            i,
            "NVIDIA GeForce RTX 4090",
            used=int((19.4 + 0.3 * i) * GIB),
            total=24 * GIB,
            util=97 - i,
            power=312 + i,
            temp=71 - i,
            run_used=19 * GIB,
        )
        for i in range(count)
    ]
    return host_sample(gpus=tuple(gpus))


def rise(step: int, rule: str, to: str, message: str, before: str = "OK") -> Event:
    """A health rule that rose, or with `before` went from another level."""
    return Event(START + step, LevelChange(step, rule, Level[before], Level[to], message))


TASK = "\x1b[36m(TaskRunnerV1 pid=3018)\x1b[0m"
LAST_WORDS = (
    f"{TASK} Saving checkpoint to /runs/7f3a1c-toy-cpu/checkpoints/global_step_60\n"
    f"{TASK} Training Progress:  78%|███████▊  | 62/80 [02:14<00:38,  2.10s/it]\n"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path) -> Iterator[Path]:
    """A PPO_TUI_HOME without runs. The toy task counts as built: no screen is about that minute of training."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    caches.share(tmp_path, shared)
    (tmp_path / "cache" / "toy").mkdir()
    (tmp_path / "cache" / "toy" / "recipe").write_text(RECIPE)
    for name in ("NO_COLOR", "TEXTUAL_THEME", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path


@pytest.fixture
def make(home: Path) -> SimpleNamespace:
    """The makers of this file, and `make.app(run, ...)`, the application on a run."""

    def app(run: Path | None = None, *, read_only: bool = False, compare: Sequence[Path] = (), **look: Any) -> PpoTui:
        path, compared = str(run) if run else None, tuple(str(each) for each in compare)
        return PpoTui(ScreenRequest(run=path, read_only=read_only, compare=compared, settings=Settings(**look)))

    return SimpleNamespace(
        run=functools.partial(write_run, home),
        app=app,
        write_state=write_state,
        write_info=write_info,
        write_samples=write_samples,
        write_responses=write_responses,
        add_events=add_events,
        recorded=recorded,
        made_up=made_up,
        checks=checks,
        running=running,
        ended=ended,
        host=host_sample,
        gpus=gpu_sample,
        rise=rise,
        log=LAST_WORDS,
        start=START,
    )


@pytest.fixture
def warned(make: SimpleNamespace) -> Path:
    """A live run at step 62 of 80 with one warning: the dashboard at its fullest."""
    message = "KL rose by 0.12 in 20 steps while the reward changed by 0.01"
    path: Path = make.run(
        attempts=[recorded(62)],
        state=running(verdict="WARN", flags=("KL-4",), checks=checks(KL_4=("WARN", message))),
        events=[rise(57, "KL-4", "WARN", message)],
        machine=[gpu_sample(1)],
        log=LAST_WORDS,
    )
    return path


def pytest_make_parametrize_id(val: object) -> str | None:
    """Sizes and keys by their names, `80x24` and `v-enter`: snapshots are called so."""
    if isinstance(val, tuple) and len(val) == 2 and all(type(side) is int for side in val):
        return f"{val[0]}x{val[1]}"
    if isinstance(val, (tuple, list)) and val and all(isinstance(key, str) and key.isalnum() for key in val):
        return "-".join(val)
    return None

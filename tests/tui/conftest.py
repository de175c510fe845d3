"""Run directories on disk, written as the supervisor writes them, from a real veRL run."""

import dataclasses
import functools
import gzip
import json
import os
import time
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import caches
import pytest
from editing import MINE
from pilots import User
from textual.app import App

from launcher.cli.screen import ScreenRequest
from launcher.data.toy import RECIPE
from launcher.health.checklist import Checklist
from launcher.health.verdict import sort
from launcher.metrics.records import StepRecord, read_metrics
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
RULES = ("NUM-1", "KL-0", "KL-1", "KL-2", "KL-3", "KL-4", "CLIP-1", "ENT-1", "ENT-2", "REW-1", "REW-2")
RULES += ("SIG-1", "LEN-1", "TRUNC-1", "CRIT-1", "GRAD-1", "MIS-1", "STALE-1", "THR-1", "MEM-1", "STALL-1", "ERR-1")
FIGURES = {
    "KL-1": "KL 0.31 vs usual 0.24",
    "ENT-1": "entropy 0.231, 5-step ratio 0.94",
    "REW-1": "reward 0.83, best so far 0.86",
    "TRUNC-1": "3 % of responses hit the limit",
    "NUM-1": "112 figures, all finite",
}


@functools.cache
def _recording():
    return [json.loads(line) for line in gzip.decompress((LOGS / "cpu-toy.jsonl.gz").read_bytes()).splitlines()]


def recorded(limit=80):
    """The steps of the recorded run (80, and the validation before them)."""
    return [
        StepRecord(row["step"], START + 40 + 2.1 * row["step"], None, read_metrics(row["data"]))
        for row in _recording()
        if row["step"] <= limit
    ]


def made_up(count, **values):
    """`count` steps with these metrics (`perf__throughput` is perf/throughput); a callable gets the step."""
    named = {key.replace("__", "/"): value for key, value in values.items()}

    def at(step):
        return {key: float(value(step) if callable(value) else value) for key, value in named.items()}

    return [StepRecord(step, START + step, None, at(step)) for step in range(1, count + 1)]


@functools.cache
def _judged():
    """The rows of the recorded run at step 62, with their metrics, limits and advice."""
    checklist = Checklist()
    for record in recorded(62):
        checklist.step(record.step, record.data, t=record.t)
    return {check.rule: check for check in checklist.checks()}


def checks(**levels):
    """Rows of the checklist: OK but for those named (`KL_4=("WARN", "KL rose ...")`) and two without data."""
    rows = []
    for rule in RULES:
        word, message = levels.get(rule.replace("-", "_"), ("OK", FIGURES.get(rule, "")))
        level = Level[word]
        if rule in ("KL-3", "STALE-1"):
            level, message = Level.N_A, "not logged by this run"
        said = {"level": level, "message": message, "since": 60 if level > Level.OK else None}
        rows.append(dataclasses.replace(_judged()[rule], **said, cleared=None, was=None))
    return tuple(sort(rows))


def running(**more):
    """The state of a live run; its supervisor is this test's own process."""
    me = ProcessId.of(os.getpid())
    known = {"state": "running", "phase": "rollout", "rollout": Rollout(finished=24, total=32)}
    known |= {"attempt": 1, "supervisor": me, "driver": me, "verdict": "OK", "checks": checks()}
    known |= {"step": 62, "total": 80, "eta": 38.0, "step_seconds": 2.1}
    known |= {"created": START, "started": START, "updated": START + 200, "phase_since": START + 200}
    return RunState(**known | {"heartbeat": time.time()} | more)


def ended(state, **more):
    """The state of a run that is over."""
    return running(**{"state": state, "phase": "final", "rollout": None, "eta": None, "heartbeat": START + 200} | more)


def write_run(home, *, name="toy-cpu", hex_id="7f3a1c", attempts=(), state=None, events=(), machine=(), log="", **info):
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


def write_info(run, **info):
    """Changes these fields of run.yaml; returns what it says then."""
    directory = RunDir(run)
    changed = dataclasses.replace(directory.read_info(), **info)
    changed.write(directory.run_yaml)
    return changed


def add_events(run, *events):
    """Appends to events.jsonl."""
    with RunDir(run).events.open("ab") as file:
        file.writelines(event.to_line() for event in events)


def write_samples(run, samples):
    """Replaces gpu.jsonl."""
    run.machine.write_text("".join(json.dumps(sample.to_json()) + "\n" for sample in samples))


def write_responses(run):
    """Eight equal responses at each of two steps."""
    run.rollouts.mkdir(parents=True)
    for step in (59, 60):
        response = {"input": "1+1=", "output": f"{step}", "gts": "2", "score": 1.0, "step": step}
        (run.rollouts / f"{step}.jsonl").write_text(f"{json.dumps(response)}\n" * 8)


def host_sample(**more):
    """A sample of a machine without a GPU."""
    host, run = HostSample(int(9.2 * GIB), 31 * GIB), ProcessesSample(int(3.4 * GIB))
    return MachineSample(**{"t": START + 200, "host": host, "run": run, **more})


def gpu_sample(count):
    """A sample of a machine with `count` GPUs."""

    def gpu(i):
        used, figures = int((19.4 + 0.3 * i) * GIB), {"util": 97 - i, "power": 312 + i, "temp": 71 - i}
        return GpuSample(i, "NVIDIA GeForce RTX 4090", used, 24 * GIB, run_used=19 * GIB, **figures)

    return host_sample(gpus=tuple(map(gpu, range(count))))


def rise(step, rule, to, message, before="OK"):
    """A health rule that rose, or with `before` went from another level."""
    return Event(START + step, LevelChange(step, rule, Level[before], Level[to], message))


TASK = "\x1b[36m(TaskRunnerV1 pid=3018)\x1b[0m"
LAST_WORDS = (
    f"{TASK} Saving checkpoint to /runs/7f3a1c-toy-cpu/checkpoints/global_step_60\n"
    f"{TASK} Training Progress:  78%|███████▊  | 62/80 [02:14<00:38,  2.10s/it]\n"
)


@pytest.fixture
def home(tmp_path, monkeypatch, shared):
    """A PPO_TUI_HOME without runs. The toy task counts as built: no screen is about that minute of training."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    caches.share(tmp_path, shared)
    (tmp_path / "cache" / "toy").mkdir()
    (tmp_path / "cache" / "toy" / "recipe").write_text(RECIPE)
    for name in ("NO_COLOR", "TEXTUAL_THEME", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")  # 16 colors: no tints
    yield tmp_path


@pytest.fixture
def mine(home):
    """A preset of the user."""
    (home / "presets").mkdir()
    (home / "presets" / "mine.yaml").write_text(MINE)
    return home / "presets" / "mine.yaml"


@pytest.fixture
def make(home):
    """The makers of this file, and `make.app(run, ...)`, the application on a run."""

    def app(run=None, *, read_only=False, compare=(), **look):
        request = ScreenRequest(run=str(run) if run else None, compare=tuple(map(str, compare)), read_only=read_only)
        return PpoTui(dataclasses.replace(request, settings=Settings(**look)))

    @asynccontextmanager
    async def opened(run=None, *, size=(80, 24), **more):
        """The application, once the work that it begins with is done."""
        shown = run if isinstance(run, App) else app(run, **more)
        async with shown.run_test(size=size):
            user = User(shown)
            await user("...")
            yield user

    named = (write_info, write_samples, write_responses, add_events, recorded, made_up, checks, running, ended, rise)
    makers = {each.__name__: each for each in named} | {"host": host_sample, "gpus": gpu_sample}
    makers |= {"app": app, "open": opened, "run": functools.partial(write_run, home)}
    makers |= {"write_state": lambda run, state: state.write(RunDir(run).state)}
    return SimpleNamespace(**makers, log=LAST_WORDS, start=START)


@pytest.fixture
def shot(snap_compare):
    """Compares an application with its picture, after the steps of a `User`."""

    def compare(app, *steps, size=(80, 24), first="..."):
        async def ready(pilot):
            await User(pilot.app)(first, *steps)

        return snap_compare(app, terminal_size=size, run_before=ready)

    return compare


@pytest.fixture
def warned(make):
    """A live run at step 62 of 80 with one warning: the dashboard at its fullest."""
    message = "KL rose by 0.12 in 20 steps while the reward changed by 0.01"
    state = running(verdict="WARN", flags=("KL-4",), checks=checks(KL_4=("WARN", message)))
    more = {"events": [rise(57, "KL-4", "WARN", message)], "machine": [gpu_sample(1)], "log": LAST_WORDS}
    return make.run(attempts=[recorded(62)], state=state, **more)


def pytest_make_parametrize_id(val):
    """Sizes and keys by their names, `80x24` and `v-enter`: snapshots are called so."""
    if isinstance(val, tuple) and len(val) == 2 and all(type(side) is int for side in val):
        return f"{val[0]}x{val[1]}"
    if isinstance(val, (tuple, list)) and val and all(isinstance(key, str) and key.isalnum() for key in val):
        return "-".join(val)
    return None

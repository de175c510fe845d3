"""The files written by the verbs that start runs: run.yaml, launch.json, events and note per run, and the queue's
entries.

Each command runs as from a shell. This machine has two GPUs and a veRL that nobody starts: a supervisor ends at once,
and queue processes work in this process.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from fake_nvml import FakeGpu, FakeNvml
from whole_run import whole_run

from launcher.compare import trial_process
from launcher.core import paths
from launcher.metrics.records import StepRecord
from launcher.record.attempt import OomKills
from launcher.record.events import EventLog, LevelChange
from launcher.record.layout import RunDir, all_runs
from launcher.record.levels import Level
from launcher.record.process import ProcessId
from launcher.record.state import StateFile, current
from launcher.runs.act import queue_check, queue_runner
from launcher.runs.act.start import Plan, start
from launcher.verl import env
from launcher.verl.env import VerlEnv

Shown = Callable[[list[str], Path], str]
_RECORDED = Path(__file__).parents[1] / "data" / "runs-0.1.tar.xz"
_VERSIONS = {"verl": "0.9.1", "torch": "2.8.0", "ray": "2.49.0", "transformers": "4.57.0", "vllm": "0.11.0"}
_CHECKPOINTS = {"6ca840": (4, 8), "c40d5d": (5, 10), "7f3a1c": (4, 20), "7f3a1d": (3, 10)}
_OF_CHANCE = re.compile(r"(rehearsal|tune)-[a-z0-9_]{8}\b")  # the folder of small models; a hash of paths
_WRONG = "actor.ppo_mini_batch_size=7"
_OTHER = "actor_rollout_ref.actor.nonsense=1"
COMMANDS: Sequence[str] = (
    "run toy-cpu --detach",
    "run toy-cpu actor.lr=1e-5 trainer.steps=3 env.MINE=1 --name mine --detach --json",
    f"run toy-cpu {_WRONG} --detach",
    f"run toy-cpu {_WRONG} --force --detach",
    "run gsm8k-grpo-24gb --detach",
    f"run gsm8k-0.5b-24gb trainer.gpus=2 {_OTHER} --force --detach",
    "run toy-cpu health.stop_on=[NONE-1] --detach",
    "resume 6ca840 --detach",
    "resume 6ca840 trainer.steps=12 --checkpoint 4 --detach",
    "resume 6ca840 trainer.steps=13 actor.lr=1e-5 --detach",
    f"resume c40d5d {_WRONG} --detach",
    f"resume c40d5d {_WRONG} --force --detach",
    "resume c40d5d --checkpoint 7 --detach",
    "resume 957cfc --detach",
    "fork c40d5d --detach",
    "fork c40d5d actor.ppo_mini_batch_size=32 --detach",
    "fork 000006 actor.lr=3e-5 --detach",
    "fork 000006 --checkpoint 0 --detach",
    "fork 6ca840 actor.lr=2e-5 --checkpoint 4 --detach",
    "fork 6ca840 trainer.gpus=2 --checkpoint 4 --detach",
    "fork 6ca840 no.such=1 --checkpoint 4 --detach",
    "fork 6ca840 --checkpoint 7 --detach",
    "fork 7f3a1c kl.loss_coef=0.01 --detach",
    "fork 957cfc --detach",
    "resume 000006 trainer.steps=40 --detach",
    "resume 7f3a1d trainer.steps=40 --detach",
    "eval 6ca840 data.seed=3 --checkpoint 4 --detach",
    "eval 7f3a1c --detach",
    "check toy-cpu --rehearse",
    "tune toy-cpu --limit 2",
    "run toy-cpu actor.lr=2e-5 --queue",
    "run toy-cpu --name waits --after mine --queue --json",
    f"run toy-cpu {_WRONG} --queue",
    f"run toy-cpu {_WRONG} --queue --force",
    "run toy-cpu --queue --gpus 0",
    "run gsm8k-grpo-24gb --queue --gpus 1 --name flagged",
    "run gsm8k-grpo-24gb --queue",
    "queue",
    "sweep toy-cpu actor.lr=1e-5,2e-5 --tag two",
    "try 7f3a1c --yes",
    "try 7f3a1c --rule KL-1 --checkpoint 0 --steps 3 --limit 1 --yes",
    "try 7f3a1d actor.lr=1e-6,kl.loss_coef=0.1 data.seed=4 --yes",
    "try 7f3a1d no.such=1 --yes",
    "try flagged actor.lr=2e-6 env.CUDA_VISIBLE_DEVICES=0 --checkpoint 0 --yes",
    "try 6ca840 --yes",
    "try 91cf71 --yes",
    "try 91cf71 actor.lr=1e-5 --checkpoint 0 --yes",
    "try 7f3a1d --list --json",
    "health 7f3a1c",
    "health 7f3a1d --json",
    "diagnose 7f3a1c --json",
    "list",
)


def of_verbs(home: Path, shown: Shown) -> dict[str, str]:
    """Each command's output, and the files that it writes for runs and queue. `shown` calls a command."""
    with _this_machine(_Written(home)) as written:
        _runs()
        written.take()
        texts = {words: f"{shown(words.split(), home)}{written.take()}" for words in COMMANDS}
        edited = RunDir(paths.runs_dir() / "000002-mine")
        start(Plan.of("toy-cpu", ["actor.lr=1e-5"], after=edited, note="again #tag"))
        texts["start from the edited settings of another run"] = written.take()
    return {words: _OF_CHANCE.sub(r"\1-12345678", text) for words, text in texts.items()}


def _runs() -> None:
    """Runs of 0.1 and of the current version, with checkpoints."""
    with tarfile.open(_RECORDED) as archive:
        archive.extractall(paths.runs_dir(), filter="data")
    whole_run(paths.runs_dir().parent)
    whole_run(paths.runs_dir().parent, "7f3a1d", failed=False)
    for run in all_runs():
        for step in (steps := _CHECKPOINTS.get(run.id[:6], ())):
            (run.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
            (run.checkpoints / "latest_checkpointed_iteration.txt").write_text(f"{max(steps)}")


@dataclass
class _Written:
    """The files of runs and queue when a process started or a command ended."""

    home: Path
    files: dict[Path, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def note(self, runs: Sequence[RunDir], *queue: str) -> None:
        """Adds the new or different files of some runs, and of the queue by name."""
        names = ("run.yaml", "note.json", "events.jsonl", "attempts/*/launch.json")
        found = [path for run in runs for name in names for path in run.path.glob(name)]
        found += [path for name in queue for path in paths.queue_dir().glob(name)]
        for path in sorted(found):
            text = _plain(path)
            if self.files.get(path) != text:
                self.files[path] = text
                self.lines.append(f"--- {path.relative_to(self.home)}\n{text}")

    def take(self) -> str:
        self.note(all_runs(), "*.json", "checks/*.json")
        lines, self.lines = self.lines, []
        return "".join(lines)


def _plain(path: Path) -> str:
    """A file without processes of this machine."""
    text = path.read_text()
    if path.suffix != ".json":
        return text
    value = json.loads(text)
    for name in ("starter", "checker"):
        value.pop(name, None)
    return json.dumps(value, indent=1) + "\n"


@dataclass
class _Ended:
    """An ended process."""

    returncode: int = 0

    def poll(self) -> int:
        return self.returncode


@contextlib.contextmanager
def _this_machine(written: _Written) -> Iterator[_Written]:
    def detached(words: Sequence[str], log: Path, *_: object) -> Any:
        match words[0].rpartition(".")[2]:
            case "supervise":
                written.note([run := RunDir(Path(words[1]))])
                _end(run)
            case "queue_runner":
                written.note((), "*.json")
                queue_runner.go_on()
            case "queue_check":
                with patch.object(sys, "argv", [*words]):
                    queue_check.main()
            case "trial_process":
                with log.open("a") as out, contextlib.redirect_stdout(out):
                    return _Ended(trial_process.main(*words[1:]))
        return _Ended()

    def refused(*words: Any, **_: Any) -> None:
        raise AssertionError(f"a process was started: {words}")

    verl = VerlEnv("/opt/verl/bin/python", "3.12.3", _VERSIONS, None)
    asleep = time.sleep
    with (
        pytest.MonkeyPatch.context() as gpus,  # `patch.dict` would forget modules that are imported meanwhile
        patch.object(env, "probe", lambda python: replace(verl, python=python)),
        patch.dict(os.environ, PPO_TUI_PYTHON="/opt/verl/bin/python"),
        patch.object(os, "cpu_count", lambda: 8),
        patch.object(time, "sleep", lambda seconds: asleep(min(seconds, 0.01))),
        patch("platform.platform", lambda: "Linux"),
        patch("importlib.metadata.version", lambda name: "0"),
        patch("launcher.machine.host.host_memory", lambda: (8 << 30, 64 << 30)),
        patch("launcher.machine.capacity.host_memory", lambda: (8 << 30, 64 << 30)),
        patch("launcher.machine.capacity.cpus", lambda: 8),
        patch("launcher.data.toy.ensure_for", lambda *_: None),
        patch("launcher.check.checks.SLOW", ()),
        patch("launcher.check.worker.ask", lambda python, probe, request, **_: {"path": request["folder"]}),
        patch("launcher.runs.supervise.spawn.oom_kills", lambda: OomKills()),
        patch("launcher.runs.supervise.spawn.detached", detached),
        patch("launcher.runs.act.queue_check.detached", detached),
        patch("launcher.compare.trial_runs.detached", detached),
        patch.object(subprocess, "Popen", refused),
    ):
        FakeNvml([FakeGpu("GPU-a"), FakeGpu("GPU-b")]).install(gpus)
        yield written


def _end(run: RunDir) -> None:
    """The files left by a supervisor whose driver ended after three steps; the run `flagged` has a flag."""
    attempt = run.last_attempt()
    assert attempt is not None
    figures = {"perf/throughput": 900.0, "perf/time_per_step": 2.0, "response_length/mean": 32.0}
    attempt.steps.write_bytes(b"".join(StepRecord(step, 1.0, None, figures).to_line() for step in (1, 2, 3)))
    if run.id.endswith("flagged"):
        EventLog(run.events).add(LevelChange(2, "KL-1", Level.OK, Level.CRITICAL))
    gone = ProcessId(4_000_000, 1.0, 12, "another boot")
    ended = replace(current(run), state="finished", supervisor=gone, step=3, attempt=attempt.number)
    StateFile(run).write(ended)

"""Followed logs of five writers in seven forms, in real processes, on a clock that runs LIVE_FAST times as fast.

A writer is slow, killed, restarted into the same file or into a new one, or ends. The file is held open, replaced
(trainer_state.json) or a database (Trackio). Prints a row per writer and form: the steps that were read, the seconds
from the end of the writer to that of the run, its state, and what is wrong. The fast clock does not reach the times of
steps, so a hang means something at real speed only. `live_writers.py WRITER` selects.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from foreign_logs import FORMS
from growing_logs import Step, tensorboard, wandb

from launcher.core import clock
from launcher.core.errors import NoStep
from launcher.record.events import LevelChange, read_kind
from launcher.record.levels import Level
from launcher.record.machine import HostSample, MachineSample
from launcher.record.state import RunState, current
from launcher.runs.act import attach_file
from launcher.runs.supervise import follow, supervisor
from launcher.runs.supervise.supervisor import Supervisor
from launcher.runs.watch.steps import steps

FAST, LAST, HALF = float(os.environ.get("LIVE_FAST", "1")), 12, 6
os.environ.setdefault("LIVE_BEGAN", str(time.time()))
NAMES = ("critic/score/mean", "actor/entropy", "actor/kl_loss", "response_length/mean", "actor/lr")
RUN: list[Step] = [(step, dict.fromkeys(NAMES, 0.5 + 0.01 * (step % 3))) for step in range(1, LAST + 1)]
FILES = {
    "console": "train.log",
    "metrics.jsonl": "metrics.jsonl",
    "CSV": "metrics.csv",
    "trainer_state.json": "trainer_state.json",
    "W&B": "run-1-ab/run-ab.wandb",
    "TensorBoard": "events.out.tfevents.1.host.1.0",
    "Trackio": "project.db",
}
WRITERS = ("slow", "killed", "restarted in place", "restarted in a new file", "ended")
HELD = ("console", "metrics.jsonl", "CSV", "W&B", "TensorBoard")
ENDS = {"console": "finished", "W&B": "finished"}  # the others have no sign of their end
DEADLINE = 30.0


def now() -> float:
    """The time on the fast clock."""
    began = float(os.environ["LIVE_BEGAN"])
    return began + (time.time() - began) * FAST


def parts(form: str, first: int) -> list[bytes]:
    """What a writer adds per step from `first` on, and at its end."""
    if form == "CSV":
        head, *rows = (line.encode() for line in FORMS["csv"][1](RUN).splitlines(keepends=True))
        rows[0] = head + rows[0]
        return [*rows[first - 1 :], b""]
    if form == "console":
        text = FORMS["trl"][1](RUN)
        ends = [found.end() for found in re.finditer(r"'learning_rate'.*\n", text)]
        pieces = [text[a:b].encode() for a, b in zip([0, *ends], [*ends, None], strict=True)]
        return pieces[first - 1 :]
    if form == "metrics.jsonl":
        return [*(json.dumps({"step": step, "data": data}).encode() + b"\n" for step, data in RUN[first - 1 :]), b""]
    whole_file = partial(wandb if form == "W&B" else tensorboard, began=now())
    heads = len(whole_file([]))
    own = [whole_file([each]) for each in RUN[first - 1 :]]
    end = wandb([], 0)[heads:] if form == "W&B" else b""
    return [own[0] if first == 1 else own[0][heads:], *(each[heads:] for each in own[1:]), end]


def write(form: str, path: Path, first: int, last: int, pause: float) -> None:
    """The writer: steps `first` to `last`, and the end after the last one of all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "Trackio":
        base = sqlite3.connect(path)
        base.execute(
            "CREATE TABLE IF NOT EXISTS configs (id INTEGER PRIMARY KEY, run_name TEXT, config TEXT, created_at TEXT)"
        )
        base.execute(
            "CREATE TABLE IF NOT EXISTS metrics"
            " (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)"
        )
    for number in range(first, last + 1):
        if form == "Trackio":
            row = (datetime.fromtimestamp(now()).isoformat(), "run", number, json.dumps(RUN[number - 1][1]))
            base.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", row)
            base.commit()
        elif form == "trainer_state.json":
            new = path.with_suffix(".new")
            new.write_text(FORMS["trainer_state"][1](RUN[:number]), "utf-8")
            new.replace(path)
        else:
            if number == first:
                file, content = path.open("ab"), parts(form, first)
            file.write(content[number - first])
            file.flush()
        time.sleep(pause / FAST * (2 if number == HALF else 1))
    if last == LAST and form in HELD:
        file.write(content[-1])
        file.flush()


class Run:
    """A writer, and the run that follows its log."""

    def __init__(self, form: str, writer: str, folder: Path) -> None:
        self.form, self.writer, self.folder = form, writer, folder
        self.path = folder / FILES[form]
        self.pause = 60.0 if writer == "slow" else 4.0
        self.parts = [(1, LAST, self.path)] if writer in ("slow", "ended") else [(1, HALF, self.path)]
        if writer.startswith("restarted"):
            self.parts.append(
                (
                    HALF + 1 if "place" in writer else 1,
                    LAST,
                    self.path if "place" in writer else folder / "new" / FILES[form],
                )
            )
        self.supervisor: Supervisor | None = None
        self.said, self.state, self.ended = "", None, 0.0
        self.waiting = [self._process(*part) for part in self.parts]
        self._begin()

    def _process(self, first: int, last: int, path: Path) -> "subprocess.Popen[bytes]":
        """A writer that begins with a line on its stdin, as the start of Python is not what is measured."""
        words = [sys.executable, __file__, "write", self.form, str(path), str(first), str(last), str(self.pause)]
        return subprocess.Popen(words, env=os.environ, stdin=subprocess.PIPE)

    def _begin(self) -> None:
        self.process = self.waiting.pop(0)
        self.process.stdin.write(b"\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]
        self.kill = self.writer == "killed" or bool(self.waiting)

    def look(self) -> bool:
        """Whether it is watched any longer."""
        if self.supervisor is None:
            try:
                run = attach_file.attach_file(str(self.path.parent if self.form == "W&B" else self.path), {})
            except (NoStep, OSError):
                return True
            self.supervisor = Supervisor(run, None)
            self.supervisor.feed._sampling.take = lambda: MachineSample(clock.now(), host=HostSample())  # type: ignore[method-assign, union-attr]
            self.supervisor._spawn()
        if self.kill and self.process.poll() is None and self._seen() >= HALF:
            self.process.send_signal(signal.SIGKILL)
        if self.process.poll() is not None:
            self.ended = self.ended or clock.now()
            if self.waiting and clock.now() - self.ended > 3:
                self.ended = 0.0
                self._begin()
        self.supervisor._look()
        driver = self.supervisor.driver
        if driver is not None and not driver.running():
            self.supervisor._finish()
            self.said = f"{clock.now() - self.ended:.0f} s" if self.ended else "before its writer"
            return False
        return not self.ended or bool(self.waiting) or clock.now() - self.ended < 2 * DEADLINE

    def _seen(self) -> int:
        assert self.supervisor is not None
        return len({record.step for _, record in steps(self.supervisor.run)})

    def row(self) -> tuple[str, ...]:
        """Writer, form, steps, seconds, state, what is wrong."""
        assert self.supervisor is not None
        state: RunState = current(self.supervisor.run)
        wanted = HALF if self.writer in ("killed", "restarted in a new file") else LAST
        hangs = [
            each.message
            for each in read_kind(self.supervisor.run.events, LevelChange)
            if each.rule == "STALL-1" and each.after > Level.NOTICE
        ]
        whole = self.writer not in ("killed", "restarted in a new file")
        allowed = {ENDS.get(self.form, "ended")} if whole else {"ended"}
        allowed |= {"running"} if self.form not in HELD else set()
        wrong = [f"{self._seen()} of {wanted} steps"] if self._seen() != wanted else []
        wrong += [f"hangs: {hangs[0]}"] if hangs else []
        wrong += [f"not {' or '.join(sorted(allowed))}"] if state.state not in allowed else []
        self.supervisor.driver.terminate()  # type: ignore[union-attr]
        return self.writer, self.form, str(self._seen()), self.said or "–", state.state, "; ".join(wrong) or "right"


def main(chosen: list[str]) -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    clock.now, began = now, float(os.environ["LIVE_BEGAN"])
    grown: Callable[[Path], float] = follow.written
    follow.written = lambda path: began + (grown(path) - began) * FAST  # type: ignore[assignment]
    follow._LOOK, supervisor.TICK, attach_file.spawn_supervisor = 0.1, 0.1, lambda run: None  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PPO_TUI_HOME"] = f"{folder}/home"
        for writer in chosen or WRITERS:
            runs = [Run(form, writer, Path(folder) / writer / str(place)) for place, form in enumerate(FILES)]
            going = runs
            while going:
                going = [run for run in going if run.look()]
                time.sleep(0.1)
            for run in runs:
                print("{:<24} {:<19} {:>2} steps  {:>18}  {:<9} {}".format(*run.row()), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        sys.stdin.readline()
        write(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6]))
    else:
        main(sys.argv[1:])

"""What an experiment does on its host: start, watch, look, stop, and read what the product recorded.

Everything goes through the command `ppo-tui`, as a user's would; the host is only asked for what the product
cannot know: which processes and how much GPU memory are there before and after.
"""

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from terminal import Terminal

PPO_TUI = os.environ.get("PPO_TUI", "ppo-tui")
SIZES = ((80, 24), (160, 48))
ENDED = ("stopped", "finished", "failed", "lost")


@dataclass(frozen=True)
class Lane:
    """GPUs that belong to one run at a time; none on a CPU."""

    gpus: tuple[int, ...] = ()

    def env(self) -> dict[str, str]:
        """The environment of what is run here."""
        own = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, self.gpus))} if self.gpus else {}
        return {**os.environ, **own}

    def memory(self) -> list[int]:
        """MiB in use on each of the lane's GPUs, as nvidia-smi tells it."""
        if not self.gpus:
            return []
        asked = ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
        lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
        used = {int(index): int(mib) for index, mib in (line.split(",") for line in lines)}
        return [used[gpu] for gpu in self.gpus]


def ppo_tui(lane: Lane, *words: str, patience: float = 120) -> "subprocess.CompletedProcess[str]":
    """Runs one command of the product to its end."""
    return subprocess.run(
        [PPO_TUI, *words], env=lane.env(), capture_output=True, text=True, timeout=patience, check=False
    )


def told(lane: Lane, *words: str) -> Any:
    """What a command says with --json: an object, or a list of them for one that prints lines."""
    done = ppo_tui(lane, *words, "--json", patience=300)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    if not lines:
        return {"exit": done.returncode, "stderr": done.stderr[-2000:]}
    return lines[0] if len(lines) == 1 else lines


def status(lane: Lane, run: str) -> dict[str, Any]:
    """state.json of a run."""
    found: dict[str, Any] = told(lane, "status", run)
    return found


def wait(lane: Lane, run: str, step: int | None, seconds: float) -> dict[str, Any]:
    """Waits for a step (None: the end) or an end before it, but not for ever."""
    deadline = time.monotonic() + seconds
    while True:
        state = status(lane, run)
        done = state.get("state") in ENDED or (step is not None and (state.get("step") or 0) >= step)
        if done or time.monotonic() > deadline:
            return state
        time.sleep(2)


def look(lane: Lane, run: str, name: str, folder: Path, key: str = "") -> None:
    """Attaches a dashboard in a terminal of each size and keeps what it shows, after a key."""
    for columns, rows in SIZES:
        terminal = Terminal([PPO_TUI, "attach", run], lane.env(), columns, rows)
        try:
            terminal.wait_for(lambda text: "reward" in text, 30)
            if key:
                terminal.send(key)
            terminal.pump(4)
            path = folder / f"{name}{'-' + key if key else ''}-{columns}x{rows}.txt"
            path.write_text(terminal.text() + "\n")
        finally:
            terminal.close()


def processes(run: str) -> list[str]:
    """Names of the processes that carry the run's id in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"PPO_TUI_RUN={run}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "comm").read_text().strip())
        except OSError:
            continue
    return found


def stacks(run: str, folder: Path) -> None:
    """Where each Python process of a run stands: what a start that hangs waits for."""
    folder.mkdir(parents=True, exist_ok=True)
    spy = Path(PPO_TUI).with_name("py-spy")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"PPO_TUI_RUN={run}".encode() in (process / "environ").read_bytes().split(b"\0")
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if ours and spy.exists():
            dump = subprocess.run([spy, "dump", "--pid", process.name], capture_output=True, text=True, check=False)
            (folder / f"{process.name}.txt").write_text(f"{command[:300]}\n{dump.stdout}{dump.stderr}")


def memory_free(lane: Lane, seconds: float = 15) -> list[int]:
    """MiB in use once the lane's GPUs are free again (below 1 GiB), or when the time is up."""
    deadline = time.monotonic() + seconds
    found = lane.memory()
    while any(used > 1024 for used in found) and time.monotonic() < deadline:
        time.sleep(0.3)
        found = lane.memory()
    return found

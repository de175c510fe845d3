"""What an experiment does on its host: start, watch, look, stop, and read what the product recorded.

Everything goes through the command `ppo-tui`, as a user's would; the host is only asked for what the product
cannot know: which processes and how much GPU memory are there before and after.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from terminal import Terminal

PPO_TUI = os.environ.get("PPO_TUI", "ppo-tui")
SIZES = ((80, 24), (160, 48))
ENDED = ("stopped", "finished", "failed", "lost")


@dataclass(frozen=True)
class Lane:
    """GPUs that runs are started on; none on a CPU. `more` are variables of the shell they are started from."""

    gpus: tuple[int, ...] = ()
    more: tuple[tuple[str, str], ...] = ()

    def env(self) -> dict[str, str]:
        """The environment of what is run here."""
        own = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, self.gpus))} if self.gpus else {}
        return {**os.environ, **own, **dict(self.more)}

    def memory(self, run: str | None = None) -> list[int]:
        """MiB in use on each of the lane's GPUs, without what processes hold that do not belong to this run."""
        if not self.gpus:
            return []
        used = {int(gpu): int(mib) for gpu, mib in _smi("--query-gpu=index,memory.used")}
        others = dict.fromkeys(used, 0)
        if run is not None:
            at = {uuid: int(gpu) for gpu, uuid in _smi("--query-gpu=index,uuid")}
            for pid, uuid, mib in _smi("--query-compute-apps=pid,gpu_uuid,used_memory"):
                if mib.isdecimal() and not belongs(Path(f"/proc/{pid}"), run):
                    others[at[uuid]] += int(mib)
        return [used[gpu] - others[gpu] for gpu in self.gpus]


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


def wait(
    lane: Lane, run: str, step: int | None, seconds: float, enough: Callable[[dict[str, Any]], bool] = lambda _: False
) -> dict[str, Any]:
    """Waits for a step (None: the end), an end before it, or for what is `enough`, but not for ever."""
    deadline = time.monotonic() + seconds
    while True:
        state = status(lane, run)
        done = state.get("state") in ENDED or (step is not None and (state.get("step") or 0) >= step)
        if done or enough(state) or time.monotonic() > deadline:
            return state
        time.sleep(3)


def look(lane: Lane, run: str, name: str, folder: Path, key: str = "", awaited: str = "reward") -> None:
    """Attaches a dashboard in a terminal of each size and keeps what it shows, after a key."""
    for columns, rows in SIZES:
        terminal = Terminal([PPO_TUI, "attach", run], lane.env(), columns, rows)
        try:
            terminal.wait_for(lambda text: awaited in text)
            if key:
                terminal.send(key)
            terminal.pump(4)
            path = folder / f"{name}{'-' + key if key else ''}-{columns}x{rows}.txt"
            path.write_text(terminal.text() + "\n")
        finally:
            terminal.close()


def _smi(*words: str) -> list[list[str]]:
    """The rows that nvidia-smi prints."""
    asked = ["nvidia-smi", *words, "--format=csv,noheader,nounits"]
    lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    return [[word.strip() for word in line.split(",")] for line in lines if line.strip()]


def belongs(process: Path, run: str) -> bool:
    """Whether a process, as /proc/PID, carries the run's id in its environment."""
    try:
        return f"PPO_TUI_RUN={run}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def members(run: str) -> dict[int, str]:
    """The processes of a run: ids and command lines."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        if belongs(process, run):
            with contextlib.suppress(OSError):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(process.name)] = command.strip()
    return found


def processes(run: str) -> list[str]:
    """Their names."""
    return [command.split(" ")[0].rpartition("/")[2] for command in members(run).values()]


def stacks(run: str, folder: Path) -> None:
    """Where each Python process of a run stands: what a start that hangs waits for."""
    folder.mkdir(parents=True, exist_ok=True)
    spy = Path(PPO_TUI).with_name("py-spy")
    for pid, command in members(run).items() if spy.exists() else ():
        dump = subprocess.run([spy, "dump", "--pid", str(pid)], capture_output=True, text=True, check=False)
        (folder / f"{pid}.txt").write_text(f"{command[:300]}\n{dump.stdout}{dump.stderr}")


def memory_free(lane: Lane, run: str, seconds: float = 15) -> list[int]:
    """MiB in use once the run has given the lane's GPUs back (below 1.5 GiB), or when the time is up."""
    deadline = time.monotonic() + seconds
    found = lane.memory(run)
    while any(used > 1536 for used in found) and time.monotonic() < deadline:
        time.sleep(0.5)
        found = lane.memory(run)
    return found

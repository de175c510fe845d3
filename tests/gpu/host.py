"""What a run asks of its host: which processes are there, how much GPU memory is used, and how much time is left."""

import contextlib
import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PPO_TUI = os.environ.get("PPO_TUI", "ppo-tui")
KIT = Path(os.environ.get("KIT", "kit"))
RESULTS = KIT / "results"
UNTIL = float(os.environ.get("UNTIL", "inf"))  # unix seconds at which everything has to be over


def mark(text: str) -> None:
    print(f"== {time.strftime('%T')} {text}", flush=True)


def left() -> float:
    """Seconds that are left until everything has to be over."""
    return UNTIL - time.time()


@dataclass(frozen=True)
class Lane:
    """GPUs that runs are started on; none on a CPU."""

    gpus: tuple[int, ...] = ()

    def env(self) -> dict[str, str]:
        """The environment of what is run here."""
        own = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, self.gpus))} if self.gpus else {}
        return {**os.environ, **own}

    def memory(self) -> int:
        """MiB in use on its first GPU."""
        asked = ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
        lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
        return {int(gpu): int(mib) for gpu, mib in (line.split(",") for line in lines)}[self.gpus[0]]


def told(lane: Lane, *words: str) -> Any:
    """The object that a command prints with --json."""
    asked = [PPO_TUI, *words, "--json"]
    done = subprocess.run(asked, env=lane.env(), capture_output=True, text=True, timeout=300, check=False)
    return json.loads(done.stdout) if done.stdout else {"exit": done.returncode, "stderr": done.stderr[-2000:]}


def members(run: str) -> list[int]:
    """The processes that carry the run's id in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"PPO_TUI_RUN={run}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found

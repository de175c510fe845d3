"""What the threads and coroutines of a run's processes do: asked of the plugin, else of py-spy."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launcher.core.files import read_json
from launcher.inside.ppo_tui_inside.stacks import SIGNAL
from launcher.record.standstill import Stack

_ANSWER = 3.0  # seconds for all answers
_PY_SPY, _PY_SPIES = 10.0, 40.0  # seconds for one process and for all
_KEPT = 1 << 20  # bytes of a file of stacks
_THREAD = re.compile(r"^(?:Current thread|Thread) (0x[0-9a-f]+)(?: \[(.*?)\])?.*:$")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_SPIED = re.compile(r"^    (.+) \((.+):(\d+)\)$")
_SPIED_THREAD = re.compile(r'^Thread (\S+) \(.*?\)(?:: "(.*)")?')


@dataclass(frozen=True)
class Doing:
    """The answer of one process; `source` is plugin or py-spy, otherwise why there are no stacks."""

    stacks: tuple[Stack, ...] = ()
    state: Mapping[str, Any] | None = None
    source: str = ""


def ask(folder: Path, pids: Iterable[int]) -> dict[int, Doing]:
    """Asks the processes that have loaded the plugin; none of the others gets a signal, which would end it."""
    sizes: dict[int, int] = {}
    for pid in pids:
        file = folder / f"{pid}.txt"
        with contextlib.suppress(OSError):
            if file.is_file() and catches(pid, SIGNAL):
                sizes[pid] = file.stat().st_size
                (folder / f"{pid}.json").unlink(missing_ok=True)
                os.kill(pid, SIGNAL)
                _poke(folder / f"{pid}.ask")
    deadline = time.monotonic() + _ANSWER
    while time.monotonic() < deadline and not all((folder / f"{pid}.json").exists() for pid in sizes):
        time.sleep(0.1)
    found = {}
    for pid, size in sizes.items():
        stacks = parse(_from(folder / f"{pid}.txt", size))
        found[pid] = Doing(stacks, read_json(folder / f"{pid}.json"), "plugin" if stacks else "")
    return found


def catches(pid: int, signal: int) -> bool:
    """Whether a process has a handler for a signal."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        status = Path(f"/proc/{pid}/status").read_text()
        return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (signal - 1) & 1)
    return False


def _poke(pipe: Path) -> None:
    with contextlib.suppress(OSError):  # nobody reads
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


def _from(file: Path, offset: int) -> str:
    with contextlib.suppress(OSError), file.open("rb") as stream:
        stream.seek(offset)
        text = stream.read(_KEPT).decode(errors="replace")
        if offset > _KEPT:
            os.truncate(file, 0)
        return text
    return ""


def parse(text: str) -> tuple[Stack, ...]:
    """The stacks that faulthandler wrote, that of the thread which waits for us left out."""
    stacks, frames, thread = [], list[str](), ""
    for line in [*text.splitlines(), "Thread 0x0:"]:
        if match := _FRAME.match(line):
            frames.append(f"{match[1]}:{match[2]} {match[3]}")
        elif match := _THREAD.match(line):
            if frames and not any("/ppo_tui_inside/stacks.py:" in frame for frame in frames):
                stacks.append(Stack(thread, tuple(frames)))
            frames, thread = [], match[2] or match[1]
    return tuple(stacks)


def still(before: Iterable[Stack], now: Iterable[Stack]) -> tuple[Stack, ...]:
    """The second stacks, and for each whether its innermost calls were the same before."""
    earlier = {(stack.thread, _innermost(stack)) for stack in before}
    return tuple(replace(stack, still=(stack.thread, _innermost(stack)) in earlier) for stack in now)


def _innermost(stack: Stack) -> tuple[str, ...]:
    return stack.frames[:3]


def spy(pids: Iterable[int]) -> dict[int, Doing]:
    """Stacks by py-spy, of Python processes without the plugin."""
    beside = Path(sys.executable).with_name("py-spy")
    tool = shutil.which("py-spy") or (str(beside) if beside.is_file() else None)
    found, end = {}, time.monotonic() + _PY_SPIES
    for pid in pids:
        if tool is None:
            found[pid] = Doing(source="py-spy is not installed (pip install py-spy)")
        elif time.monotonic() < end:
            found[pid] = _spy(tool, pid)
    return found


def _spy(tool: str, pid: int) -> Doing:
    argv = [tool, "dump", "--nonblocking", "--full-filenames", "--pid", str(pid)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PY_SPY, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Doing(source=f"py-spy: {type(error).__name__}")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return Doing(source=f"py-spy: {said[0] if said else done.returncode}"[:200])
    stacks, frames, thread = [], list[str](), ""
    for line in [*done.stdout.decode(errors="replace").splitlines(), "Thread 0 ()"]:
        if match := _SPIED.match(line):
            frames.append(f"{match[2]}:{match[3]} {match[1]}")
        elif match := _SPIED_THREAD.match(line):
            if frames:
                stacks.append(Stack(thread, tuple(frames)))
            frames, thread = [], match[2] or match[1]
    return Doing(tuple(stacks), None, "py-spy")

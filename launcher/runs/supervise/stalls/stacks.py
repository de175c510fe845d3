"""The stacks of a run's threads and coroutines, from the plugin or py-spy."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launcher.core.files import read_json
from launcher.inside.ppo_tui_inside.stacks import SIGNAL
from launcher.record.standstill import Stack

_ANSWER = 5.0  # seconds for all answers
_PY_SPY, _PY_SPIES = 10.0, 40.0  # seconds for one process and for all
_KEPT = 1 << 20  # bytes of a file of stacks
_THREAD = re.compile(r"^(?:Current thread|Thread) (0x[0-9a-f]+)(?: \[(.*?)\])?.*:$")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_SPIED = re.compile(r"^    (.+) \((.+):(\d+)\)$")
_SPIED_THREAD = re.compile(r'^Thread (\S+) \(.*?\)(?:: "(.*)")?')


@dataclass(frozen=True)
class Doing:
    """One process's stacks; `source` is plugin or py-spy, otherwise the reason why there are none."""

    stacks: tuple[Stack, ...] = ()
    state: Mapping[str, Any] | None = None
    source: str = ""


def ask(folder: Path, pids: Iterable[int]) -> dict[int, Doing]:
    """Requests stacks from processes that have loaded the plugin; its thread answers."""
    asked = [pid for pid in pids if _poke(folder / f"{pid}.ask", folder / f"{pid}.json")]
    deadline = time.monotonic() + _ANSWER
    while time.monotonic() < deadline and not all((folder / f"{pid}.json").exists() for pid in asked):
        time.sleep(0.1)
    found = {}
    for pid in asked:
        state = read_json(folder / f"{pid}.json")
        stacks = tuple(
            Stack(str(each.get("thread")), tuple(map(str, each.get("frames") or ())))
            for each in state.get("threads") or ()
        )
        found[pid] = Doing(stacks, state, "plugin" if stacks else "its threads do not respond")
    return found


def dump(folder: Path, pids: Iterable[int]) -> dict[int, Doing]:
    """Stacks by faulthandler, for processes whose threads cannot run; its signal would end one without a handler."""
    sizes: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            if catches(pid, SIGNAL):
                sizes[pid] = (folder / f"{pid}.txt").stat().st_size
                os.kill(pid, SIGNAL)
    if sizes:
        time.sleep(_ANSWER)
    found = {pid: parse(_from(folder / f"{pid}.txt", size)) for pid, size in sizes.items()}
    return {pid: Doing(stacks, None, "faulthandler") for pid, stacks in found.items() if stacks}


def catches(pid: int, signal: int) -> bool:
    """Whether a process has a handler for a signal."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        status = Path(f"/proc/{pid}/status").read_text()
        return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (signal - 1) & 1)
    return False


def _poke(pipe: Path, answer: Path) -> bool:
    """Wakes the thread at a pipe; False without a reader."""
    with contextlib.suppress(OSError):
        answer.unlink(missing_ok=True)
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        try:
            return os.write(descriptor, b"?") == 1
        finally:
            os.close(descriptor)
    return False


def _from(file: Path, offset: int) -> str:
    with contextlib.suppress(OSError), file.open("rb") as stream:
        stream.seek(offset)
        text = stream.read(_KEPT).decode(errors="replace")
        if offset > _KEPT:
            os.truncate(file, 0)
        return text
    return ""


def parse(text: str) -> tuple[Stack, ...]:
    """The stacks written by faulthandler, without the plugin thread's."""
    found = _split(text, "Thread 0x0:", _THREAD, _FRAME, r"\1:\2 \3")
    return tuple(stack for stack in found if not any("/ppo_tui_inside/stacks.py:" in frame for frame in stack.frames))


def _split(text: str, end: str, head: re.Pattern[str], line: re.Pattern[str], frame: str) -> Iterator[Stack]:
    """The stacks below heads of threads; `frame` is the form of a line, `end` a head after the last."""
    frames, thread = list[str](), ""
    for each in [*text.splitlines(), end]:
        if match := line.match(each):
            frames.append(match.expand(frame))
        elif match := head.match(each):
            if frames:
                yield Stack(thread, tuple(frames))
            frames, thread = [], match[2] or match[1]


def still(before: Iterable[Stack], now: Iterable[Stack]) -> tuple[Stack, ...]:
    """The second stacks, each with whether its innermost calls are unchanged."""
    earlier = {(stack.thread, _innermost(stack)) for stack in before}
    return tuple(replace(stack, still=(stack.thread, _innermost(stack)) in earlier) for stack in now)


def _innermost(stack: Stack) -> tuple[str, ...]:
    return stack.frames[:3]


def spy(pids: Iterable[int]) -> dict[int, Doing]:
    """Stacks by py-spy, for Python processes without the plugin."""
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
    text = done.stdout.decode(errors="replace")
    return Doing(tuple(_split(text, "Thread 0 ()", _SPIED_THREAD, _SPIED, r"\2:\3 \1")), None, "py-spy")

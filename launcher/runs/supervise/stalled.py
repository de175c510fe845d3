"""What maintainers ask for when a run hangs, collected once when STALL-1 rises, in a thread.

The last line of every process, stacks by py-spy where it is installed and allowed, Ray's dead actors and waiting
placement groups where the dashboard of the run's own Ray answers, and the newest sample of the GPUs.
"""

import contextlib
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from launcher.core.errors import UserError
from launcher.core.files import write_atomic
from launcher.core.secrets import redact
from launcher.core.text import clean
from launcher.machine import ray_jobs as jobs
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.process import ProcessId, run_members
from launcher.record.ray_session import RaySession
from launcher.runs.supervise.driver import Driver
from launcher.runs.supervise.job import JobDriver

RULE = "STALL-1"
_TAIL = 2 << 20  # bytes of the console that are looked at
_SIZE = 256 << 10  # characters of the report
_STACK = 10.0  # seconds for the stacks of one process
_STACKS = 60.0  # seconds for all stacks
_FROM = re.compile(r"^\s*\(([^()]*\bpid=\d+[^()]*)\)\s?(.*)")


class StallReport:
    """Writes `stall.txt` of an attempt, in a thread of its own: whatever hangs, the loop does not wait."""

    def __init__(self, run: RunDir, attempt: AttemptDir, id: str, note: Callable[[str], None]) -> None:
        """`note` gets the path of the report, from that thread."""
        self._run, self._attempt, self._id, self._note = run, attempt, id, note

    def rose(self, rule: str, driver: Driver | JobDriver | None) -> None:
        """A flag rose; returns at once."""
        if rule == RULE and not self._attempt.stall.exists():
            threading.Thread(target=self._write, args=(driver and driver.id,), name="stalled", daemon=True).start()

    def _write(self, driver: ProcessId | None) -> None:
        with contextlib.suppress(OSError):
            write_atomic(self._attempt.stall, report(self._run, self._attempt, driver, self._id).encode())
            self._note(f"stacks of the processes at the time of the stall: {self._attempt.stall.absolute()}")


def report(run: RunDir, attempt: AttemptDir, driver: ProcessId | None, id: str) -> str:
    """All that can be said now, without secrets and control characters; takes a minute and a half at most."""
    parts: list[tuple[str, Callable[[], Iterator[str]]]] = [
        ("Last line of each process", lambda: _last_lines(attempt.console)),
        ("Ray", lambda: _ray(attempt)),
        ("GPUs and host", lambda: _machine(run.machine)),
    ]
    if driver is not None:
        parts.append(("Stacks", lambda: _stacks(driver, id)))
    lines = [time.strftime("Collected %Y-%m-%d %H:%M:%S")]
    for title, part in parts:
        lines += ["", f"## {title}", ""]
        try:
            lines += part()
        except Exception as error:
            lines.append(f"could not be collected: {type(error).__name__}: {error}")
    return redact("\n".join(clean(line) for line in lines))[:_SIZE] + "\n"


def _last_lines(console: Path) -> Iterator[str]:
    with console.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, 2) - _TAIL))
        text = stream.read().decode(errors="replace")
    last: dict[str, str] = {}
    for line in map(clean, text.splitlines()):
        match = _FROM.match(line)
        name, said = (match[1], match[2]) if match else ("driver", line)
        if said.strip():
            last[name] = said.strip()
    return (f"{name}: {said[:300]}" for name, said in last.items())


def _ray(attempt: AttemptDir) -> Iterator[str]:
    """Only of a dashboard that belongs to the run's own Ray: another run's may listen at the usual port."""
    session = RaySession.read(attempt.ray)
    if session is None:
        yield "the run's Ray session is not known"
        return
    own_token = attempt.ray_token.read_text().strip() if attempt.ray_token.exists() else None
    cluster = jobs.Cluster("auto", own_token)
    try:
        if cluster.session() != Path(session.path).name:
            yield "the dashboard on this machine belongs to another Ray"
            return
        dead = cluster.listed("actors", "state", "DEAD")
        waiting = cluster.listed("placement_groups", "state", "PENDING")
    except UserError as error:
        yield str(error)
        return
    for each in dead:
        yield f"dead actor {each.get('class_name')} pid={each.get('pid')}: {str(each.get('death_cause'))[:400]}"
    for each in waiting:
        yield f"placement group {each.get('placement_group_id')} waits: {str(each.get('bundles'))[:400]}"
    if not dead and not waiting:
        yield "no dead actors, no waiting placement groups"


def _machine(samples: Path) -> Iterator[str]:
    if not samples.exists():
        yield "no samples were taken"
        return
    with samples.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, 2) - (64 << 10)))
        yield stream.read().decode(errors="replace").strip().rpartition("\n")[2]


def _stacks(driver: ProcessId, id: str) -> Iterator[str]:
    beside = Path(sys.executable).with_name("py-spy")
    tool = shutil.which("py-spy") or (str(beside) if beside.is_file() else None)
    end = time.monotonic() + _STACKS
    if tool is None:
        yield "py-spy is not installed (pip install py-spy)"
    for process in run_members(driver, id):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            name = " ".join(" ".join(process.cmdline()).split())[:120] or process.name()
            yield f"{process.pid} {process.status()}, {times.user + times.system:.0f} s of CPU: {name}"
            if tool is not None and "python" in process.exe() and time.monotonic() < end:
                yield from (f"    {line}" for line in _stack(tool, process.pid))


def _stack(tool: str, pid: int) -> list[str]:
    argv = [tool, "dump", "--nonblocking", "--pid", str(pid)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_STACK, check=False)
    except subprocess.TimeoutExpired:
        return [f"py-spy took longer than {_STACK:.0f} s"]
    output = (done.stdout if done.returncode == 0 else done.stderr).decode(errors="replace").strip()
    return output.splitlines()[:400] or ["py-spy printed nothing"]

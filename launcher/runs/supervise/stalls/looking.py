"""Collects the facts about a hanging run, in a thread: if that hangs, the supervisor continues."""

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from launcher import inside
from launcher.core.secrets import redact
from launcher.core.tail import last_text
from launcher.core.text import clean
from launcher.inside.ppo_tui_inside import stacks as plugin
from launcher.inside.ppo_tui_inside.probes.ray_state import MARK
from launcher.machine.ray_jobs import authentication
from launcher.record.layout import AttemptDir
from launcher.record.process import stat_fields
from launcher.record.ray_session import RaySession
from launcher.record.standstill import HangFacts, RayView, Seen
from launcher.runs.supervise.stalls.activity import Counter, counters
from launcher.runs.supervise.stalls.stacks import Doing, ask, dump, spy, still

_BETWEEN = 3.0  # seconds between two looks at the stacks
_ANSWERS = 256 << 10  # bytes
_STARVED = 0.1  # share of the time that a process waited for a core
_PATIENCE = 20.0  # seconds for Ray's head
_ROOM = 1 << 20  # bytes of a file system below which it counts as full
_TAIL = 256 << 10  # bytes read from a log's end
_FILES = 40  # open files of a process that are noted
_HEAD = re.compile(r"--gcs-address=(\S+)")
_STORE = re.compile(
    r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\n]*?\]([^\n]*(?:Spilled|is full|% full|Out-of-disk|OutOf)[^\n]*)", re.M
)
_LATELY = 180.0  # seconds
_XID = re.compile(r"NVRM: Xid|NVRM: GPU .* has fallen off the bus|amdgpu.*GPU reset", re.IGNORECASE)
NETWORK = re.compile(r"nfs|lustre|ceph|fuse|cifs|smb|beegfs|gpfs|gluster|9p$|afs|weka|virtiofs|panfs|orangefs")
"""File system types served by another machine or a program."""
_LOCK = re.compile(r"^\d+: (-> )?(\w+) +\w+ +\w+ (\d+) \S+:(\d+) ")
_UNINTERESTING = re.compile(
    r"^(?:/dev/(?!shm)|/proc/|/sys/|socket:|pipe:|anon_inode:)|\.(?:so|py|pyc)(?:\.\d+)*$|/stacks/\d+\."
)


def look(
    attempt: AttemptDir, pids: Sequence[int], stage: str, *, python: str, since: float, saves: str | None = None
) -> HangFacts:
    """All observable facts about these processes now; takes seconds, at most a minute.

    `python`: veRL's interpreter. `since`: time of the run's last progress. `saves`: its checkpoint folder.
    """
    folder = attempt.path.resolve() / plugin.FOLDER
    held = {pid for pid in pids if (early := _process(pid)) is not None and early.state == "D"}
    first = ask(folder, pids)
    before, begun = counters(pids), time.monotonic()  # without the answers: one takes a rank up to 0.12 s of CPU
    time.sleep(_BETWEEN)
    after, seconds = counters(pids), time.monotonic() - begun
    second = ask(folder, pids)
    blind = [pid for pid in pids if pid in after and not second.get(pid, Doing()).stacks and _is_python(pid)]
    second |= {pid: doing for pid, doing in spy(blind).items() if doing.stacks or pid not in second}
    mute = [pid for pid in first if not second.get(pid, Doing()).stacks and _could_run(before, after, pid, seconds)]
    second |= dump(folder, mute)
    missing: list[str] = []
    processes = []
    for pid in pids:
        if (seen := _process(pid)) is not None:
            doing = second.get(pid, Doing())
            earlier = first.get(pid, doing).stacks or doing.stacks
            used = _wanted(before[pid], after[pid]) / seconds if pid in before and pid in after else 0.0
            if seen.state == "D" and (pid not in held or _moved(before.get(pid), after.get(pid))):
                seen = replace(seen, state="S")  # waiting for a working disk
            known = first[pid].state if pid in first else None
            processes.append(_described(seen, doing, known, still(earlier, doing.stacks), used))
    return HangFacts(
        time.time(),
        stage,
        tuple(processes),
        ray_view(attempt, pids, python),
        full=tuple(_full(attempt, processes)),
        mounts=tuple(dict.fromkeys(_mounts([seen for seen in processes if seen.state == "D"], saves))),
        locks=tuple(_locks(pids)),
        kernel=tuple(_kernel(since, missing)),
        missing=tuple(missing),
    )


def _wanted(before: Counter, after: Counter) -> float:
    """CPU seconds of a process, including time spent waiting for a core."""
    return after.cpu - before.cpu + after.waited - before.waited


def _could_run(before: Mapping[int, Counter], after: Mapping[int, Counter], pid: int, seconds: float) -> bool:
    """Whether a process got a core when it needed one: if it then does not answer, its threads cannot run."""
    known = pid in before and pid in after
    return known and after[pid].waited - before[pid].waited < _STARVED * seconds


def _moved(before: Counter | None, after: Counter | None) -> bool:
    """Whether a process read or wrote more than its answers to us."""
    if before is None or after is None:
        return False
    return after.fetched > before.fetched or after.written - before.written > _ANSWERS


def _described(seen: Seen, doing: Doing, earlier: Mapping[str, Any] | None, stacks: Any, cpu: float) -> Seen:
    state, before = doing.state or {}, (earlier or {}).get("collectives") or ()
    ranks = state.get("ranks") or ()
    return replace(
        seen,
        cpu=round(cpu, 2),
        ranks=tuple(ranks),
        stacks=stacks,
        tasks=tuple(tuple(frames) for frames in state.get("tasks") or ()),
        collectives=tuple({**each, "still": each in before} for each in state.get("collectives") or ()),
        source=doing.source,
    )


def _process(pid: int) -> Seen | None:
    folder = Path(f"/proc/{pid}")
    try:
        state = stat_fields(pid)[0].decode()
        words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (OSError, IndexError):
        return None
    states, waits, files = {state}, [], list[str]()
    with contextlib.suppress(OSError):
        for thread in (folder / "task").iterdir():  # the main thread may sleep while another is stuck
            with contextlib.suppress(OSError, IndexError):
                states.add(stat_fields(f"{pid}/task/{thread.name}")[0].decode())
                waits.append((thread / "wchan").read_text())
    with contextlib.suppress(OSError):
        for link in (folder / "fd").iterdir():
            with contextlib.suppress(OSError):
                files.append(os.readlink(link))  # noqa: PTH115 (pathlib fails for what is no path)
    kept = sorted({clean(file) for file in files if not _UNINTERESTING.search(file)})
    worst = next((letter for letter in "TtDZ" if letter in states), state)
    name = redact(clean(" ".join(words.split())))[:160] or "?"
    return Seen(pid, name, worst, wait=max(waits, key=len, default="").strip("0"), files=tuple(kept[:_FILES]))


def _is_python(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "python" in Path(f"/proc/{pid}/exe").readlink().name
    return False


def ray_view(attempt: AttemptDir, pids: Iterable[int], python: str) -> RayView | None:
    """The waits in the run's own Ray; None without one."""
    address = None
    for pid in pids:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if "/raylet/raylet" in words.partition(" ")[0] and (found := _HEAD.search(words)):
                address = found[1]
    if address is None:
        return None
    env = {**os.environ, **authentication(), "RAY_AUTH_MODE": os.environ.get("RAY_AUTH_MODE", "token")}
    if attempt.ray_token.exists():
        env |= {"RAY_AUTH_TOKEN": attempt.ray_token.read_text().strip()}
    argv = inside.probe(python, "ray_state", address)
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, env=env, check=False
        )
        answer = done.stdout.decode(errors="replace").rpartition(MARK)[2]
        view = RayView.from_json(json.loads(answer))
    except subprocess.TimeoutExpired:
        return RayView(error=f"Ray's head at {address} does not answer within {_PATIENCE:.0f} s")
    except (OSError, ValueError):
        return RayView(error=f"Ray's head at {address} does not answer")
    return replace(view, store=tuple(_store(attempt)))


def _store(attempt: AttemptDir) -> Iterator[str]:
    """Ray's newest lines about its full object store."""
    session = RaySession.read(attempt.ray)
    if session is None:
        return
    lately = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - _LATELY))
    for name in ("raylet.out", "raylet.err"):
        with contextlib.suppress(OSError):
            found = _STORE.findall(last_text(Path(session.path) / "logs" / name, _TAIL))
            yield from [clean(line).strip()[:300] for at, line in found if at >= lately][-5:]


def _full(attempt: AttemptDir, processes: Sequence[Seen]) -> Iterator[str]:
    places = [str(attempt.path.resolve()), "/tmp", "/dev/shm", *(file for seen in processes for file in seen.files)]
    devices = set()
    for place in places:
        if NETWORK.match(mount_of(place)[1]):
            continue  # may not answer
        with contextlib.suppress(OSError):
            path = Path(place)
            device, room = path.stat().st_dev, os.statvfs(path)
            written = room.f_blocks and not room.f_flag & os.ST_RDONLY
            if device not in devices and written and room.f_bavail * room.f_frsize < _ROOM:
                yield mount_of(place)[0]
            devices.add(device)


def _mounts(stuck: Iterable[Seen], saves: str | None) -> Iterator[str]:
    """Path and type of the file systems of checkpoints and open files: `/mnt/data nfs4`."""
    for seen in stuck:
        places = [*([saves] if saves else []), *seen.files]
        with contextlib.suppress(OSError):
            places.append(os.readlink(f"/proc/{seen.pid}/cwd"))  # noqa: PTH115
        yield from (" ".join(mount_of(place)) for place in places)


def mount_of(path: str) -> tuple[str, str]:
    """The mount of a path, from /proc/mounts: the file system itself may hang."""
    found = ("/", "?")
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text().splitlines():
            _, place, kind = line.split()[:3]
            below = path == place or path.startswith(place.rstrip("/") + "/")
            if below and len(place) >= len(found[0]):
                found = (place, kind)
    return found


def _locks(pids: Iterable[int]) -> Iterator[str]:
    """`/path: PID NAME waits for PID NAME`, from /proc/locks."""
    rows: list[re.Match[str]] = []
    with contextlib.suppress(OSError):
        rows = [row for line in Path("/proc/locks").read_text().splitlines() if (row := _LOCK.match(line))]
    holders = {row[4]: int(row[3]) for row in rows if not row[1]}
    ours = set(pids)
    for row in rows:
        if row[1] and int(row[3]) in ours:
            holder = holders.get(row[4], 0)
            yield f"{_file(int(row[3]), row[4])}: {_title(int(row[3]))} waits for {_title(holder)}"


def _file(pid: int, inode: str) -> str:
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(link.stat().st_ino) == inode:
                    return os.readlink(link)  # noqa: PTH115
    return f"inode {inode}"


def _title(pid: int) -> str:
    with contextlib.suppress(OSError):
        name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return f"{pid} ({redact(clean(name))[:60].strip()})"
    return str(pid)


def _kernel(since: float, missing: list[str]) -> Iterator[str]:
    """Kernel log lines about a failed GPU."""
    argv = ["dmesg", "--since", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        done = None
    if done is None or done.returncode:
        missing.append("sudo dmesg | grep -i xid")
        return
    for line in done.stdout.decode(errors="replace").splitlines():
        if _XID.search(line):
            yield clean(line)[:300]

"""This login: leftover Ray processes, variables, effects of a logout, the terminal."""

import contextlib
import getpass
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from shlex import quote

import psutil

from launcher.check.finding import Finding, Words, found
from launcher.check.subject import Subject
from launcher.core.format import GIB, counted, duration, gib
from launcher.core.paths import runs_dir
from launcher.core.text import without_login
from launcher.record.layout import all_runs
from launcher.record.process import RUN
from launcher.record.state import current

RAY_NAMES = ("raylet", "gcs_server")
RAY_SESSIONS = Path("/tmp/ray")
PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOGIND = Path("/etc/systemd/logind.conf")
LINGER = Path("/var/lib/systemd/linger")
ESCAPE_TIME = 100  # milliseconds from which a lone Escape feels late


def checks(subject: Subject) -> Iterable[Finding]:
    """The findings about the login for this preset."""
    if not subject.machine.assumed:
        yield from of_login(os.environ, joins=bool(subject.loaded.preset.cluster.address))


def of_login(env: Mapping[str, str], *, joins: bool = False) -> Iterator[Finding]:
    """All findings; `joins`: the run joins a Ray cluster on purpose."""
    yield from ray_left()
    yield from ray_sessions(RAY_SESSIONS)
    if env.get("RAY_ADDRESS") and not joins:
        yield found("LOGIN-2", address=without_login(env["RAY_ADDRESS"]))
    yield from ports(PORTS)
    yield from at_logout(LOGIND, LINGER)
    if env.get("TMUX"):
        yield from tmux(_tmux_option("escape-time"), _tmux_option("set-clipboard"))


def ray_left() -> Iterator[Finding]:
    """Checks for Ray instances of this user, and for processes without a session leader, by run."""
    found_of = defaultdict[tuple[str, Path, bool], list[psutil.Process]](list)
    for process in psutil.process_iter(["name", "uids"]):
        with contextlib.suppress(psutil.Error, OSError):
            if process.info["name"] in RAY_NAMES and process.info["uids"].real == os.getuid():
                env, live = process.environ(), psutil.pid_exists(os.getsid(process.pid))
                if not live or process.info["name"] == "raylet":
                    found_of[env.get(RUN, ""), runs_dir(env), live].append(process)
    ours = {run.id: run for run in all_runs()}
    for (run, runs, live), processes in found_of.items():
        there = bool(run) and (runs / run).is_dir()
        if run in ours:
            over = not live and current(ours[run], checks=False).over
            kind = "running" if live else "ended" if over else "ending"
        elif there:
            kind = "there" if live else "elsewhere"
        else:
            kind = "unlisted" if live else "removed" if run else "left"
        if still := [process for process in processes if _lives(process)]:  # still alive after the look at the run
            age = duration(time.time() - min(process.create_time() for process in still))
            count, pids = counted(len(still), "Ray process"), " ".join(str(process.pid) for process in still)
            whose = f"run {run}, which is not in {runs}" if run else counted(len(still), "other program")
            command = "ppo-tui" if runs == runs_dir() else f"PPO_TUI_HOME={quote(str(runs.parent))} ppo-tui"
            owner: Words = {"run": run, "runs": runs, "whose": whose, "command": command}
            yield found(f"LOGIN-1.{kind}", left=count, age=age, pids=pids, **owner)


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def ray_sessions(folder: Path) -> Iterator[Finding]:
    """Checks for session folders of ended runs, which grow to tens of GiB."""
    sessions = list(folder.glob("session_2*")) if folder.is_dir() else []
    if len(sessions) < 3:
        return
    size, deadline = 0, time.monotonic() + 1.0
    for session in sessions:
        for place, _, names in os.walk(session):
            for name in names:
                with contextlib.suppress(OSError):
                    size += Path(place, name).lstat().st_size
            if time.monotonic() > deadline:
                break
    if size > 10 * GIB:
        yield found("LOGIN-3", sessions=len(sessions), folder=folder, size=gib(size))


def ports(file: Path) -> Iterator[Finding]:
    """Checks for free ports; Ray, vLLM and torch use tens of them per run."""
    with contextlib.suppress(OSError, ValueError):
        first, last = map(int, file.read_text().split())
        if last - first < 1000:
            yield found("LOGIN-4", first=first, last=last)


def at_logout(logind: Path, linger: Path) -> Iterator[Finding]:
    """Checks whether this system kills a user's processes at logout."""
    settings = [logind, *sorted(logind.with_suffix(".conf.d").glob("*.conf"))]
    kills = False
    for file in settings:
        with contextlib.suppress(OSError):
            for line in file.read_text(errors="replace").splitlines():
                name, _, value = line.partition("=")
                if name.strip() == "KillUserProcesses":
                    kills = value.strip().lower() in ("yes", "true", "1", "on")
    if kills and not (linger / _user()).exists():
        yield found("LOGIN-5")


def tmux(escape_time: str | None, clipboard: str | None) -> Iterator[Finding]:
    """Checks settings of tmux that affect the screen."""
    if escape_time and escape_time.isdigit() and int(escape_time) > ESCAPE_TIME:
        yield found("LOGIN-6.escape", escape_time=escape_time)
    if clipboard == "off":
        yield found("LOGIN-6.clipboard")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container gives a number without a name
        return str(os.getuid())


def _tmux_option(name: str) -> str | None:
    try:
        asked = ["tmux", "show", "-sv", name]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=2, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

"""Other machines with their own ppo-tui, reached through the user's ssh: without open ports and daemons."""

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from launcher.core.errors import UserError
from launcher.core.files import make_folder
from launcher.core.paths import settings_file
from launcher.settings import read_hosts

_HOST = re.compile(r"[A-Za-z0-9_\[][\w.@:%+\[\]-]*")  # ssh would take a leading "-" for an option
_PATIENCE = 10  # seconds for a connection
_ANSWER = 60  # seconds for the list of runs
_SSH_FAILED, _NO_COMMAND = 255, 127  # exit codes of ssh, of the shell there
_LONGEST = 49  # bytes of a socket's folder: a path has 107, ssh's part of it 58


@dataclass(frozen=True)
class HostRuns:
    """A machine's runs (from its `list --json`) or a cluster's jobs; or why it did not answer."""

    host: str
    runs: Sequence[Mapping[str, Any]] = ()
    away: str | None = None


class NotReached(UserError):
    """ssh does not reach a machine, or the machine has no ppo-tui."""

    exit_code = 1


def run_on(host: str, words: Sequence[str], *, terminal: bool) -> int:
    """Runs ppo-tui on another machine; returns its exit code. Raises UserError (host, no ssh) and NotReached."""
    try:
        ssh = subprocess.Popen(there(host, words, ["-t"] if terminal else []))
    except OSError as error:
        raise UserError(f"cannot start ssh: {error.strerror}", "install the OpenSSH client") from None
    code = _waited(ssh)
    if code == _SSH_FAILED:
        raise NotReached(f"ssh to '{host}' failed", f"try 'ssh {host}', and correct its name or ~/.ssh/config")
    if code == _NO_COMMAND:
        raise NotReached(f"no ppo-tui found on '{host}'", f"name its path under 'hosts:' in {settings_file()}")
    return code if code >= 0 else 128 - code


def _waited(ssh: "subprocess.Popen[bytes]") -> int:
    """Waits for ssh, which also receives an interrupt and decides whether to end; returns its exit code."""
    while True:
        try:
            return ssh.wait()
        except KeyboardInterrupt:
            continue


def runs_elsewhere() -> Iterator[HostRuns]:
    """The runs of the hosts in config.yaml, fetched in parallel; ssh never prompts for a password."""
    hosts = list(read_hosts())
    with ThreadPoolExecutor(max_workers=16) as pool:
        yield from pool.map(runs_of, hosts)


def runs_of(host: str) -> HostRuns:
    """The runs of one machine."""
    options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={_PATIENCE}"]
    try:
        command = there(host, ["list", "--json"], options)
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_ANSWER, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return HostRuns(host, away=getattr(error, "strerror", None) or f"no answer in {_ANSWER} s")
    if done.returncode:
        last_line = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return HostRuns(host, away=last_line or f"exit code {done.returncode}")
    try:
        runs = [orjson.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    except orjson.JSONDecodeError:
        return HostRuns(host, away="its ppo-tui did not print a list of runs")
    return HostRuns(host, [run for run in runs if isinstance(run, dict)])


def there(host: str, words: Sequence[str], options: Sequence[str] = ("-t",)) -> list[str]:
    """The command for ppo-tui on another machine: ssh with one connection for all calls of the next minutes."""
    if not _HOST.fullmatch(host):
        raise UserError(f"'{host}' is not an SSH host", "use HOST or USER@HOST")
    command = read_hosts().get(host) or "ppo-tui"
    return ["ssh", *_shared(), *options, "--", host, shlex.join([command, *words])]


def _shared() -> list[str]:
    """Options for one shared connection; empty without a valid folder for its socket, because ssh would fail.

    Socket paths must be short; homes may be long, or on a file system without sockets.
    """
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"ppo-tui-{os.getuid()}"
    try:
        make_folder(folder)
        status = folder.lstat()
    except OSError:
        return []
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        return []  # another user's
    if len(os.fsencode(folder)) > _LONGEST:
        return []
    return ["-o", "ControlMaster=auto", "-o", f"ControlPath={folder}/%C", "-o", "ControlPersist=120"]

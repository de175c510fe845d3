"""Compares how bash and our reader understand scripts: the programs that each one says a script starts.

    campaigns/bash_oracle.py SCRIPT ...        one line per script: equal, or the first words that differ

bash runs the script in an empty folder; the first folder on its PATH holds a stub for every program that could do
something, and missing programs are also recorded. Where the system has bubblewrap or unprivileged namespaces, the
files of this machine are read-only for it and there is no network.
"""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.core.errors import UserError
from launcher.core.tables import read_tables
from launcher.scripts.bash import marks
from launcher.scripts.bash.state import Started
from launcher.scripts.verl_command import Source, choose, parse

LIMIT_S = 20
"""Seconds that a script may take; without real programs it needs less than one."""

_MOST = 10_000_000  # bytes that are read of the records
_TABLES = read_tables(Path(__file__).with_suffix(".toml"))
_UNKNOWN = "PPO-TUI-UNKNOWN"
_START = 'command_not_found_handle() {{ {folder}/python "--not-found--" "$@"; }}\n'


def sandbox() -> str:
    """The program that isolates a script from files and network: bwrap, unshare, or "" for none."""
    for name, words in (("bwrap", ["bwrap", "--ro-bind", "/", "/", "true"]), ("unshare", ["unshare", "-rmn", "true"])):
        if shutil.which(name) is None:
            continue
        try:
            if subprocess.run(words, capture_output=True, timeout=5, check=False).returncode == 0:
                return name
        except (OSError, subprocess.SubprocessError):
            continue
    return ""


def record(text: str, folder: str, path: str | None, args: Sequence[str], environ: Mapping[str, str]) -> list[Started]:
    """The programs that the script starts, in order; `folder` is its working directory, `path` its file. Raises
    UserError without bash, and for a script that does not end.
    """
    bash = shutil.which("bash")
    if bash is None:
        raise UserError("running a script requires bash, which is not on PATH")
    with tempfile.TemporaryDirectory(prefix="ppo-tui-exec-") as base:
        place = Path(base)
        stubs, records, empty = (place / name for name in ("bin", "records", "empty"))
        for each in (stubs, records, empty):
            each.mkdir()
        _fill(stubs, records, bash)
        start = place / "start"
        start.write_text(_START.format(folder=stubs), "utf-8")
        if path is None:
            path = str(place / "script.sh")
            Path(path).write_text(text, "utf-8")
        env = {**environ, "PATH": str(stubs), "BASH_ENV": str(start), "TMPDIR": str(empty), "PWD": str(empty)}
        _run([*_sandboxed(place), bash, path, *args], empty, env)
        return [_started(each, str(empty), folder, env) for each in sorted(records.glob("*[0-9]"))]


def _fill(stubs: Path, records: Path, bash: str) -> None:
    text = _TABLES["record"].format(
        bash=bash, records=records, env=shutil.which("env"), mv=shutil.which("mv"), unknown=_UNKNOWN
    )
    for name in _TABLES["stubs"]:
        (stubs / name).write_text(text, "utf-8")
        (stubs / name).chmod(0o755)
    for name in _TABLES["real"]:
        if (found := shutil.which(name)) is not None:
            (stubs / name).symlink_to(found)


def _sandboxed(place: Path) -> list[str]:
    kind = sandbox()
    if kind == "bwrap":
        binds = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(place), str(place)]
        return [shutil.which("bwrap") or kind, *binds, "--unshare-all", "--die-with-parent"]
    if kind == "unshare":
        # the network goes; the files are made read-only but for our folder, as far as the kernel lets us
        mount = shutil.which("mount") or "mount"
        made = f'{mount} --bind "$0" "$0" && {mount} -o remount,bind,ro / 2>/dev/null; cd "$PWD" && exec "$@"'
        return [shutil.which("unshare") or kind, "-rmnpf", "--kill-child", "/bin/sh", "-c", made, str(place)]
    return []


def _run(command: list[str], folder: Path, env: Mapping[str, str]) -> None:
    with subprocess.Popen(
        command,
        cwd=folder,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise UserError(f"the script did not end within {LIMIT_S} s, though its programs do nothing") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it left in the background


def _started(record: Path, empty: str, folder: str, given: Mapping[str, str]) -> Started:
    with record.open("rb") as file:
        text = file.read(_MOST).decode(errors="replace")
    words, _, rest = text.replace(empty, folder).partition("\0\0env\0")
    where, *argv = words.split("\0")
    if argv[1:2] == ["--not-found--"]:
        argv = argv[2:]
    pairs = (entry.partition("=") for entry in rest.split("\0") if "=" in entry)
    ours = {"_", "SHLVL", "OLDPWD", "BASH_ENV", "PATH", "PWD", "TMPDIR"}
    env = {name: _marked(value) for name, _, value in pairs if name not in ours and given.get(name) != value}
    return Started(tuple(map(_marked, argv)), env, where)


def _marked(text: str) -> str:
    return marks.unmarked(text).replace(_UNKNOWN, marks.unknown("what a program prints"))


def main(paths: Sequence[str]) -> int:
    equal = 0
    for path in map(Path, paths):
        text, folder = path.read_text(), str(path.parent.absolute())
        try:
            ours = [marks.plain(word) for word in parse(Source(text, path.parent.absolute(), path)).overrides]
            started = record(text, folder, str(path.absolute()), (), os.environ)
            bash = [marks.plain(word) for word in choose(started, [], "", str(path)).overrides]
        except UserError as error:
            print(f"{path}: {error}")
            continue
        differ = [f"{a} / {b}" for a, b in itertools.zip_longest(ours, bash) if a != b]
        equal += not differ
        print(f"{path}: {'equal' if not differ else f'ours / bash: {differ[0]}'}")
    print(f"{equal} of {len(paths)} equal")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

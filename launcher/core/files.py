"""Writes files so that a kill at any time leaves a readable file; a read-only process changes none."""

import contextlib
import difflib
import errno
import functools
import grp
import os
import pwd
import re
import shutil
import stat
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from launcher.core.errors import UserError
from launcher.core.paths import cache_dir, presets_dir, queue_dir, runs_dir
from launcher.core.text import hint_of

READ_ONLY = "PPO_TUI_READ_ONLY"
"""Environment variable of a read-only process, such as `ppo-tui mcp` starts for a reading tool."""
_ENDING = re.compile(r"(\.[a-z]\w*)+$")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = tuple(
    f"os.{name}" for name in ("chm", "cho", "link", "mkd", "re", "rmd", "setx", "symlink", "trunc", "utime")
)
_ACTS = ("os.exec", "os.fork", "os.kill", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen")
_DOOMED = ".deleted-"
_PATIENCE = 1 << 23  # bytes that wait for room on a disk; further lines are dropped


def read_only() -> bool:
    """Whether this process is read-only."""
    return bool(os.environ.get(READ_ONLY))


def refuse_changes(path: object = None) -> None:
    """Raises OSError in a read-only process."""
    if read_only():
        raise OSError(errno.ECANCELED, "not allowed in a read-only command", path and str(path))


def guard() -> None:
    """Makes Python refuse changes of files outside the cache, signals, and programs other than its own interpreter in a
    read-only process. Checks start that interpreter; `spawn.detached` starts processes that outlive this one.
    """
    allowed = tuple(os.path.realpath(each) + os.sep for each in (cache_dir(), "/dev"))

    def look(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            paths = args[:1] if args[2] & _WRITING else ()
        elif event.startswith(_CHANGES):
            paths = args
        elif event.startswith(_ACTS) and args[:1] != (sys.executable,) and args[1:] != (0,):  # 0: whether a pid exists
            refuse_changes(*args[:1])
        else:
            return
        for path in (os.fsdecode(each) for each in paths if isinstance(each, str | bytes | os.PathLike)):
            if not os.path.realpath(path).startswith(allowed):
                refuse_changes(path)

    if read_only():
        sys.dont_write_bytecode = True
        sys.addaudithook(look)


def foreign(path: Path) -> UserError | None:
    """Why a found (not named) file is not trusted: another user owns it or its folder, or may write there."""
    for place in (path, path.parent) if path.exists() else ():
        if wrong := _open_to_others(place):
            kind = "a file" if place == path else f"in {place}, a folder"
            return UserError(f"{path} is not used: it is {kind} {wrong.what}", f"if you trust it: {wrong.hint}")
    return None


def open_folders() -> list[UserError]:
    """ppo-tui's folders that another user owns or may write, each with its mode."""
    tops = (runs_dir().parent, presets_dir().parent, queue_dir(), presets_dir(), cache_dir())
    places = dict.fromkeys(each for top in tops for each in (top, *top.glob("*")) if each.is_dir())
    found = ((place, _open_to_others(place)) for place in places)
    return [UserError(f"a folder {wrong.what}", wrong.hint, str(place)) for place, wrong in found if wrong]


def _open_to_others(place: Path) -> UserError | None:
    """Owner and mode of a file or folder that another user owns or may write, with the command that changes it."""
    try:
        status = place.stat()
    except OSError:
        return None
    mode = stat.S_IMODE(status.st_mode)
    ours = mode & 0o020 and _only_ours(status.st_gid)
    if status.st_uid not in (0, os.getuid()):
        problem, hint = "", f"sudo chown {os.getuid()} '{place}'"
    elif mode & (0o002 if ours else 0o022):
        problem, hint = " that other users may write", f"chmod {'o' if ours else 'go'}-w '{place}'"
    else:
        return None
    return UserError(f"of {_user(status.st_uid)} with mode {mode:04o}{problem}", hint)


def obeyed(path: Path) -> Path:
    """The path of a found file. Raises UserError for a file of other users."""
    if wrong := foreign(path):
        raise wrong
    return path


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


@functools.cache
def _only_ours(gid: int) -> bool:
    """Whether a group is our own private one, without other members."""
    try:
        members = {*grp.getgrgid(gid).gr_mem, *(each.pw_name for each in pwd.getpwall() if each.pw_gid == gid)}
        return gid == pwd.getpwuid(os.getuid()).pw_gid and members <= {_user(os.getuid())}
    except KeyError:
        return False


def make_folder(path: Path) -> None:
    """Makes a folder and its parents, accessible to the owner only; an existing one is not changed. Raises OSError."""
    for each in reversed(path.parents):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def write_atomic(path: Path, content: bytes) -> None:
    """Replaces a file: a temporary file of this thread, fsync, rename. Only its owner can write it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None  # the error of a full disk lacks the path
        raise


def cache(path: Path, content: bytes) -> None:
    """Writes a file that can be rebuilt; ignores an unwritable folder."""
    with contextlib.suppress(OSError):
        make_folder(path.parent)
        write_atomic(path, content)


def write_json(path: Path, value: Any) -> None:
    """Replaces a JSON file atomically."""
    write_atomic(path, orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))


def read_json(path: Path) -> Mapping[str, Any]:
    """Reads a JSON object; empty if missing or not an object."""
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def discard(folder: Path) -> None:
    """Removes a folder. It leaves its place at once, as removing its content may take long; the next call in that
    folder removes leftovers of a killed one. Raises OSError if it cannot leave.
    """
    doomed = folder.with_name(_DOOMED + folder.name)
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    for each in folder.parent.glob(f"{_DOOMED}*"):
        shutil.rmtree(each, ignore_errors=True)


def move_in(folder: Path, to: Path) -> bool:
    """Moves a folder into `to`, replacing one of the same name; False if it has vanished. Raises OSError."""
    target, replaced = to / folder.name, to / f".replaced-{folder.name}"
    if replaced.exists():  # a kill left it
        if target.exists():
            discard(replaced)
        else:
            replaced.rename(target)
    with contextlib.suppress(FileNotFoundError):
        target.rename(replaced)
    try:
        folder.rename(target)
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            replaced.rename(target)
        if isinstance(error, FileNotFoundError):
            return False
        raise
    with contextlib.suppress(OSError):  # there was none
        discard(replaced)
    return True


def size(path: Path) -> int:
    """Disk use of a folder's files in bytes; a console with a gap uses less than its length."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                status = os.lstat(f"{folder}/{name}")
                total += min(status.st_size, status.st_blocks * 512)
    return total


def near_file(path: Path) -> str | None:
    """The name in the folder of a path that it probably misspells, whatever their endings; None if none is similar."""
    names = {_ENDING.sub("", entry.name): entry.name for entry in path.parent.glob("*")}
    near = difflib.get_close_matches(_ENDING.sub("", path.name), names, n=1, cutoff=0.75)
    return names[near[0]] if near else None


def require_file(path: Path, place: str = "", hint: str = "") -> None:
    """Raises UserError for a folder or a missing file, with the nearest name there, then `hint`."""
    if os.path.isfile(path):  # noqa: PTH113 (never raises)
        return
    if os.path.isdir(path):  # noqa: PTH112 (never raises)
        raise UserError(f"{path} is a folder", "name a file", place)
    if os.path.exists(path):  # noqa: PTH110 (never raises)
        raise UserError(f"{path} is a device or pipe, not a file", "save its content as a file", place)
    raise UserError(f"file not found: {path}", hint_of(near_file(path), hint or "check the path"), place)


class Appender:
    """Appends complete lines to a file; first ends an incomplete line of a killed process.

    A failed write raises OSError; a `patient` appender keeps the lines for its next write instead.
    """

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        self._path, self._patient = path, patient
        self._waiting = b""
        self._inside = False  # a full disk took a part of our line
        self._lock = threading.Lock()

    def add(self, lines: list[bytes]) -> None:
        """Appends lines that end with a newline."""
        with self._lock:
            if len(self._waiting) < _PATIENCE:
                self._waiting += b"".join(lines)
            try:
                self._write()
            except OSError:
                if not self._patient:
                    raise

    def flush(self) -> None:
        """Writes the waiting lines. Raises OSError, even if patient."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        with self._path.open("ab+", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end and not self._inside:
                file.seek(end - 1)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            while self._waiting:
                count = file.write(self._waiting)
                self._inside = self._waiting[count - 1 : count] != b"\n"
                self._waiting = self._waiting[count:]


def append_lines(path: Path, lines: list[bytes]) -> None:
    """Appends complete lines once, as `Appender` does. Raises OSError."""
    Appender(path).add(lines)

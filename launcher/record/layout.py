"""The run directory: the only source of facts about a run.

run.yaml            the request: preset snapshot, overrides, argv, environment without secrets
state.json          the current state (atomic)
failures.json       errors inside the supervisor, with tracebacks
events.jsonl        phase changes, rises and releases of flags, user actions, exits (append)
gpu.jsonl           samples of the machine (append, thinned)
note.json           the user's note, with tags
control/ waits      requests to the supervisor; a demo waits for a key
attempts/N/         launch.json, console.log, metrics.jsonl, steps.jsonl, exit.json, ray.json, shared.json; ray_token
                    during the run; spans/ with each process's work over time
checkpoints/ samples/
protected/          the checkpoint before a flag, moved out of veRL's retention
best/               checkpoints of the best validations, also moved out of it
.lock .supervisor   who may change an ended run; who supervises it
.room               disk space for the record of the end
"""

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import make_folder, read_json, read_only, require_file
from launcher.core.format import counted
from launcher.core.text import hint_of, nearest
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.info import Head, RunInfo, read_name
from launcher.record.process import locked

_HIDDEN = ".new-"
_SHOWN = 8  # ids of the runs that a word matches
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,39}", re.ASCII)  # valid names of runs
_CREATED = re.compile(rb'\{(?:"(?:schema|state|outcome|attempt)":[^,{}\[\]]*,)*"created":(\d+\.?\d*)[,}]')
_ABANDONED = 60.0  # seconds; one that another start has just made may not have its lock yet


class _Folder(Protocol):
    path: Path


class _In:
    """A path in a folder, joined once and on demand, because a list of 1,000 runs needs few of them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __set_name__(self, kind: type, attribute: str) -> None:
        self._attribute = attribute

    def __get__(self, folder: _Folder, kind: type) -> Path:
        joined = folder.__dict__[self._attribute] = folder.path / self._name  # found first from now on
        return joined


class AttemptDir:
    """The files of one attempt."""

    console = _In("console.log")
    metrics = _In("metrics.jsonl")
    steps = _In("steps.jsonl")
    launch = _In("launch.json")
    exit = _In("exit.json")
    hydra = _In("hydra")
    ray = _In("ray.json")
    shared = _In("shared.json")
    stall = _In("stall.txt")
    standstill = _In("stall.json")
    stall_facts = _In("stall-facts.json")
    startup = _In("startup.json")
    ray_token = _In("ray_token")
    spans = _In("spans")
    save_now = _In("save-now")  # the name in ppo_tui_inside.plugin.checkpoints

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = int(path.name)

    def logs(self) -> tuple[Path | None, Path | None]:
        """The console and veRL's metrics file; None if missing."""
        console, metrics = (path if path.exists() else None for path in (self.console, self.metrics))
        return console, metrics

    def read_launch(self) -> LaunchRecord:
        """launch.json; an empty record if missing, as for some external logs."""
        return LaunchRecord.read(self.launch) or LaunchRecord()

    def read_exit(self) -> Exit | None:
        """exit.json; None before the end of the attempt."""
        return Exit.read(self.exit)


class RunDir:
    """Paths and plain files of one run; creates nothing by itself."""

    run_yaml = _In("run.yaml")
    state = _In("state.json")
    events = _In("events.jsonl")
    failures = _In("failures.json")
    machine = _In("gpu.jsonl")
    note = _In("note.json")
    control = _In("control")
    waits = _In("waits")  # a replay, until a key removes it
    attempts = _In("attempts")
    checkpoints = _In("checkpoints")
    protected = _In("protected")
    best = _In("best")
    rollouts = _In("samples/rollout")
    validations = _In("samples/validation")
    supervisor_log = _In("supervisor.log")
    trials_log = _In("trials.log")
    answers = _In("answers.md")

    def __init__(self, path: Path, id: str | None = None) -> None:
        """`id`: name of the folder; a supervisor works in it and uses the path `.`."""
        self.path = path
        self.id = id or path.name

    def attempt(self, number: int) -> AttemptDir:
        return AttemptDir(self.attempts / str(number))

    def attempt_numbers(self) -> list[int]:
        """Numbers of existing attempts, oldest first."""
        with contextlib.suppress(OSError):
            return sorted(int(entry.name) for entry in os.scandir(self.attempts) if entry.name.isdigit())
        return []

    def last_attempt(self) -> AttemptDir | None:
        numbers = self.attempt_numbers()
        return self.attempt(numbers[-1]) if numbers else None

    def add_attempt(self) -> AttemptDir:
        """Makes the folder of the next attempt."""
        attempt = self.attempt(max(self.attempt_numbers(), default=0) + 1)
        make_folder(self.attempts)
        attempt.path.mkdir(mode=0o700)
        return attempt

    def read_info(self) -> RunInfo:
        """run.yaml; without a name if missing or invalid."""
        return RunInfo.read(self.run_yaml)

    def read_id(self) -> str:
        """The id given at the start, also for a renamed folder."""
        return self.read_info().id or self.id

    def read_name(self) -> str | None:
        """The name in run.yaml, much faster than `read_info`."""
        return read_name(self.run_yaml)

    def read_head(self) -> Head:
        """Facts from single lines of run.yaml, much faster than `read_info`."""
        return Head.read(self.run_yaml)


@contextlib.contextmanager
def appearing(name: str, id: str | None = None) -> Iterator[tuple[RunDir, RunDir]]:
    """A new run, readable only by its owner: its final path, and the hidden folder to fill.

    It appears atomically at the end of the block, unless the block raises. The next start removes the hidden folder of
    a killed one. `id`: a queued run's or cluster job's; raises FileExistsError if already started.
    """
    root = paths.runs_dir()
    make_folder(root)
    for abandoned in root.glob(f"{_HIDDEN}*"):
        with contextlib.suppress(OSError), locked(abandoned) as ours:
            # a run of the queue is made by the one who has the lock of the queue
            made_by_us = id is not None and abandoned == _hidden_path(id)
            if ours and (made_by_us or time.time() - abandoned.stat().st_mtime > _ABANDONED):
                shutil.rmtree(abandoned, ignore_errors=True)
    while True:
        run = RunDir(root / (id or new_id(name)))
        hidden = RunDir(_hidden_path(run.id), run.id)
        with contextlib.nullcontext() if id else contextlib.suppress(FileExistsError):
            hidden.path.mkdir(mode=0o700)
            if not run.path.exists():
                break
            hidden.path.rmdir()
            if id:
                raise FileExistsError(run.path)
    try:
        with locked(hidden.path):
            for folder in (hidden.control, hidden.attempts):
                folder.mkdir(mode=0o700)
            yield run, hidden
            hidden.path.rename(run.path)
    except BaseException as error:
        shutil.rmtree(hidden.path, ignore_errors=True)
        if isinstance(error, OSError):  # a full disk may not say where, and nobody knows the hidden folder
            error.filename, error.filename2 = str(run.path), None
        raise


def _hidden_path(id: str) -> Path:
    """The hidden folder for making a run."""
    return paths.runs_dir() / f"{_HIDDEN}{id}"


def new_id(name: str) -> str:
    """An id for a run with this name."""
    import secrets

    # random part first, so that the four characters on the screen are a prefix that finds the run
    kept = "".join(c if c.isalnum() or c in "._-" else "-" for c in name if c.isascii())
    return f"{secrets.token_hex(3)}-{kept.strip('.-')[:40] or 'run'}"


def create(name: str) -> RunDir:
    """Makes an empty run directory with a new id."""
    with appearing(name) as (run, _):
        return run


def all_runs() -> list[RunDir]:
    """Every run on this machine, newest first."""
    with contextlib.suppress(OSError):
        runs = [RunDir(Path(e.path)) for e in os.scandir(paths.runs_dir()) if e.is_dir() and not e.name.startswith(".")]
        # a run of somebody else, which we may not read, hides none of ours
        return sorted((r for r in runs if os.access(r.run_yaml, os.R_OK)), key=_created, reverse=True)
    return []


def require_readable() -> None:
    """Makes the folder of runs if missing. Raises UserError if it cannot be made or read."""
    if read_only() and not paths.runs_dir().exists():
        return
    try:
        if not read_only():
            make_folder(paths.runs_dir())
        os.scandir(paths.runs_dir()).close()
    except OSError as error:
        raise UserError(f"cannot read {paths.runs_dir()}: {error.strerror}", paths.OTHER_HOME) from None


def require_writable() -> None:
    """Makes the folders that a start writes to. Raises UserError for one that cannot be made or written."""
    for folder in (paths.runs_dir(), paths.cache_dir()):
        try:
            make_folder(folder)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror}", paths.OTHER_HOME) from None


def _created(run: RunDir) -> float:
    """The creation time of a run, an early field of state.json: a list of 1,000 runs reads only that part."""
    with contextlib.suppress(OSError), run.state.open("rb") as file:
        if found := _CREATED.match(file.read(256)):
            return float(found[1])
    created = read_json(run.state).get("created")
    if isinstance(created, (int, float)):
        return float(created)
    with contextlib.suppress(OSError):
        return run.run_yaml.stat().st_mtime
    return 0.0


def require_name(name: str) -> None:
    """Raises UserError for an invalid run name; "" means no name."""
    if name and (name == "last" or not _NAME.fullmatch(name)):
        hint = "use up to 40 letters, digits, '-', '_' and '.', first a letter or digit; 'last' is the newest run"
        raise UserError(f"--name '{name}' is not allowed", hint)
    if name and (paths.runs_dir() / name).exists():
        raise UserError(f"--name '{name}' is the id of a run", "use another name")


def matching(word: str, known: Mapping[str, str | None], note: Callable[[str], None] | None = None) -> str | None:
    """The id that a word means, by its start or by name; None for no run. Raises UserError.

    `known`: the names by id, newest first: among runs with equal names the newest wins, and `note` gets a line. Without
    `note` none wins, as an action on the wrong run may be irreversible.
    """
    ids = [id for id in known if word and id.startswith(word)]
    named = [id for id, name in known.items() if name == word]
    if named and set(ids) - set(named):
        raise UserError(
            f"'{word}' is the name of run {named[0]} and the start of the id of {', '.join(ids[:_SHOWN])}",
            f"use {named[0]} for the run with this name",
        )
    found = named or ids
    if len(found) > 1 and not (named and note):
        some = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        hint = "use the id of one" if named else "use more of the id"
        raise UserError(f"'{word}' matches {counted(len(found), 'run')} ({some})", hint)
    if len(found) > 1 and note:
        note(f"note: {counted(len(found), 'run')} have the name '{word}'; this is the newest, {found[0]}")
    return next(iter(found), None)


def find(word: str, note: Callable[[str], None] | None = None) -> RunDir:
    """Finds a run by its id, a unique prefix, a name, or `last`; `note` as in `matching`. Raises UserError."""
    runs = all_runs()
    if not runs:
        require_readable()
        _refuse_file(word)
        raise UserError(f"no runs in {paths.runs_dir()} yet", "start one with 'ppo-tui run toy-cpu'")
    if word == "last":
        return runs[0]
    for run in runs:
        if run.id == word:
            return run
    names = {run.id: run.read_name() for run in runs}
    if (found := matching(word, names, note)) is not None:
        return next(run for run in runs if run.id == found)
    begun = next((name for name in names.values() if word and name and name.startswith(word)), None)
    near = begun or nearest(word, [*names, *filter(None, names.values()), "last"])
    _refuse_file(word)
    raise UserError(f"no run named '{word}'", hint_of(near, "'ppo-tui list' lists the runs, 'last' is the newest"))


def names_file(word: str) -> bool:
    """Whether a word with a slash or suffix names a file in an existing folder instead of a run."""
    path = Path(word).expanduser()
    suffix = path.suffix[1:2].isalpha() and ":" not in word  # excludes a version in a name, and a host's address
    return (os.sep in word or suffix) and path.parent.is_dir() and called(word) is None


def called(word: str) -> RunDir | None:
    """The newest run with this name or start of its id; None for a path."""
    runs = all_runs() if word and "/" not in word else []
    return next((run for run in runs if run.id.startswith(word) or run.read_name() == word), None)


def refuse_run(word: str) -> None:
    """Raises UserError for the path of a file or folder that is also a run's id or name."""
    if (run := called(word)) is not None:
        raise UserError(f"'{word}' is a run and a file", f"use ./{word} for the file, {run.id} for the run")


def _refuse_file(word: str) -> None:
    if os.sep in word and not os.path.exists(word):  # noqa: PTH110 (never raises)
        require_file(Path(word), hint="'ppo-tui list' lists the runs")
    if os.path.isfile(word):  # noqa: PTH113 (never raises)
        raise UserError(f"'{word}' is a file, not a run", f"'ppo-tui import {word}' turns a log into a run")

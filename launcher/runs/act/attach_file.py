"""Follows a log of another program as a live run without its own driver."""

import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from launcher.core import clock
from launcher.core.errors import NoStep, NoStepYet, UserError
from launcher.core.progress import Progress, unseen
from launcher.metrics.frameworks import Settings, described, reference
from launcher.preset.translate import Launch
from launcher.record.attempt import Followed
from launcher.record.events import EventLog, Note
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir, all_runs, appearing
from launcher.record.state import RunState
from launcher.runs.supervise.follow import holders, written
from launcher.runs.supervise.spawn import kept, spawn_supervisor, write_launch
from launcher.runs.watch.log import names_verl, newest
from launcher.runs.watch.tracker_files import is_tracker

_KINDS = ("trainer_state.json", "*.log", "*.out", "*.txt", "*.jsonl", "*.csv")  # log files in a folder
_FOLDERS = ("", "*/", "*/*/")
Wait = Callable[[str, float], None]
_SHARE = 10  # waiting time after reading a log without a step, as a multiple of the reading time


def attach_when_begun(
    word: str,
    settings: Settings,
    names: Settings | None,
    wait: Wait,
    progress: Progress = unseen,
    every: int | None = None,
) -> RunDir:
    """As `attach_file`, retried while the log has no step; `wait` gets the missing part and the seconds.

    Waits for a log of unknown form while a program has it open.
    """
    while True:
        begun = time.monotonic()
        try:
            return attach_file(word, settings, names, progress, every)
        except NoStep as error:
            if not isinstance(error, NoStepYet) and not any(holders(Path(word).expanduser())):
                raise
            wait(error.message, max(1.0, _SHARE * (time.monotonic() - begun)))


def attach_file(
    word: str, settings: Settings, names: Settings | None = None, progress: Progress = unseen, every: int | None = None
) -> RunDir:
    """The run that follows a file or folder, new if there is none. `names` and `every` are the user's."""
    path = Path(word).expanduser().absolute()
    if path.suffix == ".gz":
        raise UserError(f"{path} is compressed, so it does not grow", f"use 'ppo-tui import {word}'")
    own = described(names)
    log = newest(str(path if is_tracker(path) else _newest(path)), own, progress)
    if log.kind == "console" and log.framework is None and not names_verl(log.path):
        raise NoStepYet(f"{log.path}: has output of Ray, but not of veRL or another known framework")
    log.number(every)
    followed = Followed(str(log.path.absolute()), log.kind)
    for run in all_runs():
        last = run.last_attempt()
        if last is None or (begun := last.read_launch()).follow != followed:
            continue
        state, same = kept(run), all(begun.keys.get(key) == value for key, value in settings.items())
        if state.live and not same:
            hint = f"leave them out, or end that first: 'ppo-tui stop {run.id}'"
            raise UserError(f"run {run.id} follows {log.path} with other settings", hint)
        if state.live or (same and _has_all(last, state, log.path)):
            return run
    now = clock.now()
    with appearing(log.name) as (run, hidden):
        info = RunInfo(
            id=run.id,
            name=log.name,
            created=now,
            imported_from=(followed.path,),
            framework=reference(log.framework, names),
            host={"name": socket.gethostname()},
        )
        info.write(hidden.run_yaml)
        if note := log.numbers_note:
            EventLog(hidden.events).add(Note(note), now)
        launch = Launch([], {}, [], {**log.config, **settings})
        write_launch(hidden, hidden.add_attempt(), launch, created=now, cwd=run.path, follow=followed)
    spawn_supervisor(run)
    return run


def _has_all(attempt: AttemptDir, state: RunState, log: Path) -> bool:
    """Whether an ended run has a complete copy of a log that no process writes."""
    end = attempt.read_exit() if state.state in ("ended", "finished", "failed") else None
    return end is not None and written(log) == end.t and not any(holders(log))  # an older log may replace it


def _newest(folder: Path) -> Path:
    """The log itself, or the newest one in a folder. Raises UserError without one."""
    if not folder.exists():
        raise NoStepYet(f"{folder} does not exist")
    if not folder.is_dir():
        return folder
    logs = {log for kind in _KINDS for depth in _FOLDERS for log in folder.glob(f"{depth}{kind}") if log.is_file()}
    if not logs:
        raise NoStepYet(f"{folder} has no log", "use the console log of a run, its metrics, or the folder of a tracker")
    return max(logs, key=lambda log: log.stat().st_mtime)


def main() -> None:
    """Follows a run's log again after its replacement by another log, with the run's settings."""
    run = RunDir(Path(sys.argv[1]))
    launch, table = run.attempt(1).read_launch(), run.read_info().framework
    assert launch.follow is not None
    settings = {} if launch.follow.kind == "tracker" else launch.keys  # a tracker has its own
    attach_file(launch.follow.path, settings, table if table and "table" not in table else None)


if __name__ == "__main__":
    main()

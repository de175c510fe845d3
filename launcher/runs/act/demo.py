"""Plays logs as live runs: a log of the user, or the recording in `launcher/demo` of a run that fails and is fixed."""

import functools
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import launcher
from launcher.console.diagnose import diagnose
from launcher.core.errors import UserError
from launcher.core.paths import own_command
from launcher.core.tables import read_tables, record
from launcher.preset.resolved import Resolved
from launcher.preset.translate import Launch
from launcher.record.events import Action, EventLog
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir, appearing
from launcher.record.state import RunState, current
from launcher.runs.act.import_logs import stem
from launcher.runs.judge.run_checklist import settings_of
from launcher.runs.supervise.spawn import detached, spawn_supervisor, write_launch
from launcher.runs.watch.source import LogFile, chunks, log_file

RECORDING = Path(launcher.__path__[0]) / "demo"
_EXIT_CODES = {"finished": 0, "running": 0, "stopped": 134}


@dataclass(frozen=True, slots=True)
class Part:
    """One attempt of the recording: its console, and the lines of the dashboard with the steps from which they hold.

    `ended` is the line after its end. A later attempt continues at `resume_step`, with other `settings`.
    """

    log: str
    says: tuple[tuple[int, str], ...]
    ended: str
    resume_step: int | None = None
    settings: tuple[str, ...] = ()


@functools.cache
def recording() -> tuple[float, tuple[Part, ...]]:
    """The usual speed, and the attempts."""
    table = read_tables(RECORDING / "demo.toml")
    return table["speed"], tuple(record(Part, part) for part in table["attempts"])


def line(info: RunInfo, state: RunState) -> str | None:
    """What to press now on the dashboard of the recording; None for other runs."""
    if not _is_recording(info):
        return None
    part = recording()[1][(state.attempt or 1) - 1]
    if not state.live:
        return part.ended
    return next((text for step, text in reversed(part.says) if step <= (state.step or 0)), None)


def next_part(info: RunInfo, state: RunState) -> Part | None:
    """The attempt that follows the one that ended, unless that was stopped or removed; None for other runs."""
    if not _is_recording(info) or state.exit is None or state.exit.requested_by is not None:
        return None
    return next(iter(recording()[1][state.attempt or 1 :]), None)


def _is_recording(info: RunInfo) -> bool:
    return info.replay_of == str(RECORDING / recording()[1][0].log)


def play_recording(speed: float | None) -> RunDir:
    """Starts the recording, whose later attempts a process of its own starts."""
    usual, parts = recording()
    speed = speed or usual
    run = replay(str(RECORDING / parts[0].log), speed, name="demo")
    detached(["launcher.runs.act.demo", str(run.path), str(speed)], run.supervisor_log, run.path)
    return run


def replay(log: str, speed: float, name: str = "") -> RunDir:
    """Makes a run whose driver replays `log`, `speed` times faster than it was written."""
    file = log_file(log)
    if file.framework is not None:
        raise UserError(
            f"{log} is a log of {file.framework.title}; only logs of veRL are replayed", f"use 'ppo-tui import {log}'"
        )
    settings = Resolved() if file.file_logger else settings_of(file.path)
    with appearing(name or f"replay-{stem(file.path)}") as (run, hidden):
        attempt, now = hidden.add_attempt(), time.time()
        RunInfo(
            run.id,
            name or f"replay of {stem(file.path)}",
            now,
            preset=settings.preset,
            preset_notes=settings.notes,
            replay_of=str(file.path),
        ).write(hidden.run_yaml)
        launch = _launch(file, speed, run.attempt(attempt.number))
        write_launch(hidden, attempt, launch, created=now, cwd=run.path)
    spawn_supervisor(run)
    return run


def _launch(file: LogFile, speed: float, attempt: AttemptDir) -> Launch:
    cause = "finished" if file.file_logger else diagnose(chunks(file.path)).cause
    player = own_command("launcher.runs.act.player", str(file.path.absolute()), str(speed))
    return Launch(
        argv=[*player, str(_EXIT_CODES.get(cause, 1))],
        env={"VERL_FILE_LOGGER_PATH": str(attempt.metrics)},
        unset=[],
        keys={},
    )


def main() -> None:
    """Plays each later attempt of the recording when the one before has ended."""
    run, speed = RunDir(Path(sys.argv[1])), float(sys.argv[2])
    info = run.read_info()
    while True:
        state = current(run, checks=False)
        if state.live:
            time.sleep(0.2)
        elif (part := next_part(info, state)) is not None:
            _continue(run, info, part, speed)
        else:
            return


def _continue(run: RunDir, info: RunInfo, part: Part, speed: float) -> None:
    EventLog(run.events).add(Action("resume", step=part.resume_step, settings=part.settings))
    attempt, now = run.add_attempt(), time.time()
    launch = _launch(log_file(str(RECORDING / part.log)), speed, attempt)
    write_launch(run, attempt, launch, created=now, run_created=info.created, resume_step=part.resume_step)
    spawn_supervisor(run)


if __name__ == "__main__":
    main()

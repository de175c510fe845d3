"""Plays logs as live runs: a user's log, or the recording in `launcher/demo` of a run that fails and is fixed."""

import functools
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import launcher
from launcher.core.tables import read_tables, record
from launcher.metrics.frameworks import reference
from launcher.preset.translate import Launch
from launcher.record.attempt import Followed
from launcher.record.events import Action, EventLog
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, appearing
from launcher.record.state import RunState, current
from launcher.runs.act.import_logs import preset_of
from launcher.runs.supervise.spawn import detached, spawn_supervisor, write_launch
from launcher.runs.watch.log import newest

RECORDING = Path(launcher.__path__[0]) / "demo"


@dataclass(frozen=True, slots=True)
class Part:
    """One attempt of the recording: its console, and dashboard hints with their first steps.

    `ended`: the hint after its end. On a screen it waits for a key after the steps `waits`. A later attempt continues
    at `resume_step` with other `settings`.
    """

    log: str
    says: tuple[tuple[int, str], ...]
    ended: str
    waits: tuple[int, ...]
    resume_step: int | None = None
    settings: tuple[str, ...] = ()


@functools.cache
def recording() -> tuple[float, tuple[Part, ...]]:
    """The usual speed, and the attempts."""
    table = read_tables(RECORDING / "demo.toml")
    return table["speed"], tuple(record(Part, part) for part in table["attempts"])


def line(info: RunInfo, state: RunState) -> str | None:
    """The key to press now on the dashboard of the recording; None for other runs."""
    if not _is_recording(info):
        return None
    part = recording()[1][(state.attempt or 1) - 1]
    if not state.live:
        return part.ended
    return next((text for step, text in reversed(part.says) if step <= (state.step or 0)), None)


def next_part(info: RunInfo, state: RunState) -> Part | None:
    """The attempt after the ended one, unless it was stopped or removed; None for other runs."""
    if not _is_recording(info) or state.exit is None or state.exit.requested_by is not None:
        return None
    return next(iter(recording()[1][state.attempt or 1 :]), None)


def _is_recording(info: RunInfo) -> bool:
    return info.replay_of == str(RECORDING / recording()[1][0].log)


def play_recording(speed: float | None, *, waits: bool = False) -> RunDir:
    """Starts the recording; a separate process starts its later attempts. `waits`: whether it waits for keys."""
    usual, parts = recording()
    speed = speed or usual
    run = replay(str(RECORDING / parts[0].log), speed, name="demo", waits=parts[0].waits if waits else ())
    detached(["launcher.runs.act.demo", str(run.path), str(speed), *["waits"] * waits], run.supervisor_log, run.path)
    return run


def replay(log: str, speed: float, name: str = "", waits: tuple[int, ...] = ()) -> RunDir:
    """Makes a run whose driver replays `log`, `speed` times faster than it was written."""
    file = newest(log)
    preset = preset_of(file)
    with appearing(name or f"replay-{file.name}") as (run, hidden):
        now = time.time()
        RunInfo(
            run.id,
            name or f"replay of {file.name}",
            now,
            preset=preset.preset,
            preset_notes=preset.notes,
            replay_of=str(file.path),
            framework=reference(file.framework, None),
        ).write(hidden.run_yaml)
        follow = Followed(str(file.path.absolute()), file.kind, speed, waits)
        launch = Launch([], {}, [], file.config)
        write_launch(hidden, hidden.add_attempt(), launch, created=now, cwd=run.path, follow=follow)
    spawn_supervisor(run)
    return run


def main() -> None:
    """Plays each later attempt of the recording after the previous one ends."""
    run, speed = RunDir(Path(sys.argv[1])), float(sys.argv[2])
    info = run.read_info()
    while True:
        state = current(run, checks=False)
        if state.live:
            time.sleep(0.2)
        elif (part := next_part(info, state)) is not None:
            _continue(run, info, part, speed, part.waits if sys.argv[3:] else ())
        else:
            return


def _continue(run: RunDir, info: RunInfo, part: Part, speed: float, waits: tuple[int, ...]) -> None:
    EventLog(run.events).add(Action("resume", step=part.resume_step, settings=part.settings))
    attempt, now = run.add_attempt(), time.time()
    launch, follow = Launch([], {}, [], {}), Followed(str(RECORDING / part.log), "console", speed, waits)
    write_launch(
        run, attempt, launch, created=now, run_created=info.created, resume_step=part.resume_step, follow=follow
    )
    spawn_supervisor(run)


if __name__ == "__main__":
    main()

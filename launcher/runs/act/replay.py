"""Playing a log from elsewhere through the whole path of a live run."""

import time

from launcher.console.diagnose import diagnose
from launcher.core.paths import own_command
from launcher.preset.resolved import Resolved
from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, appearing
from launcher.runs.act.import_logs import stem
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch
from launcher.runs.watch.recorded import settings_of
from launcher.runs.watch.source import chunks, log_file

_EXIT_CODES = {"finished": 0, "running": 0, "stopped": 134}


def start(log: str, speed: float) -> RunDir:
    """Makes a run whose driver plays `log` `speed` times faster than it was written."""
    file = log_file(log)
    cause, settings = "finished", Resolved()
    if not file.file_logger:
        cause, settings = diagnose(chunks(file.path)).cause, settings_of(file.path)
    with appearing(f"replay-{stem(file.path)}") as (run, hidden):
        attempt = hidden.add_attempt()
        player = own_command("launcher.runs.act.player", str(file.path.absolute()), str(speed))
        launch = Launch(
            argv=[*player, str(_EXIT_CODES.get(cause, 1))],
            env={"VERL_FILE_LOGGER_PATH": str(run.attempt(attempt.number).metrics)},
            unset=[],
            keys={},
        )
        now = time.time()
        info = RunInfo(
            run.id,
            f"replay of {stem(file.path)}",
            now,
            preset=settings.preset,
            preset_notes=settings.notes,
            replay_of=str(file.path),
        )
        info.write(hidden.run_yaml)
        write_launch(hidden, attempt, launch, created=now, run_created=now, cwd=run.path)
    spawn_supervisor(run)
    return run

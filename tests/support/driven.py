"""A run whose driver is a few lines of Python, below a real supervisor."""

import sys
import time

from launcher.preset.files import LoadedPreset
from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, appearing
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch


def driven(name: str, loaded: LoadedPreset, code: str) -> RunDir:
    """Starts a run of a preset on the CPU with this code in veRL's place."""
    with appearing(name) as (run, hidden):
        attempt, now = hidden.add_attempt(), time.time()
        RunInfo(run.id, name, now, preset=loaded.snapshot(), on_cpu=True).write(hidden.run_yaml)
        launch = Launch([sys.executable, "-u", "-c", code], {}, [], {})
        write_launch(hidden, attempt, launch, created=now, run_created=now, resume_step=None, cwd=run.path)
    spawn_supervisor(run)
    return run

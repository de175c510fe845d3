"""Prints a log in veRL's place, `speed` times faster than it was written, as a driver of its own."""

import re
import sys
import time
from pathlib import Path

from launcher.core.tail import records
from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

_SECONDS = re.compile(rb"timing_s/step:([\d.]+)")


def begin(log: Path, speed: float, code: int = 0) -> RunDir:
    """A run whose driver plays a log and ends with an exit code."""
    run, now = create("played"), time.time()
    RunInfo(run.id, "played", now, replay_of=str(log)).write(run.run_yaml)
    argv = [sys.executable, __file__, str(log), str(speed), str(code)]
    launch = Launch(argv, {"PYTHONPATH": str(Path(__file__).parents[2])}, [], {})
    write_launch(run, run.add_attempt(), launch, created=now, run_created=now)
    spawn_supervisor(run)
    return run


if __name__ == "__main__":
    for line in records(Path(sys.argv[1])):
        if found := _SECONDS.search(line):
            sys.stdout.flush()
            time.sleep(float(found[1]) / float(sys.argv[2]))
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.flush()
    sys.exit(int(sys.argv[3]))

"""Runs under a real supervisor with a few lines of Python as the driver instead of veRL."""

import gzip
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.process import ProcessId
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

SLEEPS = "import time; time.sleep(600)"
SHOWS = """
import shutil, sys, time
shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer)
sys.stdout.flush()
time.sleep(60)
"""


def written(
    code: str,
    *words: str,
    run: RunDir | None = None,
    env: Mapping[str, str] | None = None,
    keys: Mapping[str, Any] | None = None,
    submit: str | None = None,
    resume_step: int | None = None,
    python: str = sys.executable,
    **info: Any,
) -> RunDir:
    """A run, or a further attempt of one, with this code as its driver; not started. `info`: for run.yaml."""
    run, now = run or create("x"), time.time()
    RunInfo(**{"id": run.id, "name": "x", "created": now, **info}).write(run.run_yaml)
    launch = Launch([python, "-u", "-c", code, *words], dict(env or {}), [], dict(keys or {}), submit=submit)
    write_launch(run, run.add_attempt(), launch, created=now, run_created=now, resume_step=resume_step)
    return run


def driven(code: str, *words: str, **more: Any) -> RunDir:
    """As `written`, with its supervisor."""
    run = written(code, *words, **more)
    spawn_supervisor(run)
    return run


def plain(log: Path, folder: Path) -> str:
    """The path of a recorded log, unpacked into a folder; SHOWS prints it."""
    file = folder / log.stem
    file.write_bytes(gzip.decompress(log.read_bytes()))
    return str(file)


def listener(heard: Path) -> list[str]:
    """An `on_alert` command that appends its input to a file."""
    return [sys.executable, "-c", f"import sys; open({str(heard)!r}, 'a').write(sys.stdin.read() + chr(10))"]


def known(found: ProcessId | None) -> ProcessId:
    assert found is not None
    return found

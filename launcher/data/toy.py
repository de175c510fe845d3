"""The toy task of the preset toy-cpu: `ppo_tui_inside.probes.toy_task` builds it in veRL's interpreter."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher import inside
from launcher.core.errors import UserError, of_writing
from launcher.core.files import foreign, make_folder
from launcher.core.paths import cache_dir
from launcher.inside.ppo_tui_inside.probes.toy_task import FULL, RECIPE

_DOCTOR = "check its packages with 'ppo-tui doctor'"


def ensure(*, python: str = sys.executable, progress: Callable[[str], None] = lambda _: None) -> Path:
    """The folder of the toy task in ppo-tui's cache, built on first use and by one process at a time.

    `python`: an interpreter with torch and transformers. Raises UserError on failure.
    """
    folder = cache_dir() / "toy"
    with _alone(folder.with_suffix(".lock")):
        if _recipe(folder) != RECIPE:
            shutil.rmtree(folder, ignore_errors=True)
            try:
                process = subprocess.Popen(
                    inside.probe(python, "toy_task", str(folder)),
                    env={**os.environ, "HF_HUB_OFFLINE": "1"},
                    cwd=folder.parent,  # Python looks there first, and the current folder may have a torch.py
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    umask=0o077,
                )
            except OSError as error:
                raise UserError(f"the toy model could not be built with {python}: {error.strerror}", _DOCTOR) from None
            line = ""
            with process:
                assert process.stdout is not None
                for line in map(str.strip, process.stdout):
                    progress(line)
            if process.returncode == FULL:
                raise of_writing(folder, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            if process.returncode != 0:
                raise UserError(f"the toy model could not be built with {python}: {line}", _DOCTOR)
    return folder


def ensure_for(model: str | None, python: str, progress: Callable[[str], None]) -> None:
    """Builds the missing toy task if the preset's path `model` is part of it."""
    if model and Path(model).is_relative_to(cache_dir() / "toy"):
        ensure(python=python, progress=progress)


def _recipe(folder: Path) -> str | None:
    try:  # rebuilds files of other users
        return None if any(map(foreign, folder.rglob("*"))) else (folder / "recipe").read_text()
    except OSError:
        return None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Waits until no other process holds the lock file `path`."""
    make_folder(path.parent)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed, also by a crash
        yield

"""What unit tests share."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import caches
import pytest
from commands import call
from valid_json import validate
from verl_process import Parent, parent
from waiting import PATIENCE


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PPO_TUI_HOME, empty."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def ppo_tui(tmp_path: Path, shared: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs `ppo-tui WORDS...` with a home of its own, without a terminal; keywords are environment."""

    caches.share(tmp_path / "home", shared)

    def run(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [sys.executable, "-c", "from tui.entry import main; main()", *words],
            env={**os.environ, "PPO_TUI_HOME": str(tmp_path / "home"), **more},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        validate(words, done.stdout)
        return done

    return run


@pytest.fixture
def in_process(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """The same in this process, which saves most of a second; for commands that start nothing that lasts."""
    caches.share(tmp_path / "home", shared)
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        out, err, code = call(words)
        return subprocess.CompletedProcess(words, int(str(code or 0)), out.decode(), err.decode())

    return run


@pytest.fixture(scope="session")
def plugin() -> ModuleType:
    """The plugin in this process; for tests marked `WITH_VERL`, since it imports veRL, which takes eight seconds."""
    return importlib.import_module("ppo_tui_inside.plugin")


@pytest.fixture(scope="session")
def verl() -> Iterator[Parent]:
    """Runs scripts with veRL; for tests marked `WITH_VERL`."""
    with parent() as process:
        yield process

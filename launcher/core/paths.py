"""Folders and files of ppo-tui. Pure functions: none creates a folder."""

import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import platformdirs

import launcher

_APP = "ppo-tui"
OTHER_HOME = "set PPO_TUI_HOME to another folder"


def _home(env: Mapping[str, str] = os.environ) -> Path | None:
    home = env.get("PPO_TUI_HOME")
    return Path(home).expanduser().absolute() if home else None


def runs_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Folder of all runs, one folder per run [default of `env`: this process's environment]."""
    home = _home(env)
    return home / "runs" if home else Path(platformdirs.user_data_dir(_APP)) / "runs"


def queue_dir() -> Path:
    """Folder of the queue, one file per waiting run."""
    return runs_dir().parent / "queue"


def cache_dir() -> Path:
    """Folder of data that can be rebuilt: the toy model, composed configurations."""
    home = _home()
    return home / "cache" if home else Path(platformdirs.user_cache_dir(_APP))


def presets_dir() -> Path:
    """Folder of the user's own presets; they shadow shipped ones of the same name."""
    home = _home()
    return home / "presets" if home else Path(platformdirs.user_config_dir(_APP)) / "presets"


def layout_file() -> Path:
    """File of the metrics that the user pinned to the dashboard."""
    return presets_dir().parent / "layout.json"


def settings_file() -> Path:
    """The user's config.yaml: theme, mouse, keys."""
    return presets_dir().parent / "config.yaml"


def home_hint(error: OSError) -> str:
    """The action if one of our folders, or a parent, is not writable; otherwise empty."""
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not error.filename:
        return ""
    place, ours = Path(error.filename), (runs_dir(), cache_dir(), presets_dir())
    return OTHER_HOME if any(place.is_relative_to(each) or each.is_relative_to(place) for each in ours) else ""


def own_command(module: str, *words: str) -> list[str]:
    """The command line that runs a module of ppo-tui, like `python -m`.

    It ignores PYTHONPATH and the current folder; PYTHONPATH stays in its environment, for veRL (`ppo_tui.py`).
    """
    return [sys.executable, str(Path(launcher.__path__[0]).with_name("ppo_tui.py")), "-m", module, *words]

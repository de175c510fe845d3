"""The environment of a run: what the preset sets, what ppo-tui adds, and never a secret."""

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import launcher
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.secrets import in_setting, is_secret, looks_secret
from launcher.preset.schema import Preset

PLUGIN = "launcher.verl_plugin"  # SDPA where flash-attn is missing, and the CPU platform

LOGGER = "VERL_FILE_LOGGER_PATH"
FIXED = {
    "VERL_REPLAY_BUFFER_DEBUG_INTERVAL_SECONDS": "5",  # counts of finished rollouts, for the progress
    "PYTHONUNBUFFERED": "1",
    "RAY_COLOR_PREFIX": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""What every run has unless its preset sets it."""
ON_CPU = {"VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda"}  # veRL's engines know cuda and npu only

_OURS = {LOGGER: "remove it", "RAY_ADDRESS": "use cluster.address"}  # and what to do instead
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def variables(preset: Preset, metrics: Path, python: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables laid over `environ` for the driver; `metrics` is where veRL's file logger writes."""
    env = {LOGGER: str(metrics), **FIXED, **preset.env, **(ON_CPU if preset.trainer.device == "cpu" else {})}
    for name, first, separator in (
        ("VERL_USE_EXTERNAL_MODULES", PLUGIN, ","),
        ("PYTHONPATH", plugin_path(python), os.pathsep),
    ):
        given = (preset.env.get(name) or environ.get(name, "")).split(separator)
        parts = dict.fromkeys(part for part in (first, *given) if part)
        if parts:
            env[name] = separator.join(parts)
    return env


def plugin_path(python: Path) -> str:
    """The folder from which the interpreter `python` can import `launcher`, or "" when it can do so anyway.

    A checkout is its own folder. Our site-packages must not leak into another interpreter: for that one a
    folder in the cache holds nothing but a link to the package.
    """
    package = Path(launcher.__path__[0])
    if package.parent.name not in ("site-packages", "dist-packages"):
        return str(package.parent)
    if python.absolute() == Path(sys.executable).absolute():
        return ""
    folder = paths.cache_dir() / "pythonpath" / hashlib.sha256(str(package).encode()).hexdigest()[:8]
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "launcher"
    if not link.is_symlink():
        link.symlink_to(package)
    return str(folder)


def check(name: str, value: str, source: str) -> None:
    """Raises UserError, which starts with `source`, for a variable that a preset cannot set."""
    if not _NAME.fullmatch(name) or "\0" in value:
        raise UserError(f"{source}: {name!r} is not a valid environment variable")
    if name in _OURS:
        raise UserError(f"{source}: {name} is set by ppo-tui", _OURS[name])
    if is_secret(name) or looks_secret(value):
        raise UserError(
            f"{source}: {name} looks like a secret, and presets are stored with every run",
            f"export {name} in the shell instead, from which veRL inherits it",
        )


def check_setting(key: str, value: Any, source: str) -> None:
    """Raises UserError, which starts with `source` and leaves out the value, where a setting would store a secret."""
    if in_setting(key, value):
        raise UserError(
            f"{source}: {key} looks like a secret, and settings are stored with every run",
            f"export it in the shell as a variable, and let the veRL key read that: {key}='${{oc.env:NAME}}'",
        )

"""The environment of a run: what the preset sets, what ppo-tui adds, and never a secret."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import launcher
from launcher import paths
from launcher.errors import UserError
from launcher.preset.schema import Preset

PLUGIN = "launcher.verl_plugin"  # SDPA where flash-attn is missing, and the CPU platform
_MANAGED = ("VERL_FILE_LOGGER_PATH", "RAY_ADDRESS")
_SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|KEY|PASSWD|PASSWORD|SECRET|CREDENTIALS?)(?:_|$)|(?:TOKEN|SECRET|PASSWORD|APIKEY)$"
)
_LOGIN = re.compile(r"://[^/@\s]*:[^/@\s]+@")


def variables(preset: Preset, metrics: Path, python: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What is laid over `environ` for the driver. Raises UserError for secrets and for names that are ours."""
    for name, value in preset.env.items():
        _check(name, value)
    env = {
        "VERL_FILE_LOGGER_PATH": str(metrics),
        "VERL_REPLAY_BUFFER_DEBUG_INTERVAL_SECONDS": "5",  # counts of finished rollouts, for the progress
        "PYTHONUNBUFFERED": "1",
        "RAY_COLOR_PREFIX": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        **preset.env,
    }
    if preset.trainer.device == "cpu":
        env.update(VERL_PLATFORM="cpu", VERL_ENGINE_DEVICE="cuda")  # its engines know cuda and npu only
    env["VERL_USE_EXTERNAL_MODULES"] = _joined(
        ",", PLUGIN, _given("VERL_USE_EXTERNAL_MODULES", preset, environ)
    )
    path = _joined(os.pathsep, plugin_path(python), _given("PYTHONPATH", preset, environ))
    if path:
        env["PYTHONPATH"] = path
    return env


def plugin_path(python: Path) -> str:
    """The folder from which the interpreter `python` can import `launcher`, or "" when it can do so anyway.

    A checkout is its own folder. Our site-packages must not leak into another interpreter: for that one a
    folder in the cache holds nothing but a link to the package.
    """
    package = Path(launcher.__file__).parent
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


def is_secret(name: str) -> bool:
    """Whether a variable of that name is likely to hold one: HF_TOKEN, WANDB_API_KEY; not MAX_TOKENS."""
    return _SECRET.search(name.upper()) is not None


def _check(name: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in value:
        raise UserError(f"env: '{name}' cannot be an environment variable")
    if name in _MANAGED:
        other = "; use cluster.address" if name == "RAY_ADDRESS" else ""
        raise UserError(f"env: {name} is set by ppo-tui{other}")
    if is_secret(name) or _LOGIN.search(value):
        raise UserError(
            f"env: {name} looks like a secret, and presets are kept with every run; "
            f"export {name} in the shell instead: veRL inherits it"
        )


def _given(name: str, preset: Preset, environ: Mapping[str, str]) -> str:
    return preset.env.get(name) or environ.get(name, "")


def _joined(separator: str, first: str, rest: str) -> str:
    """`first` in front of `rest`, each part once."""
    return separator.join(dict.fromkeys(part for part in (first, *rest.split(separator)) if part))

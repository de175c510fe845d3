"""The environment of a run: the preset's variables and ppo-tui's, without secrets."""

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from launcher import inside
from launcher.core.errors import SecretValue, UserError
from launcher.core.secret_forms import is_secret, looks_secret
from launcher.core.secrets import in_setting
from launcher.preset.schema import Preset

LOGGER = "VERL_FILE_LOGGER_PATH"
FIXED = {
    "VERL_REPLAY_BUFFER_DEBUG_INTERVAL_SECONDS": "5",  # counts of finished rollouts, for the progress
    "PYTHONUNBUFFERED": "1",
    "RAY_COLOR_PREFIX": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Variables of every run; its preset can override them."""
ON_CPU = {"VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda"}  # veRL's engines support only cuda and npu

_OURS = {LOGGER: "remove it", "RAY_ADDRESS": "use cluster.address"}  # with the right action
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def variables(preset: Preset, metrics: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The driver's variables in addition to `environ`; `metrics`: path of veRL's file logger."""
    env = {LOGGER: str(metrics), **FIXED, **preset.env, **(ON_CPU if preset.trainer.device == "cpu" else {})}
    for name, first, separator in (
        ("VERL_USE_EXTERNAL_MODULES", inside.PLUGIN, ","),
        ("PYTHONPATH", str(inside.FOLDER), os.pathsep),
    ):
        given = (preset.env.get(name) or environ.get(name, "")).split(separator)
        env[name] = separator.join(dict.fromkeys(part for part in (first, *given) if part))
    return env


def tracker_ids(loggers: Collection[str], run: str, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that make all attempts of a run continue one tracker run; set variables stay.

    veRL passes no id to the trackers. MLflow continues only a run that its server has, and Trackio reads no variable.
    """
    # SwanLab took only 21 small letters and digits at first.
    ids = {"wandb": run, "swanlab": hashlib.sha256(run.encode()).hexdigest()[:21]}
    for tracker, id in ids.items():
        if tracker in loggers:
            for name, value in ((f"{tracker.upper()}_RUN_ID", id), (f"{tracker.upper()}_RESUME", "allow")):
                if not given.get(name):
                    yield name, value


def check(name: str, value: str, source: str) -> None:
    """Raises UserError with the place `source` for a variable that a preset cannot set."""
    if not _NAME.fullmatch(name) or "\0" in value:
        raise UserError(f"{name!r} is not a valid environment variable", "use letters, digits and _", source)
    if name in _OURS:
        raise UserError(f"{name} is set by ppo-tui", _OURS[name], source)
    if is_secret(name) or looks_secret(value):
        raise SecretValue(
            f"{name} looks like a secret, and presets are stored with every run",
            f"export {name} in the shell instead, from which veRL inherits it",
            source,
        )


def check_setting(key: str, value: Any, source: str) -> None:
    """Raises UserError with the place `source` for a setting that would store a secret, without the value."""
    if in_setting(key, value):
        raise SecretValue(
            f"{key} looks like a secret, and settings are stored with every run",
            f"export it in the shell as a variable, and let the veRL key read that: {key}='${{oc.env:NAME}}'",
            source,
        )

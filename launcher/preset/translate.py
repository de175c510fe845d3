"""A preset into the command that runs it: arguments and environment for one version of veRL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.errors import UserError
from launcher.preset import environment, hydra, versions
from launcher.preset.files import LoadedPreset
from launcher.preset.schema import FIELDS, Preset, value_of

MODULE = "verl.trainer.main_ppo"
BUILT_IN_REWARDS = ("gsm8k", "math")
NEEDED = ("model.path", "data.train", "data.val", "data.train_batch_size")
_FILE_LOGGER = (0, 7, 1)  # before, it loses lines and dies of numpy numbers
_STORAGE = "transfer_queue.backend.SimpleStorage.num_data_storage_units"
_OURS = ("trainer.resume_mode", "trainer.resume_from_path", "trainer.default_local_dir", "trainer.rollout_data_dir",
         "trainer.validation_data_dir")  # fmt: skip


@dataclass(frozen=True)
class RunFolders:
    """Where a run writes; absolute paths."""

    checkpoints: Path  # trainer.default_local_dir
    rollouts: Path  # trainer.rollout_data_dir
    validations: Path  # trainer.validation_data_dir
    metrics: Path  # the file of veRL's file logger; truncated at each start
    hydra: Path  # hydra.run.dir


@dataclass(frozen=True)
class Launch:
    """What starts the driver.

    `env` is laid over the environment of whoever starts it, after the names in `unset` were taken out of it;
    it holds no secrets. `keys` are the veRL keys in `argv` with their values.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    unset: tuple[str, ...]
    keys: dict[str, Any]


def build(
    loaded: LoadedPreset, *, version: str, folders: RunFolders, python: str | Path,
    experiment: str | None = None, resume_from: Path | None = None, environ: Mapping[str, str] | None = None,
) -> Launch:  # fmt: skip
    """The command line of `loaded` for veRL `version`, run by the interpreter `python`.

    `experiment` names the run in trackers (the preset's name when None). `resume_from` is a `global_step_<n>`
    folder to continue from. `environ` is the environment the driver will be started from (ours when None):
    PYTHONPATH and VERL_USE_EXTERNAL_MODULES are added to, not replaced. Raises UserError.
    """
    versions.check(version)
    preset = loaded.preset
    missing = [name for name in NEEDED if value_of(preset, FIELDS[name]) is None]
    if missing:
        raise UserError(f"preset {loaded.name} does not say {' nor '.join(missing)}; set it there or as KEY=VALUE")
    env = environment.variables(preset, folders.metrics, Path(python), os.environ if environ is None else environ)
    wanted: dict[str, tuple[str, Any]] = {}  # key of the newest version -> (prefix, value)
    _fields(preset, wanted)
    _special(preset, wanted, version, experiment or loaded.name)
    _folders(wanted, folders, resume_from)
    _overrides(preset, wanted)
    _ray(preset, wanted, env)
    named = {versions.at(key, version): pair for key, pair in wanted.items()}
    arguments = [f"{prefix}{key}={hydra.quote(value)}" for key, (prefix, value) in named.items()]
    # Hydra's own notes (config, overrides, log) go into the run too, not into the working directory.
    arguments += [f"hydra.run.dir={hydra.quote(str(folders.hydra))}", "hydra.output_subdir=config"]
    return Launch(
        argv=(str(python), "-u", "-m", MODULE, *arguments),
        env=env,
        unset=() if preset.cluster.address else ("RAY_ADDRESS",),
        keys={key: value for key, (_, value) in named.items()},
    )


def _fields(preset: Preset, wanted: dict[str, tuple[str, Any]]) -> None:
    for spec in FIELDS.values():
        value = value_of(preset, spec)
        if value is None and spec.follows:
            value = value_of(preset, FIELDS[spec.follows])
        if not spec.key or value is None or (spec.path[0] == "critic" and preset.algorithm == "grpo"):
            continue
        if isinstance(value, str):
            value = spec.names.get(value, value)
        wanted[spec.key] = (spec.plus, value[0] if spec.kind and isinstance(value, list) and len(value) == 1 else value)


def _special(preset: Preset, wanted: dict[str, tuple[str, Any]], version: str, experiment: str) -> None:
    """Fields whose value is not simply passed on."""
    always = ["console", "file"] if versions.number(version) >= _FILE_LOGGER else ["console"]
    extra = [name for name in preset.trainer.loggers if name not in ("console", "file")]
    wanted["trainer.logger"] = ("", always + extra)
    wanted.setdefault("trainer.experiment_name", ("", experiment))
    if preset.reward.path is None:
        if preset.reward.function not in (None, *BUILT_IN_REWARDS):
            raise UserError(
                f"reward.function is '{preset.reward.function}'; without reward.path it is one of veRL's own: "
                f"{', '.join(BUILT_IN_REWARDS)}"
            )
        wanted.pop("reward.custom_reward_function.name", None)
    elif preset.reward.function in BUILT_IN_REWARDS:  # left over from the preset that this one extends
        del wanted["reward.custom_reward_function.name"]
    if versions.number(version) < (0, 8, 0):
        wanted.pop(_STORAGE)  # no TransferQueue yet


def _folders(wanted: dict[str, tuple[str, Any]], folders: RunFolders, resume_from: Path | None) -> None:
    """Everything a run writes lies in its own folder; nothing is ever continued by accident."""
    values = {
        "trainer.default_local_dir": str(folders.checkpoints),
        "trainer.rollout_data_dir": str(folders.rollouts),
        "trainer.validation_data_dir": str(folders.validations),
        "trainer.resume_mode": "resume_path" if resume_from else "disable",
    }
    if resume_from:
        values["trainer.resume_from_path"] = str(resume_from)
    wanted.update({key: ("", value) for key, value in values.items()})


def _overrides(preset: Preset, wanted: dict[str, tuple[str, Any]]) -> None:
    for spelled, value in preset.overrides.items():
        prefix, key = hydra.split_key(spelled)
        if key in _OURS:
            raise UserError(
                f"{key} is set by ppo-tui, so that a run keeps to its own folder; "
                "`ppo-tui resume` continues a run, PPO_TUI_HOME moves all runs"
            )
        home = isinstance(value, str) and (value == "~" or value.startswith("~/"))
        wanted[key] = (prefix, os.path.expanduser(value) if home else value)


def _ray(preset: Preset, wanted: dict[str, tuple[str, Any]], env: Mapping[str, str]) -> None:
    ray = "ray_kwargs.ray_init"
    if preset.cluster.address:
        # Workers of a cluster that is there already do not inherit the driver's environment.
        for name, value in env.items():
            wanted.setdefault(f"{ray}.runtime_env.env_vars.{name}", ("+", value))
        return
    wanted.setdefault(f"{ray}.include_dashboard", ("+", False))  # a minute of start-up
    if preset.trainer.device == "cpu":
        wanted.setdefault(f"{ray}.num_gpus", ("+", preset.trainer.gpus))  # slots, one a worker

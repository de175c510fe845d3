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
NEEDED = ("model.path", "data.train", "data.val")  # veRL's own defaults lead nowhere
_FILE_LOGGER = (0, 7, 1)  # before, it loses lines and dies of numpy numbers
_STORAGE = (0, 8, 0)  # before, there is no TransferQueue to size
_RAY = "ray_kwargs.ray_init"

Arguments = dict[str, tuple[str, Any]]
"""Key, as the newest version calls it -> (its prefix: "", "+" or "++"; its value)."""


@dataclass(frozen=True)
class RunFolders:
    """Where a run writes; absolute paths."""

    checkpoints: Path  # trainer.default_local_dir
    rollouts: Path  # trainer.rollout_data_dir
    validations: Path  # trainer.validation_data_dir
    metrics: Path  # the file of veRL's file logger, which truncates it at each start
    hydra: Path  # hydra.run.dir


@dataclass(frozen=True)
class Launch:
    """What starts the driver.

    `env` is laid over the environment of whoever starts it, after the names in `unset` were taken out of it;
    it holds no secrets. `keys` are the veRL keys in `argv` with their values.
    """

    argv: list[str]
    env: dict[str, str]
    unset: list[str]
    keys: dict[str, Any]


def build(
    loaded: LoadedPreset,
    *,
    version: str,
    folders: RunFolders,
    python: str | Path,
    experiment: str | None = None,
    resume_from: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Launch:
    """The command line of `loaded` for veRL `version`, run by the interpreter `python`.

    `experiment` names the run in trackers (the preset's name when None). `resume_from` is a `global_step_<n>`
    folder to continue from. `environ` is the environment the driver will be started from (ours when None):
    PYTHONPATH and VERL_USE_EXTERNAL_MODULES are added to, not replaced. Raises UserError.
    """
    versions.check(version)
    preset = loaded.preset
    missing = [name for name in NEEDED if not value_of(preset, FIELDS[name])]
    if missing:
        raise UserError(f"preset {loaded.name} does not say {' nor '.join(missing)}: set it there or as KEY=VALUE")
    reward = preset.reward
    if reward.path is None and reward.function not in (None, *BUILT_IN_REWARDS):
        raise UserError(
            f"reward.function is {reward.function!r}: without reward.path it is one of veRL's own, "
            + " or ".join(BUILT_IN_REWARDS)
        )
    env = environment.variables(preset, folders.metrics, Path(python), os.environ if environ is None else environ)
    ours = _folders(folders, resume_from)
    wanted = {
        **_fields(preset),
        **_derived(preset, version, experiment or loaded.name),
        **ours,
        **_ray(preset, env),
        **_overrides(preset, ours),
    }
    _drop(preset, version, wanted)
    named = _named(wanted, version)
    return Launch(
        argv=[
            str(python),
            "-u",
            "-m",
            MODULE,
            *(f"{prefix}{key}={hydra.quote(value)}" for key, (prefix, value) in named.items()),
            # Hydra's own notes (config, overrides, log) belong to the run, not to the working directory.
            f"hydra.run.dir={hydra.quote(str(folders.hydra))}",
            "hydra.output_subdir=config",
        ],
        env=env,
        unset=[] if preset.cluster.address else ["RAY_ADDRESS"],
        keys={key: value for key, (_, value) in named.items()},
    )


def _named(wanted: Arguments, version: str) -> Arguments:
    """The keys as `version` calls them. Raises UserError with every one that it does not have."""
    named: Arguments = {}
    missing: list[str] = []
    for key, (prefix, value) in wanted.items():
        try:
            name = versions.at(key, version)
        except UserError as error:
            missing.append(str(error))
        else:
            named[name] = ("+" if versions.unlisted(key, version) else prefix, value)
    if missing:
        raise UserError("; ".join(missing))
    return named


def _fields(preset: Preset) -> Arguments:
    """Every field that is set, or that follows one that is."""
    found: Arguments = {}
    for spec in FIELDS.values():
        value = value_of(preset, spec)
        if value is None and spec.follows:
            value = value_of(preset, FIELDS[spec.follows])
        if spec.key and value is not None:
            found[spec.key] = (spec.plus, spec.names.get(value, value) if isinstance(value, str) else value)
    return found


def _derived(preset: Preset, version: str, experiment: str) -> Arguments:
    """Fields whose value is not simply passed on."""
    always = ["console", "file"] if versions.number(version) >= _FILE_LOGGER else ["console"]
    more = [name for name in preset.trainer.loggers if name not in ("console", "file")]
    return {
        "trainer.logger": ("", always + more),
        "trainer.experiment_name": ("", preset.trainer.experiment or experiment),
    }


def _folders(folders: RunFolders, resume_from: Path | None) -> Arguments:
    """Everything a run writes lies in its own folder, and nothing is ever continued by accident."""
    return {
        "trainer.default_local_dir": ("", str(folders.checkpoints)),
        "trainer.rollout_data_dir": ("", str(folders.rollouts)),
        "trainer.validation_data_dir": ("", str(folders.validations)),
        "trainer.resume_mode": ("", "resume_path" if resume_from else "disable"),
        **({"trainer.resume_from_path": ("", str(resume_from))} if resume_from else {}),
    }


def _ray(preset: Preset, env: Mapping[str, str]) -> Arguments:
    """Ray of our own; or the environment for the workers of one that is there, who do not inherit it."""
    if preset.cluster.address:
        return {f"{_RAY}.runtime_env.env_vars.{name}": ("+", value) for name, value in env.items()}
    found: Arguments = {
        f"{_RAY}.include_dashboard": ("+", False),  # a minute of start-up
        # else Ray joins whatever `ray start` left on this host, whose workers do not have our environment
        f"{_RAY}.address": ("+", "local"),
    }
    if preset.trainer.device == "cpu":
        found[f"{_RAY}.num_gpus"] = ("+", preset.trainer.gpus)  # slots, one a worker
    return found


def _overrides(preset: Preset, ours: Arguments) -> Arguments:
    """The keys without a field, as they are; `~/` is filled in, because veRL does so only here and there."""
    found: Arguments = {}
    for spelled, value in preset.overrides.items():
        prefix, key = hydra.split_key(spelled, "overrides")
        if key in ours or key == "trainer.resume_from_path":
            raise UserError(
                f"{key} is set by ppo-tui, so that a run keeps to its own folder: "
                "'ppo-tui resume' continues a run, PPO_TUI_HOME moves all runs"
            )
        home = isinstance(value, str) and value.startswith("~/")
        found[key] = (prefix, str(Path(value).expanduser()) if home else value)
    return found


def _drop(preset: Preset, version: str, wanted: Arguments) -> None:
    """Takes out what means nothing here."""
    if preset.cluster.address:
        wanted.pop(f"{_RAY}.num_cpus", None)  # the cluster knows its own
    if preset.algorithm == "grpo":  # has no critic
        for key in [key for key in wanted if key.startswith("critic.")]:
            del wanted[key]
    if versions.number(version) < _STORAGE:
        wanted.pop("transfer_queue.backend.SimpleStorage.num_data_storage_units", None)
    if preset.reward.function in BUILT_IN_REWARDS:
        # veRL chooses them by the data; next to a path it is left over from the preset that was extended.
        del wanted["reward.custom_reward_function.name"]

"""Translates a preset into the command that runs it: arguments and environment for one version of veRL."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError
from launcher.preset import environment
from launcher.preset.effective import Setting, Settings, for_version, of_fields, of_overrides
from launcher.preset.files import LoadedPreset
from launcher.preset.schema import FIELDS, Preset, value_of
from launcher.record.process import RUN
from launcher.verl import hydra, versions
from launcher.verl.config import RAY
from launcher.verl.defaults import NEWEST

NEEDED = ("model.path", "data.train", "data.val")  # veRL's own defaults lead nowhere
_RESPONSE = 512  # veRL's default of data.max_response_length
_STARTS_RAY = (f"{RAY}.address", f"{RAY}.num_cpus")
_FILE_LOGGER = (0, 7, 1)  # earlier versions lose lines and fail on numpy numbers


OURS = {
    "trainer.default_local_dir",
    "trainer.rollout_data_dir",
    "trainer.validation_data_dir",
    "trainer.resume_mode",
    "trainer.resume_from_path",
    "hydra.run.dir",
    "hydra.output_subdir",
    "ray_kwargs.ray_init.include_dashboard",
    "ray_kwargs.ray_init.num_gpus",
}
"""The keys that ppo-tui sets for each run."""


@dataclass(frozen=True)
class RunFolders:
    """The output folders of a run; absolute paths."""

    checkpoints: Path  # trainer.default_local_dir
    rollouts: Path  # trainer.rollout_data_dir
    validations: Path  # trainer.validation_data_dir
    metrics: Path  # the file of veRL's file logger, which truncates it at each start
    hydra: Path  # hydra.run.dir

    @classmethod
    def below(cls, folder: Path) -> RunFolders:
        """The folders of a future run."""
        names = ("checkpoints", "samples/rollout", "samples/validation", "metrics.jsonl", "hydra")
        return cls(*(folder / name for name in names))


@dataclass(frozen=True)
class Launch:
    """The command of the driver.

    `env` is added to the starting process's environment, after removing the names in `unset`; it contains no secrets.
    `keys`: the veRL keys in `argv` with their values. `cwd`: folder to start in, if it matters. `submit`: the Ray
    dashboard to submit it to as a job.
    """

    argv: list[str]
    env: dict[str, str]
    unset: list[str]
    keys: dict[str, Any]
    cwd: str | None = None
    submit: str | None = None


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

    `experiment`: the run's id for trackers and processes; None without a run (trackers then get the preset's name).
    `resume_from`: a `global_step_<n>` folder to continue from. `environ`: the environment of the driver's start
    [default: ppo-tui's]; PYTHONPATH and VERL_USE_EXTERNAL_MODULES are extended, not replaced. Raises UserError.
    """
    preset = loaded.preset
    environ = os.environ if environ is None else environ
    env = environment.variables(preset, folders.metrics, environ)
    passed = settings(loaded, version, folders, env, experiment, resume_from)
    if experiment is not None and (loggers := passed.get("trainer.logger")) is not None:
        env.update(environment.tracker_ids(loggers.value, experiment, {**environ, **env}))
    return Launch(
        argv=[
            str(python),
            "-u",
            *preset.program.command,
            *preset.program.options,
            *(_override(key, setting) for key, setting in passed.items()),
            # Hydra's own notes (config, overrides, log) belong to the run, not to the working directory.
            f"hydra.run.dir={hydra.quote(str(folders.hydra))}",
            "hydra.output_subdir=config",
        ],
        env=env,
        unset=[] if preset.cluster.address else ["RAY_ADDRESS"],
        keys={key: setting.value for key, setting in passed.items()},
        cwd=preset.program.folder,
        submit=(preset.cluster.address or "auto") if preset.cluster.submit else None,
    )


def command_line(launch: Launch) -> str:
    """The shell command equal to `launch`: environment first, one setting per line."""
    unset = [part for name in launch.unset for part in ("-u", name)]
    env = [f"{name}={shlex.quote(value)}" for name, value in launch.env.items()]
    start = next(index for index, word in enumerate(launch.argv) if word == "-m" or word.endswith(".py"))
    start += 2 if launch.argv[start] == "-m" else 1
    first = " ".join(shlex.quote(word) for word in launch.argv[:start])
    lines = [*([" ".join(["env", *unset])] if unset else []), *env, first, *map(shlex.quote, launch.argv[start:])]
    command = " \\\n  ".join(lines)
    return f"cd {shlex.quote(launch.cwd)} && {command}" if launch.cwd else command


def _override(key: str, setting: Setting) -> str:
    """One word of the command; `~key` removes a key."""
    return f"~{key}" if setting.prefix == "~" else f"{setting.prefix}{key}={hydra.quote(setting.value)}"


def settings(
    loaded: LoadedPreset,
    version: str,
    folders: RunFolders,
    env: Mapping[str, str],
    experiment: str | None = None,
    resume_from: Path | None = None,
) -> Settings:
    """All settings of veRL `version`, under its own names; arguments as in `build`.

    Raises UserError for a preset that cannot be launched: too old a veRL, missing keys, no model or data. A foreign
    program may have any keys, and the preset's own veRL any version.
    """
    preset = loaded.preset
    if preset.own_verl is None:
        versions.check(version)
    missing = [name for name in NEEDED if not value_of(preset, FIELDS[name])]
    if missing and preset.program.config is not None:
        raise UserError(
            f"preset {loaded.name} does not set {' or '.join(missing)}", "set it in the preset or as KEY=VALUE"
        )
    ours = _folders(folders, resume_from)
    overrides = of_overrides(loaded.layer)
    for key in overrides:
        if key in ours or key == "trainer.resume_from_path":
            raise UserError(
                f"{key} is set by ppo-tui to the folder of the run",
                "continue a run with 'ppo-tui resume'; PPO_TUI_HOME sets the folder of all runs",
            )
    derived = _derived(preset, version, experiment or loaded.name)
    fields = of_fields(loaded.layer, foreign=preset.is_foreign)
    if preset.cluster.submit:  # the cluster sets its own, and tells a job its address
        fields = {key: setting for key, setting in fields.items() if key not in _STARTS_RAY}
    wanted = {**fields, **derived, **ours, **_ray(preset, env, experiment), **overrides}
    named, lacking = for_version(wanted, version, preset.program.config_name)
    known = versions.number(version) <= versions.number(NEWEST)  # `check` reads the keys of newer versions from veRL
    if lacking and known and preset.program.config is not None and preset.own_verl is None:
        raise UserError("; ".join(each.what for each in lacking), "; ".join(each.hint for each in lacking))
    return named


def _derived(preset: Preset, version: str, experiment: str) -> Settings:
    """Settings computed from fields."""
    always = ["console", "file"] if versions.number(version) >= _FILE_LOGGER else ["console"]
    more = [name for name in preset.trainer.loggers if name not in ("console", "file")]
    return {
        "trainer.logger": Setting(always + more, "derived"),
        "trainer.experiment_name": Setting(preset.trainer.experiment or experiment, "derived"),
        **_overlong(preset),
    }


def _overlong(preset: Preset) -> Settings:
    """DAPO's penalty for responses near the limit, for the reward manager dapo.

    veRL: `verl/experimental/reward_loop/reward_manager/dapo.py: DAPORewardManager.__init__`.
    """
    if not preset.reward.overlong_buffer:
        return {}
    limit = preset.data.max_response_length or _RESPONSE
    buffer = {
        "enable": True,
        "len": max(1, round(preset.reward.overlong_buffer * limit)),
        "penalty_factor": 1.0,
        "log": False,
    }
    keys = {f"overlong_buffer_cfg.{name}": value for name, value in buffer.items()} | {"max_resp_len": limit}
    found = {f"reward.reward_kwargs.{name}": Setting(value, "derived", "+") for name, value in keys.items()}
    if preset.reward.manager is None:
        found["reward.reward_manager.name"] = Setting("dapo", "derived")
    return found


def _folders(folders: RunFolders, resume_from: Path | None) -> Settings:
    """Settings that make a run write only into its own folder, and never continue another run by accident."""
    found = {
        "trainer.default_local_dir": str(folders.checkpoints),
        "trainer.rollout_data_dir": str(folders.rollouts),
        "trainer.validation_data_dir": str(folders.validations),
        "trainer.resume_mode": "resume_path" if resume_from else "disable",
        **({"trainer.resume_from_path": str(resume_from)} if resume_from else {}),
    }
    return {key: Setting(value) for key, value in found.items()}


def _ray(preset: Preset, env: Mapping[str, str], run: str | None) -> Settings:
    """Settings for Ray: our own; for a running cluster, the workers' environment, which only a job passes on."""
    if preset.cluster.submit:
        return {}
    if preset.cluster.address:
        env = {**env, RUN: run} if run else env
        return {f"{RAY}.runtime_env.env_vars.{name}": Setting(value, prefix="+") for name, value in env.items()}
    found = {
        f"{RAY}.include_dashboard": Setting(False, prefix="+"),  # 6 s of a start on an H200, a minute elsewhere
        # else Ray joins whatever `ray start` left on this host, whose workers do not have our environment
        f"{RAY}.address": Setting("local", prefix="+"),
    }
    if preset.trainer.device == "cpu":
        apart = preset.rollout.gpus if preset.trainer.mode == "separate_async" else 0
        found[f"{RAY}.num_gpus"] = Setting(preset.trainer.gpus + (apart or 0), prefix="+")  # slots, one a worker
    return found

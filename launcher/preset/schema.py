"""A preset: all settings of a run. Each field is a row of fields.toml; fields that code reads are declared here."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from launcher.core.tables import tables_of
from launcher.preset.fields import UNGROUPED, Spec, options, rows
from launcher.verl import programs
from launcher.verl.defaults import PPO, is_verl

TABLES = tables_of(__file__, "fields.toml")

FIELDS: dict[str, Spec] = {spec.name: spec for spec in rows(TABLES)}
"""Every field by its dotted name, in command-line order."""

SETTINGS: dict[str, Spec] = {**FIELDS, **{spec.name: spec for spec in options(TABLES)}}
"""The fields, and the options of `health:` by names such as `health.stop_on`."""

BY_KEY: dict[str, Spec] = {spec.key: spec for spec in FIELDS.values() if spec.key}
"""The field for a veRL key (the newest version's name, without `+`)."""

GROUPS = tuple(group for group in TABLES["groups"] if group not in UNGROUPED)

GENERAL = ""
"""The title key of fields without a group."""

TITLES: dict[str, str] = {
    GENERAL: TABLES["groups"][UNGROUPED[0]]["title"],
    **{group: TABLES["groups"][group]["title"] for group in GROUPS},
}
"""The title of each group, in form order."""

ORDER = tuple(dict.fromkeys(spec.path[0] for spec in FIELDS.values()))
"""The top-level names of a preset file, in order."""


def fields_of(group: str) -> list[Spec]:
    """The fields of a group, in order; for `GENERAL`, the fields without a group."""
    return [spec for spec in FIELDS.values() if (GENERAL if len(spec.path) == 1 else spec.path[0]) == group]


class Group:
    """A part of a preset: one attribute per row; attributes that code reads are declared with types."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)


class Model(Group):
    """The trained model, which also initializes the critic."""

    path: str | None
    trust_remote_code: bool | None


class Data(Group):
    """Prompts, in parquet files of veRL's schema."""

    train: str | list[str] | None
    max_response_length: int | None


class Critic(Group):
    """The value model (PPO only; GRPO has none)."""

    path: str | None


class Rollout(Group):
    """The engine that generates the responses."""

    gpus: int | None


class Reward(Group):
    """The function or model that scores a response."""

    function: str | None
    manager: str | None
    overlong_buffer: float | None


class Trainer(Group):
    """Hardware and schedule of the run."""

    gpus: int
    nodes: int
    device: str | None
    experiment: str | None
    loggers: list[str]
    mode: str | None
    keep_best: int | None
    steps: int | None


class Cluster(Group):
    """Ray: a local one, or a running cluster."""

    address: str | None
    submit: bool


MAIN = "verl.trainer.main_ppo"
_EXPERIMENTAL = "experimental/fully_async_policy", "experimental/one_step_off_policy"
_CONFIGS = {
    MAIN: PPO,
    "verl.experimental.fully_async_policy.fully_async_main": f"{_EXPERIMENTAL[0]}/config/fully_async_ppo_trainer",
    "verl.experimental.one_step_off_policy.main_ppo": f"{_EXPERIMENTAL[1]}/config/one_step_off_ppo_trainer",
}
"""veRL's own programs, and the configurations that they start from (`@hydra.main` in each)."""


class Program(Group):
    """The program to run instead of `python -m verl.trainer.main_ppo`, and its folder."""

    entry_point: str | None
    folder: str | None
    config_name: str | None
    config_path: str | None
    config_dir: str | None

    @property
    def config(self) -> str | None:
        """veRL's own configuration for the program, below veRL's folder and without `.yaml`; None for other programs or
        configuration folders.
        """
        usual = _CONFIGS.get(self.entry_point or MAIN)
        path = (self.config_path or "config").removeprefix("./").rstrip("/")  # relative to the program's folder
        if usual is None or path != "config" or self.config_dir:
            return None
        return f"{usual.rpartition('/')[0]}/{self.config_name.removesuffix('.yaml')}" if self.config_name else usual

    @property
    def own(self) -> str:
        """The name of a program other than veRL's PPO trainers; otherwise ""."""
        entry = self.entry_point or MAIN
        return "" if entry in _CONFIGS else entry.rpartition("/")[2]

    @property
    def imports_from(self) -> Path | None:
        """Python's first folder for modules; None: the run's folder."""
        if self.folder is None:
            return None
        entry = self.entry_point or MAIN
        return (Path(self.folder) / entry).parent if entry.endswith(".py") else Path(self.folder)

    @property
    def options(self) -> list[str]:
        """The program's Hydra options."""
        named = (("name", self.config_name), ("path", self.config_path), ("dir", self.config_dir))
        return [f"--config-{name}={value}" for name, value in named if value]

    @property
    def command(self) -> list[str]:
        """The words after the interpreter."""
        entry = self.entry_point or MAIN
        return [entry] if entry.endswith(".py") else ["-m", entry]


class Preset(Group):
    """The whole preset, with `extends` and settings applied. `health` is checked by `launcher.health`."""

    extends: str | None
    description: str
    needs: str
    algorithm: str
    model: Model
    data: Data
    critic: Critic
    rollout: Rollout
    reward: Reward
    trainer: Trainer
    cluster: Cluster
    program: Program
    health: Mapping[str, object]
    sweep: Mapping[str, object]
    env: Mapping[str, str]
    python: str | None
    overrides: dict[str, object]

    @property
    def _imported(self) -> list[Path]:
        path = [Path(each) for each in self.env.get("PYTHONPATH", "").split(os.pathsep) if each]
        return [*filter(None, [self.program.imports_from]), *path]

    @property
    def own_verl(self) -> Path | None:
        """The folder of a veRL that hides the installed one: in the program's folder or on PYTHONPATH."""
        found = (each / "verl" for each in self._imported)
        return next((each for each in found if is_verl(each)), None)

    def configuration(self, python: str, verl: Path | None) -> programs.Found | None:
        """The configuration that the program starts from, if present; `python`: its interpreter, `verl`: veRL."""
        program = self.program
        asked = programs.Asked(
            entry=program.entry_point or MAIN,
            folder=Path(program.folder) if program.folder else None,
            path=(*self._imported, *([verl.parent] if verl else [])),
            python=python,
            config_name=program.config_name,
            config_path=program.config_path,
            config_dir=program.config_dir,
            searchpath=self.overrides.get("hydra.searchpath"),
        )
        return programs.find(asked)

    @property
    def is_foreign(self) -> bool:
        """Whether veRL's usual defaults do not apply, due to another configuration or its own veRL."""
        return self.program.config != PPO or self.own_verl is not None


def preset_of(data: Mapping[str, Any]) -> Preset:
    """The preset of a file's mapping with allowed values. Missing fields have their defaults."""
    tree: dict[str, Any] = {group: {} for group in GROUPS}
    for spec in FIELDS.values():
        *group, name = spec.path
        given, target = (data.get(group[0], {}), tree[group[0]]) if group else (data, tree)
        target[name] = spec.read(given.get(name, spec.default))
    kinds = get_type_hints(Preset)
    return Preset(tree | {group: kinds.get(group, Group)(tree[group]) for group in GROUPS})


def value_of(preset: Preset, spec: Spec) -> Any:
    """The value of a field in a preset."""
    value: Any = preset
    for name in spec.path:
        value = getattr(value, name)
    return value

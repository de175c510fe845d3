"""A preset: everything a run is asked to do. The groups hold the fields, one line each."""

import os
from pathlib import Path
from typing import Any

from launcher.preset.course import Cluster, Trainer
from launcher.preset.critic import Critic, Ref
from launcher.preset.fields import Group, Spec, specs, verl
from launcher.preset.objective import Advantage, Correction, Filter, Kl
from launcher.preset.policy import Actor, Model
from launcher.preset.program import Program
from launcher.preset.rollout import Rollout
from launcher.preset.task import Data, Reward
from launcher.verl.algorithms import estimators
from launcher.verl.defaults import PPO


class Preset(Group):
    """The whole of it, after `extends` and settings. `health` is checked by `launcher.health`."""

    extends: str | None = verl("Base preset: a name or a path relative to the file.", key="")
    description: str = verl("Purpose of the preset, in one sentence.", key="", default="")
    needs: str = verl("Required hardware, such as: 1 GPU, 24 GB.", key="", default="")
    recipe: str | None = verl(
        "Published settings of an algorithm, laid over the base preset; values of this file win.",
        key="",
        essential=True,
    )
    algorithm: str = verl(
        "Advantage estimator; PPO trains a critic, the others compare responses.",
        key="algorithm.adv_estimator",
        default="ppo",
        names={"ppo": "gae"},
        offers={"ppo" if each.name == "gae" else each.name: each.meaning for each in estimators().values()},
        essential=True,
    )
    model: Model = Model()
    data: Data = Data()
    actor: Actor = Actor()
    critic: Critic = Critic()
    ref: Ref = Ref()
    kl: Kl = Kl()
    advantage: Advantage = Advantage()
    filter: Filter = Filter()
    correction: Correction = Correction()
    rollout: Rollout = Rollout()
    reward: Reward = Reward()
    trainer: Trainer = Trainer()
    cluster: Cluster = Cluster()
    program: Program = Program()
    health: dict[str, Any] = verl("Limits of the health rules and actions on alerts.", key="", default={})
    sweep: dict[str, Any] = verl(
        "Settings with the values that 'ppo-tui sweep' combines; other commands ignore them.", key="", default={}
    )
    env: dict[str, str] = verl(
        "Environment variables for veRL; export secrets in the shell instead.", key="", default={}
    )
    python: str | None = verl("Python interpreter with veRL; null: that of ppo-tui.", key="", kind="path or name")
    overrides: dict[str, Any] = verl("veRL keys without a preset field, passed unchanged.", key="", default={})

    @property
    def own_verl(self) -> Path | None:
        """The folder of a veRL that Python takes before the installed one: in the program's folder, or on the
        preset's PYTHONPATH.
        """
        first = self.program.imports_from
        path = [Path(each) for each in self.env.get("PYTHONPATH", "").split(os.pathsep) if each]
        found = (each / "verl" for each in ([first, *path] if first else path))
        return next((each for each in found if (each / "__init__.py").is_file()), None)

    @property
    def is_foreign(self) -> bool:
        """Whether the defaults of veRL's usual configuration do not apply: another one, or a veRL of its own."""
        return self.program.config != PPO or self.own_verl is not None


FIELDS: dict[str, Spec] = specs(Preset)
"""Every field by its dotted name, in the order of the command line."""

BY_KEY: dict[str, Spec] = {spec.key: spec for spec in FIELDS.values() if spec.key}
"""The field that covers a veRL key (as the newest version calls it, without `+`)."""

GROUPS = tuple(
    name
    for name, info in Preset.model_fields.items()
    if isinstance(info.annotation, type) and issubclass(info.annotation, Group)
)

GENERAL = ""
"""The group of the fields that stand in no group, in `TITLES`."""

TITLES: dict[str, str] = {
    GENERAL: "General",
    **{name: str(vars(Preset())[name].model_config["title"]) for name in GROUPS},
}
"""The title of each group, in the order of a form."""


def fields_of(group: str) -> list[Spec]:
    """The fields of a group in their order; those of no group for `GENERAL`."""
    return [spec for spec in FIELDS.values() if ("" if len(spec.path) == 1 else spec.path[0]) == group]


def value_of(preset: Preset, spec: Spec) -> Any:
    """The value of a field in a preset."""
    value: Any = preset
    for name in spec.path:
        value = getattr(value, name)
    return value

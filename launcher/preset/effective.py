"""The effective configuration: the value of each veRL key, and its origin.

Keys have the newest version's names throughout ppo-tui; only here they are mapped to the version that runs.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from launcher.core.errors import UserError
from launcher.preset.layers import Layer
from launcher.preset.schema import FIELDS, preset_of
from launcher.verl import defaults, hydra, versions
from launcher.verl.algorithms import estimators
from launcher.verl.config import (
    ACTOR,
    BATCH,
    CRITIC,
    CRITIC_ULYSSES,
    DYNAMIC,
    ENGINE_GPUS,
    ENGINE_NODES,
    ESTIMATOR,
    GPUS,
    HYBRID,
    LOG_PROB_DYNAMIC,
    MODEL,
    NODES,
    RAY,
    ROLLOUT,
    SYNC_STEP,
    TRAINER,
    ULYSSES,
    Ranges,
    VerlConfig,
)
from launcher.verl.programs import Found

BUILT_IN_REWARDS = FIELDS["reward.function"].suggested
OTHER_ENGINES = ("megatron", "veomni", "torchtitan")
"""Engines other than FSDP, with a `model_engine` and a strategy of this name."""

_STORAGE = "transfer_queue.backend.SimpleStorage.num_data_storage_units"
_REWARD_NAME = "reward.custom_reward_function.name"
_COMPILE = ".fsdp_config.use_torch_compile"
_Config = TypeVar("_Config", bound="EffectiveConfig")

Source = Literal["default", "field", "derived", "override", "ppo-tui"]
"""veRL's default, a preset field, a value that follows from fields, a veRL key in the preset, ppo-tui's own choice
(including field defaults).
"""


@dataclass(frozen=True)
class Setting:
    """The value given to a key; `prefix` is Hydra's: "", "+" (append) or "++" (set or append)."""

    value: Any
    source: Source = "ppo-tui"
    prefix: str = ""


Settings = dict[str, Setting]


@dataclass(frozen=True, kw_only=True)
class EffectiveConfig(VerlConfig):
    """The configuration of one version of veRL with `settings`, under that version's names.

    `verl`: folder of the installed veRL, whose defaults apply; without one, the published versions' defaults. `config`:
    the configuration that the program starts from, in this folder or elsewhere; None if unknown.
    """

    version: str = defaults.NEWEST
    verl: Path | None = None
    config: str | Found | None = defaults.PPO
    settings: Mapping[str, Setting] = field(default_factory=dict)
    usual: Ranges = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """veRL's value of `key`; `default` if this version lacks the key. Never raises."""
        name = self._name(key)
        return default if name is None else self._look_up(name, default)

    def source(self, key: str) -> Source:
        """The origin of the value of `key`."""
        setting = self.settings.get(self._name(key) or "")
        return setting.source if setting else "default"

    def is_set(self, key: str) -> bool:
        """Whether `key` is set, so that veRL's default does not apply."""
        return self._name(key) in self.settings

    def with_fields(self: _Config, change: Mapping[str, Any]) -> _Config:
        """The configuration with preset fields set, and the fields that follow them."""
        settings = dict(self.settings)
        for spec in FIELDS.values():
            follows = spec.follows in change and self.source(spec.key) in ("default", "derived")
            name = self._name(spec.key) if spec.key and (spec.name in change or follows) else None
            if name is not None:
                own = spec.name in change
                value = change[spec.name if own else spec.follows]
                settings[name] = Setting(spec.to_verl(value), "field" if own else "derived", spec.plus)
        return dataclasses.replace(self, settings=settings)

    def at_least(self, version: str) -> bool:
        """Whether this veRL is that version or newer."""
        return defaults.number(self.version) >= defaults.number(version)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The config group choices among the settings, in Hydra's form."""
        chosen = ((key, each) for key, each in self.settings.items() if hydra.is_group(key))
        return tuple(f"{each.prefix}{key}={hydra.quote(each.value)}" for key, each in chosen)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The choices that replace parts of veRL's usual configuration, or all of it."""
        return self.groups if self.config in (None, defaults.PPO) else (str(self.config), *self.groups)

    @cached_property
    def defaults(self) -> defaults.Tree:
        """veRL's configuration with group choices only, references unresolved."""
        return defaults.tree(self.version, self.verl, self.groups, self.config or defaults.PPO)

    @property
    def knows_keys(self) -> bool:
        """Whether `defaults` has exactly veRL's keys: False if some files are unreadable here."""
        if self.config is None:
            return False
        if self.verl is None:
            return self.config == defaults.PPO and not self.groups
        return defaults.composed(self.version, self.verl, self.groups, self.config) is not None

    @property
    def on_cpu(self) -> bool:
        """Whether the run uses the CPU platform, where rules about GPUs do not apply."""
        return bool(self.get("trainer.device") == "cpu")

    @property
    def gpus(self) -> int:
        """GPUs of the trainer on all nodes together, at least 1."""
        return (self.whole(GPUS) or 1) * (self.whole(NODES) or 1)

    @property
    def trainer_mode(self) -> str:
        """How the v1 trainer schedules rollouts; `sync` for the legacy trainer."""
        return super().trainer_mode if self.is_v1 else "sync"

    @property
    def is_separate(self) -> bool:
        """Whether rollouts run on GPUs that only the engine uses."""
        return self.trainer_mode == "separate_async"

    @property
    def engine_gpus(self) -> int:
        """GPUs only for the engine, in addition to the trainer's."""
        own = (self.whole(ENGINE_GPUS) or 0) * (self.whole(ENGINE_NODES) or 0)
        return own if self.is_separate else 0

    @property
    def has_hybrid_engine(self) -> bool:
        """Whether the trainer's GPUs also have an engine; only separate_async can omit it (0.9.1)."""
        return not self.is_separate or self.flag(HYBRID, True)

    @property
    def engine_size(self) -> int:
        """GPUs of one engine."""
        sizes = (
            f"{ROLLOUT}.{name}_size" for name in ("tensor_model_parallel", "data_parallel", "pipeline_model_parallel")
        )
        return math.prod(self.whole(key) or 1 for key in sizes)

    @property
    def updates_a_step(self) -> int:
        """Number of portions of a batch that are trained on separately: separate_async streams mini-batches."""
        return (self.whole(SYNC_STEP) or 1) if self.is_separate else 1

    @property
    def portion(self) -> int | None:
        """Prompts per portion; None if the batch is unknown."""
        batch = self.whole(BATCH)
        return None if batch is None else max(1, batch // self.updates_a_step)

    def sequence_parallel(self, model: str = ACTOR) -> int:
        """GPUs that share one sequence of the actor or the critic.

        veRL: `verl/workers/config/actor.py: FSDPActorConfig.__post_init__` passes the actor's own key to its engine;
        the critic's is read only from the engine's configuration (`critic.py: FSDPCriticConfig`).
        """
        keys = (
            (CRITIC_ULYSSES,) if model == CRITIC else (ULYSSES, f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size")
        )
        return max(self.whole(key) or 1 for key in keys)

    def data_parallel(self, model: str = ACTOR) -> int:
        """Ranks of a model, which get equal shares of its batches."""
        return max(1, self.gpus // self.sequence_parallel(model))

    @property
    def dynamic(self) -> bool:
        """Whether the actor's micro-batches are sized by tokens."""
        return self.flag(DYNAMIC, False)

    @property
    def log_prob_dynamic(self) -> bool:
        """Whether log-probability passes are sized by tokens."""
        return self.flag(LOG_PROB_DYNAMIC, self.dynamic)

    @property
    def critic_dynamic(self) -> bool:
        """Whether the critic's micro-batches are sized by tokens.

        veRL: up to 0.7 `verl/workers/critic/dp_critic.py: DataParallelPPOCritic.update_critic` reads `use_dynamic_bsz`;
        from 0.8 on `verl/workers/engine_workers.py: TrainingWorker.train_batch` reads its engine's configuration, where
        nothing disables it.
        """
        return self.at_least("0.8.0") or self.flag(f"{CRITIC}.use_dynamic_bsz", self.dynamic)

    @property
    def has_lora(self) -> bool:
        """Whether the actor trains an adapter; the reference is then the actor without it."""
        ranks = self.whole(f"{MODEL}.lora_rank"), self.whole(f"{MODEL}.lora.rank")
        return any(ranks) or self.get(f"{MODEL}.lora_adapter_path") is not None

    @property
    def is_v1(self) -> bool:
        """Whether veRL's newer trainer (0.9) runs."""
        return self.at_least("0.9.0") and self.flag(f"{TRAINER}.use_v1", True)

    @property
    def is_fsdp(self) -> bool:
        """Whether veRL's default engine (FSDP) trains; memory and sharding of others are unknown."""
        chosen = self.get("model_engine", "dp") == "dp"
        return chosen and (self.text(f"{ACTOR}.strategy") or "fsdp").startswith("fsdp")

    def _name(self, key: str) -> str | None:
        """This version's name of the key; None without one."""
        try:
            return versions.at(key, self.version)
        except UserError:
            return None

    def _refer(self, name: str, default: Any) -> Any:
        """As `_look_up`, for a reference's target; the text itself for a circular reference."""
        try:
            return self._look_up(name, default)
        except RecursionError:
            return default

    def _look_up(self, name: str, default: Any) -> Any:
        if name in self.settings:
            return defaults.resolve(self.settings[name].value, name, self._refer)
        parent, _, last = name.rpartition(".")
        if parent in self.settings and isinstance(block := self.settings[parent].value, Mapping):
            return block.get(last, default)  # a whole block was given
        found, value = defaults.leaf(self.defaults, name)
        if not found or value == "???":
            return default
        return defaults.resolve(value, name, self._look_up)


def of_fields(layer: Layer, *, foreign: bool = False) -> Settings:
    """Keys set by fields, with the newest veRL's names.

    For a `foreign` program, whose defaults may differ, only keys that the preset sets.
    """
    found: Settings = {}
    for spec in FIELDS.values():
        source: Source = "field" if spec.path in layer else "ppo-tui"
        value = layer[spec.path].value if spec.path in layer else spec.default
        if value is None and spec.follows:
            leader, source = FIELDS[spec.follows], "derived"
            value = layer[leader.path].value if leader.path in layer else leader.default
        if spec.key and value is not None and (source == "field" or not foreign):
            read = spec.read(value) if spec.allows(value) else value  # a draft may have wrong ones
            found[spec.key] = Setting(spec.to_verl(read), source, spec.plus)
    return found


def of_overrides(layer: Layer) -> Settings:
    """veRL keys without a field; expands `~/`, which veRL does only for some keys."""
    found: Settings = {}
    for (group, *_), entry in layer.items():
        if group == "overrides":
            (prefix, key), value = hydra.split_key(entry.spelling, "overrides"), entry.value
            home = isinstance(value, str) and value.startswith("~/")
            found[key] = Setting(str(Path(value).expanduser()) if home else value, "override", prefix)
    return found


def of_usual(layer: Layer) -> Ranges:
    """The usual ranges declared in a preset; null removes an inherited one."""
    ranges = {where[1]: entry.value for where, entry in layer.items() if where[0] == "usual"}
    return {FIELDS[name].key: tuple(value) for name, value in ranges.items() if value}


def for_version(wanted: Settings, version: str, config_name: str | None = None) -> tuple[Settings, list[UserError]]:
    """The settings under `version`'s names, without settings that have no effect in this preset; and why keys are
    missing. `config_name`: the configuration that the program starts from.
    """
    others = f"{config_name} {wanted['model_engine'].value if 'model_engine' in wanted else ''}"
    fsdp = not any(engine in others for engine in OTHER_ENGINES)
    dropped = set()
    if f"{RAY}.address" in wanted and wanted[f"{RAY}.address"].source == "field":
        dropped.add(f"{RAY}.num_cpus")  # the cluster sets its own
    # a user's own estimator may require a critic, which is then requested
    critic = "critic.enable" in wanted and wanted["critic.enable"].value is True
    if ESTIMATOR in wanted and wanted[ESTIMATOR].value in estimators().keys() - {"gae"} and not critic:
        dropped |= {key for key in wanted if key.startswith("critic.")}
    if versions.number(version) < (0, 8, 0):
        dropped.add(_STORAGE)  # there is no TransferQueue
    if _REWARD_NAME in wanted and wanted[_REWARD_NAME].value in BUILT_IN_REWARDS:
        # veRL chooses them by the data; next to a path it is left over from the preset that was extended
        dropped.add(_REWARD_NAME)
    named: Settings = {}
    missing: list[UserError] = []
    for key, setting in sorted(wanted.items(), key=lambda each: not hydra.is_group(each[0])):
        if key in dropped:
            continue
        try:
            name = versions.at(key, version)
        except UserError as error:
            if fsdp:  # otherwise FSDP's table does not apply
                missing.append(error)
            if setting.source in ("override", "field"):
                named[key] = setting  # of a fork, where keys that veRL lacks may be known
        else:
            added = versions.unlisted(key, version)
            if not fsdp and key.endswith(_COMPILE):  # a block of FSDP; the others read the older key
                name = key.replace("fsdp_config.", "")
            named[name] = dataclasses.replace(setting, prefix="+") if added else setting
    return named, missing


def of_draft(layer: Layer, version: str = defaults.NEWEST, verl: Path | None = None) -> EffectiveConfig:
    """The configuration of a preset during editing, from the set values. Never raises."""
    values = {where[1]: entry.value for where, entry in layer.items() if where[0] == "program"}
    program = preset_of({"program": {name: value for name, value in values.items() if isinstance(value, str)}}).program
    wanted = of_fields(layer, foreign=program.config != defaults.PPO) | of_overrides(layer)
    settings, _ = for_version(wanted, version, program.config_name)
    return EffectiveConfig(version=version, verl=verl, config=program.config, settings=settings, usual=of_usual(layer))

"""What a preset becomes for a rehearsal: the same run on the CPU, with a small model, few prompts and two steps."""

from collections.abc import Mapping
from typing import Any

from launcher.core.errors import UserError
from launcher.preset.effective import OTHER_ENGINES
from launcher.preset.files import LoadedPreset, load, restore
from launcher.preset.remedy import configuration
from launcher.preset.schema import FIELDS, value_of
from launcher.verl import hydra
from launcher.verl.config import ACTOR, CRITIC, PROMPT, REF, REWARD_MODEL, SYNC_STEP

STEPS, RESPONSE, ROWS = 2, 16, 256
_UNHEARD = ("health", "sweep")  # no alert leaves the machine
_OF_TOY = (
    "cluster.cpus",
    "data.dataloader_num_workers",
    "model.attention",
    "model.lora_merge",
    "model.use_remove_padding",
    "reward.workers",
    "rollout.agent_workers",
    "rollout.engine",
    "rollout.free_cache_engine",
    "trainer.device",
    "trainer.gpus",
    "actor.strategy",
)
"""Fields whose value on a CPU is that of the preset toy-cpu."""

_FOLLOW = {"model.attention": ("critic",), "model.use_remove_padding": ("critic",), "actor.strategy": ("critic", "ref")}
"""Groups that repeat such a field."""

_PLAIN: dict[str, Any] = {
    "actor.async_save": False,
    "actor.offload_policy": False,
    "actor.optimizer_offload": False,
    "actor.param_offload": False,
    "actor.ulysses_sequence_parallel_size": 1,
    "critic.enable_activation_offload": False,
    "critic.offload_policy": False,
    "critic.optimizer_offload": False,
    "critic.param_offload": False,
    "critic.ulysses_sequence_parallel_size": 1,
    "model.enable_activation_offload": False,
    "model.use_fused_kernels": False,
    "model.use_liger": False,
    "ref.param_offload": False,
    "ref.ulysses_sequence_parallel_size": 1,
    "rollout.data_parallel_size": 1,
    "rollout.expert_parallel_size": 1,
    "rollout.layered_summon": False,
    "rollout.pipeline_model_parallel_size": 1,
    "rollout.quantization": None,
    "rollout.tensor_model_parallel_size": 1,
    "rollout.trace": None,
    "trainer.default_hdfs_dir": None,
    "trainer.nodes": 1,
}
"""Fields that would need GPUs, or tell other services of the run; only those that the preset sets are changed."""

_LEAST: dict[str, int] = {
    "actor.fsdp_size": 1,
    "actor.ppo_micro_batch_size_per_gpu": 1,
    "actor.ppo_mini_batch_size": 1,
    "critic.fsdp_size": 1,
    "critic.ppo_micro_batch_size_per_gpu": 1,
    "critic.ppo_mini_batch_size": 1,
    "data.gen_batch_size": 1,
    "data.max_response_length": RESPONSE,
    "data.train_batch_size": 2,
    "data.val_batch_size": 2,
    "ref.log_prob_micro_batch_size_per_gpu": 1,
    "rollout.log_prob_micro_batch_size_per_gpu": 1,
    "rollout.n": 2,
    "rollout.val_n": 1,
    "trainer.critic_warmup": 0,
}
"""Sizes that are lowered to these."""

_TOKENS = (
    "actor.ppo_max_token_len_per_gpu",
    "critic.ppo_max_token_len_per_gpu",
    "ref.log_prob_max_token_len_per_gpu",
    "rollout.log_prob_max_token_len_per_gpu",
)
_COURSE: dict[str, Any] = {
    "cluster.address": None,
    "cluster.submit": False,
    "data.train_max_samples": ROWS,
    "data.val_max_samples": 2,
    "filter.enable": False,  # a model that has learned nothing has no group with different rewards
    "trainer.loggers": [],
    "trainer.save_every": STEPS,
    "trainer.steps": STEPS,
    "trainer.validate_every": -1,
    "trainer.validate_first": True,
}
_APART = {"rollout.gpus": 1, "rollout.nodes": 1, "rollout.weight_transfer": "gloo"}
_OLDER = tuple(f"{block}_micro_batch_size" for block in (f"{ACTOR}.ppo", f"{CRITIC}.ppo", f"{REF}.log_prob"))
_GPUS = "CUDA_VISIBLE_DEVICES"
UNTRIED = "not tried: GPUs, their memory, the rollout engine, the weights of a larger model, the sizes of batches"


def models(loaded: LoadedPreset) -> list[str]:
    """The models that a preset trains, each once. Raises UserError for a preset that cannot be rehearsed on a CPU."""
    config = configuration(loaded.snapshot())
    for engine in (config.text("model_engine"), config.text(f"{ACTOR}.strategy")):
        if engine in OTHER_ENGINES:
            raise UserError(f"the CPU platform runs only FSDP, not {engine}")
    if config.flag(f"{REWARD_MODEL}.enable"):
        raise UserError("the CPU platform has no engine for a reward model")
    if config.flag("distillation.enabled"):
        raise UserError("the CPU platform has no engine for the teacher of a distillation")
    named = [loaded.preset.model.path, loaded.preset.critic.path if config.has_critic else None]
    return list(dict.fromkeys(filter(None, named)))


def rehearsed(loaded: LoadedPreset, small: Mapping[str, str], cpus: int) -> LoadedPreset:
    """The rehearsal of a preset on a machine with so many CPUs. `small` has a small model in the place of each of
    `models`. Raises UserError.
    """
    snapshot = {name: value for name, value in loaded.snapshot().items() if name not in _UNHEARD}
    config = configuration(snapshot)
    settings = {
        **_on_the_cpu(cpus),
        **{name: value for name, value in _PLAIN.items() if config.is_set(FIELDS[name].key)},
        **{name: least for name, least in _LEAST.items() if (config.number(FIELDS[name].key) or 0) > least},
        **_COURSE,
        **{key: 1 for key in _OLDER if config.is_set(key)},
    }
    room = (config.whole(PROMPT) or 0) + RESPONSE
    settings |= {name: room for name in _TOKENS if (config.number(FIELDS[name].key) or 0) > room}
    if config.is_separate:  # a batch is so many updates
        settings |= {**_APART, "data.train_batch_size": config.whole(SYNC_STEP) or 1}
    for name, path in (("model.path", loaded.preset.model.path), ("critic.path", loaded.preset.critic.path)):
        if path and small.get(path, path) != path:
            settings |= {name: small[path], "model.lora_adapter_path": None, "model.hf_config_path": None}
    raw = "env."  # variables are text as it stands
    words = [f"{name}={value if name.startswith(raw) else hydra.quote(value)}" for name, value in settings.items()]
    return restore(f"{loaded.name}-rehearsal", snapshot, words)


def _on_the_cpu(cpus: int) -> dict[str, Any]:
    """What the preset toy-cpu sets for its device, and indices of GPUs that no machine has, which hides all GPUs."""
    toy = load("toy-cpu")
    found: dict[str, Any] = {}
    for name in _OF_TOY:
        found[name] = value_of(toy.preset, FIELDS[name])
        found |= {f"{group}.{name.partition('.')[2]}": found[name] for group in _FOLLOW.get(name, ())}
    found |= {f"env.{name}": value for name, value in toy.preset.env.items() if name != "HF_HUB_OFFLINE"}
    found |= {"env.OMP_NUM_THREADS": max(1, min(8, cpus // 2)), f"env.{_GPUS}": "90,91"}
    return found | toy.preset.overrides

"""Keys that a veRL version accepts but ignores: read from the sources of its wheels.

Hydra accepts every key of the configuration tree, whether the trainer reads it or not. A key stands here
under its own name, not the newest one: `versions` already turns old names into those that are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.preset.defaults import number

_V1 = "trainer.use_v1"


@dataclass(frozen=True)
class _Ignored:
    """`key` has no effect from version `since` on. One that ends in `.` stands for all below."""

    key: str
    since: str
    why: str
    v1: bool = False  # only in 0.9's new trainer, which trainer.use_v1=False leaves


_CRITIC_TOKENS = "critic.ppo_infer_max_token_len_per_gpu"
_DYNAMIC = "the critic always sizes its micro-batches by tokens"
_MOVED = "it moved to {}"
_ACTOR, _REF = "actor_rollout_ref.actor", "actor_rollout_ref.ref"
_COMPILE = "fsdp_config.use_torch_compile"
_OLD_ONLY = "only the old trainer supports it (trainer.use_v1=False)"

_TABLE = (
    _Ignored("critic.ppo_micro_batch_size_per_gpu", "0.8.0", f"{_DYNAMIC}; only its presence is checked"),
    _Ignored("critic.use_dynamic_bsz", "0.8.0", _DYNAMIC),
    _Ignored("critic.forward_micro_batch_size_per_gpu", "0.8.0", _DYNAMIC),
    _Ignored("critic.forward_max_token_len_per_gpu", "0.8.0", _DYNAMIC),
    _Ignored("critic.ppo_max_token_len_per_gpu", "0.9.0", _MOVED.format(_CRITIC_TOKENS), True),
    _Ignored(f"{_ACTOR}.grad_clip", "0.8.0", _MOVED.format(f"{_ACTOR}.optim.clip_grad")),
    _Ignored("critic.grad_clip", "0.8.0", _MOVED.format("critic.optim.clip_grad")),
    _Ignored(f"{_ACTOR}.use_torch_compile", "0.8.0", _MOVED.format(f"{_ACTOR}.{_COMPILE}")),
    _Ignored(f"{_REF}.use_torch_compile", "0.8.0", _MOVED.format(f"{_REF}.{_COMPILE}")),
    _Ignored(
        "data.truncation",
        "0.8.0",
        "longer prompts are truncated on the left unless data.filter_overlong_prompts is set",
    ),
    _Ignored("data.return_raw_chat", "0.7.0", "messages are always passed on"),
    _Ignored("actor_rollout_ref.nccl_timeout", "0.8.0", "the workers that used it were removed"),
    _Ignored("data.reward_fn_key", "0.9.0", "the column is always data_source"),
    _Ignored("custom_reward_function.", "0.9.0", _MOVED.format("reward.custom_reward_function")),
    _Ignored("reward_model.", "0.9.0", _MOVED.format("reward")),
    _Ignored("sandbox_fusion.", "0.9.0", _MOVED.format("reward.sandbox_fusion")),
    _Ignored("trainer.balance_batch", "0.9.0", "the new trainer always balances batches", True),
    _Ignored("trainer.esi_redundant_time", "0.9.0", _OLD_ONLY, True),
    _Ignored("algorithm.use_pf_ppo", "0.9.0", _OLD_ONLY, True),
    _Ignored("algorithm.pf_ppo.", "0.9.0", _OLD_ONLY, True),
    _Ignored(
        "algorithm.filter_groups.max_num_gen_batches", "0.9.0", "max_inflight_gen_batches limits what is drawn", True
    ),
    _Ignored("transfer_queue.enable", "0.9.0", "the new trainer always uses TransferQueue", True),
)


def ignored(keys: Mapping[str, Any], version: str) -> list[tuple[str, str]]:
    """Those of the veRL keys (as `version` calls them, with their values) that have no effect, and why."""
    old_trainer = keys.get(_V1) is False
    found = []
    for key in keys:
        if old_trainer and key.startswith("trainer.v1."):
            found.append((key, f"the old trainer does not read it ({_V1}=False)"))
        for rule in _TABLE:
            hit = key.startswith(rule.key) if rule.key.endswith(".") else key == rule.key
            if hit and number(version) >= number(rule.since) and not (rule.v1 and old_trainer):
                found.append((key, rule.why))
    return found

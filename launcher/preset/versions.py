"""What veRL's keys are called in each version, 0.5.0 to 0.9.1 (read from the wheels, composed)."""

import functools
from dataclasses import dataclass

from launcher.errors import UserError
from launcher.preset.defaults import bundled, leaf, life
from launcher.preset.defaults import number as number

OLDEST = "0.5.0"


@dataclass(frozen=True)
class Move:
    """`new` is the name from version `since` on, `old` before. One that ends in `.` stands for all below."""

    new: str
    old: str
    since: str


MOVES = (
    Move("reward.custom_reward_function.", "custom_reward_function.", "0.7.1"),
    Move("reward.reward_manager.name", "reward_model.reward_manager", "0.7.1"),
    Move("reward.reward_model.model_path", "reward_model.model.path", "0.7.1"),
    Move("reward.reward_model.enable", "reward_model.enable", "0.7.1"),
    Move("reward.reward_model.enable_resource_pool", "reward_model.enable_resource_pool", "0.7.1"),
    Move("reward.reward_model.n_gpus_per_node", "reward_model.n_gpus_per_node", "0.7.1"),
    Move("reward.reward_model.nnodes", "reward_model.nnodes", "0.7.1"),
    Move("reward.reward_kwargs.", "reward_model.reward_kwargs.", "0.7.1"),
    Move("reward.sandbox_fusion.", "reward_model.sandbox_fusion.", "0.7.1"),
    # from 0.8 on the old name has no effect, though it is there; the old block had none before
    Move("critic.fsdp.ulysses_sequence_parallel_size", "critic.ulysses_sequence_parallel_size", "0.8.0"),
    Move("critic.fsdp.", "critic.model.fsdp_config.", "0.8.0"),
    # 0.9's trainer reads only the second name, which its config tree does not hold
    Move("critic.ppo_infer_max_token_len_per_gpu", "critic.ppo_max_token_len_per_gpu", "0.9.0"),
    # both names exist from 0.6 on, but each version reads only this one
    Move("actor_rollout_ref.actor.optim.clip_grad", "actor_rollout_ref.actor.grad_clip", "0.8.0"),
    Move("critic.optim.clip_grad", "critic.grad_clip", "0.8.0"),
    Move("actor_rollout_ref.actor.fsdp_config.use_torch_compile", "actor_rollout_ref.actor.use_torch_compile", "0.8.0"),
    Move("actor_rollout_ref.ref.fsdp_config.use_torch_compile", "actor_rollout_ref.ref.use_torch_compile", "0.8.0"),
    Move("actor_rollout_ref.actor.optim.lr_scheduler_type", "actor_rollout_ref.actor.optim.warmup_style", "0.6.0"),
    Move("critic.optim.lr_scheduler_type", "critic.optim.warmup_style", "0.6.0"),
    Move("ray_kwargs.timeline_json_file", "ray_init.timeline_json_file", "0.6.0"),
    Move("ray_kwargs.ray_init.", "ray_init.", "0.6.0"),
    Move("global_profiler.steps", "trainer.profile_steps", "0.6.0"),
    Move(
        "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
        "actor_rollout_ref.rollout.update_weights_bucket_megabytes",
        "0.7.1",
    ),
)

UNLISTED = {
    "actor_rollout_ref.actor.fsdp_config.model_dtype": "0.6.0",
    "critic.fsdp.model_dtype": "0.6.0",
    "actor_rollout_ref.actor.optim.betas": "0.6.0",
    "critic.optim.betas": "0.6.0",
}
"""Keys that versions before that one read although their configuration does not list them: with a `+`."""


def newest(key: str) -> str:
    """The key as the newest version calls it."""
    return _renamed(key, [(move.old, move.new) for move in MOVES])


@functools.lru_cache(maxsize=8192)
def at(key: str, version: str) -> str:
    """The newest name `key` as `version` calls it. Raises UserError when that version has no such key.

    A version older than all that are known, which only a fork may have, is taken for the oldest.
    """
    have = max(number(version), number(OLDEST))
    name = _renamed(key, [(move.new, move.old) for move in MOVES if have < number(move.since)])
    since, gone = life(name) if life(name)[0] else life(key)
    if since and have < number(since) and not unlisted(key, version):
        raise UserError(f"veRL {version} has no '{key}'; it was added in {since}")
    if gone and have >= number(gone) and not unlisted(key, version):
        raise UserError(f"veRL {version} has no '{key}'; it was removed in {gone}")
    return name


def unlisted(key: str, version: str) -> bool:
    """Whether `version` takes the newest name `key` without listing it, so that it needs a `+`.

    Besides those it reads, these are keys that other versions list in a block which is the user's own here
    (`engine_kwargs.vllm`).
    """
    if key in UNLISTED:
        return number(version) < number(UNLISTED[key])
    listed = bundled(version)
    return life(key)[0] != "" and not leaf(listed, key)[0] and leaf(listed, key.rpartition(".")[0])[1] == {}


def check(version: str) -> None:
    """Raises UserError for a veRL that is too old to be launched."""
    if number(version) < number(OLDEST):
        raise UserError(
            f"veRL {version or '(unknown version)'} is not supported", f"use {OLDEST} or newer, preferably 0.9.1"
        )


def _renamed(key: str, pairs: list[tuple[str, str]]) -> str:
    for source, target in pairs:
        if _matches(key, source):
            return target + key[len(source) :]
    return key


def _matches(key: str, name: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name

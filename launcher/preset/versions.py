"""What veRL's keys are called in each version, 0.5.0 to 0.9.1 (read from the wheels, composed)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from launcher.errors import UserError

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
    Move("reward.sandbox_fusion.", "reward_model.sandbox_fusion.", "0.7.1"),
    Move("critic.fsdp.", "critic.model.fsdp_config.", "0.8.0"),
    # 0.9's trainer reads only the second name, which its config tree does not hold
    Move("critic.ppo_infer_max_token_len_per_gpu", "critic.ppo_max_token_len_per_gpu", "0.9.0"),
    # both names exist from 0.6 on, but each version reads only this one
    Move("actor_rollout_ref.actor.optim.clip_grad", "actor_rollout_ref.actor.grad_clip", "0.8.0"),
    Move("critic.optim.clip_grad", "critic.grad_clip", "0.8.0"),
    Move("actor_rollout_ref.actor.optim.lr_scheduler_type",
         "actor_rollout_ref.actor.optim.warmup_style", "0.6.0"),
    Move("critic.optim.lr_scheduler_type", "critic.optim.warmup_style", "0.6.0"),
    Move("ray_kwargs.timeline_json_file", "ray_init.timeline_json_file", "0.6.0"),
    Move("ray_kwargs.ray_init.", "ray_init.", "0.6.0"),
    Move("global_profiler.steps", "trainer.profile_steps", "0.6.0"),
    Move("actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
         "actor_rollout_ref.rollout.update_weights_bucket_megabytes", "0.7.1"),
)  # fmt: skip

SINCE = {
    "critic.enable": "0.6.0",
    "critic.optim.lr_warmup_steps": "0.6.0",
    "data.seed": "0.6.1",
    "data.train_max_samples": "0.6.1",
    "data.val_max_samples": "0.6.1",
    "actor_rollout_ref.model.lora_adapter_path": "0.6.1",
    "actor_rollout_ref.model.tokenizer_path": "0.6.0",
    "actor_rollout_ref.actor.fsdp_config.model_dtype": "0.6.0",
    "reward.num_workers": "0.7.1",
    "trainer.v1.": "0.9.0",
    "trainer.use_v1": "0.9.0",
    "algorithm.filter_groups.": "0.9.0",
    "skip.": "0.9.0",
    "transfer_queue.backend.": "0.8.0",
}
"""Keys that older versions do not have."""

GONE = {
    "data.sampler.": "0.8.0",
    "data.datagen.": "0.8.0",
    "trainer.use_legacy_worker_impl": "0.8.0",
    "actor_rollout_ref.rollout.skip_rollout": "0.8.0",
}
"""Keys that newer versions do not have, and that have no successor."""

IGNORED = {
    "critic.ppo_micro_batch_size_per_gpu": (
        "0.8.0",
        "the critic always uses dynamic batches; only its presence is checked",
    ),
    "data.truncation": (
        "0.8.0",
        "over-long prompts are cut on the left unless data.filter_overlong_prompts is set",
    ),
}
"""Keys that newer versions accept and do not use: since when, and why."""


def number(version: str) -> tuple[int, ...]:
    """`0.10.dev1` as (0, 10, 1): good enough to compare releases."""
    found = [int(part) for part in re.findall(r"\d+", version)[:3]]
    return (*found, *[0] * (3 - len(found)))


def newest(key: str) -> str:
    """The key as the newest version calls it."""
    return _renamed(key, [(move.old, move.new) for move in MOVES])


def at(key: str, version: str) -> str:
    """The newest name `key` as `version` calls it. Raises UserError when that version has no such key."""
    have = number(version)
    for name, since in SINCE.items():
        if _matches(key, name) and have < number(since):
            raise UserError(f"veRL {version} has no '{key}': it came with {since}")
    for name, since in GONE.items():
        if _matches(key, name) and have >= number(since):
            raise UserError(f"veRL {version} has no '{key}' any more: it went with {since}")
    return _renamed(key, [(move.new, move.old) for move in MOVES if have < number(move.since)])


def ignored(key: str, version: str) -> str | None:
    """Why `version` takes no notice of `key`, or None when it does."""
    since, why = IGNORED.get(key, ("", ""))
    return why if since and number(version) >= number(since) else None


def check(version: str) -> None:
    """Raises UserError for a veRL that is too old to be launched."""
    if number(version) < number(OLDEST):
        raise UserError(
            f"veRL {version or '(unknown version)'} cannot be launched: "
            f"ppo-tui works with {OLDEST} and newer, best with 0.9.1"
        )


def _renamed(key: str, pairs: list[tuple[str, str]]) -> str:
    for source, target in pairs:
        if _matches(key, source):
            return target + key[len(source) :]
    return key


def _matches(key: str, name: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name

"""How answers are scored, as far as the configuration decides it; P30 of verl.md."""

from __future__ import annotations

import math

from launcher.preflight.config.base import GPUS, NODES, Findings, error, gpu_count, unknown_name, whole
from launcher.preflight.subject import Subject

JUDGE = "reward.reward_model"
MANAGER, SOURCE = "reward.reward_manager.name", "reward.reward_manager.source"


def manager(subject: Subject) -> Findings:
    """P30: the reward manager has a known name; one of one's own comes with a file."""
    if subject.value(SOURCE, "register") == "register":
        yield from unknown_name(
            subject,
            "P30",
            MANAGER,
            subject.facts.names.get("managers", []),
            "a reward manager",
            "dies of it after the models were loaded",
        )


def model(subject: Subject) -> Findings:
    """REWARD-1: a reward model has a name, an engine and GPUs."""
    if subject.value(f"{JUDGE}.enable") is not True or not subject.at_least("0.9.0"):
        return
    if not subject.value(f"{JUDGE}.model_path"):
        yield error(
            "REWARD-1",
            [f"{JUDGE}.enable", f"{JUDGE}.model_path"],
            "a reward model is to give the scores, and none is named",
            "set reward.model_path, or reward.use_model to false",
            {"reward.use_model": False},
        )
    if not subject.value(f"{JUDGE}.rollout.name"):
        yield error(
            "REWARD-1",
            [f"{JUDGE}.rollout.name"],
            "the engine of the reward model has no name, and veRL has no default",
            f"set {JUDGE}.rollout.name to vllm",
        )
    own = bool(subject.value(f"{JUDGE}.enable_resource_pool"))
    nodes = subject.value(f"{JUDGE}.nnodes", 0) if own else subject.value(NODES, 1)
    each = subject.value(f"{JUDGE}.n_gpus_per_node", 8) if own else subject.value(GPUS, 8)
    spans = [
        whole(subject, f"{JUDGE}.rollout.{name}_parallel_size") or 1
        for name in ("tensor_model", "data", "pipeline_model")
    ]
    if isinstance(nodes, int) and isinstance(each, int) and nodes * each < math.prod(spans):
        keys = [f"{JUDGE}.{name}" for name in ("nnodes", "n_gpus_per_node")] if own else [NODES, GPUS]
        yield error(
            "REWARD-1",
            [f"{JUDGE}.rollout.tensor_model_parallel_size", *keys],
            f"the reward model's engine spans {gpu_count(math.prod(spans))}, and it has {gpu_count(nodes * each)}",
            f"set {keys[0]} to 1" if own and not nodes else f"set {JUDGE}.rollout.tensor_model_parallel_size to 1",
            {"reward.model_nodes": 1} if own and not nodes else None,
        )


RULES = (manager, model)

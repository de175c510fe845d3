"""How responses are scored, as far as the configuration decides: P30 and REWARD-1.

veRL: `verl/experimental/reward_loop/reward_manager/registry.py: get_reward_manager_cls`.
"""

import math

from launcher.check.config.base import Findings, error, gpu_count, of_registry, of_trainer, unknown_name, warning
from launcher.check.subject import Subject
from launcher.preset.effective import BUILT_IN_REWARDS
from launcher.verl.config import GPUS, NODES, REWARD_MODEL

PATH, FUNCTION = "reward.custom_reward_function.path", "reward.custom_reward_function.name"
MANAGER, SOURCE = "reward.reward_manager.name", "reward.reward_manager.source"


@of_registry
def manager(subject: Subject) -> Findings:
    """P30: the reward manager has a known name; a custom one has a file."""
    if subject.get(SOURCE, "register") == "register":
        yield from unknown_name(
            subject,
            "P30",
            MANAGER,
            subject.facts.names.get("managers", []),
            "a reward manager",
            "fails after loading the models",
        )


def function(subject: Subject) -> Findings:
    """REWARD-2: veRL reads the name of a reward function only where a file is set."""
    name = subject.loaded.preset.reward.function
    if subject.get(PATH) or name in (None, "compute_score", *BUILT_IN_REWARDS):
        return
    message = f"reward.function is '{name}', but no reward.path is set: veRL ignores it and scores by data_source"
    yield warning("REWARD-2", message, "set reward.path to the file with the function", [FUNCTION, PATH])


@of_trainer
def model(subject: Subject) -> Findings:
    """REWARD-1: a reward model has a name, an engine and GPUs."""
    if subject.get(f"{REWARD_MODEL}.enable") is not True or not subject.at_least("0.9.0"):
        return
    if not subject.get(f"{REWARD_MODEL}.model_path"):
        message = "reward.use_model is true, but no reward model is set"
        fix = "set reward.model_path, or set reward.use_model to false"
        change = {"reward.use_model": False}
        yield error("REWARD-1", message, fix, [f"{REWARD_MODEL}.enable", f"{REWARD_MODEL}.model_path"], change)
    if not subject.get(f"{REWARD_MODEL}.rollout.name"):
        message = "the reward model's engine is not set, and veRL has no default"
        yield error("REWARD-1", message, f"set {REWARD_MODEL}.rollout.name to vllm", [f"{REWARD_MODEL}.rollout.name"])
    own = bool(subject.get(f"{REWARD_MODEL}.enable_resource_pool"))
    nodes = subject.get(f"{REWARD_MODEL}.nnodes", 0) if own else subject.get(NODES, 1)
    each = subject.get(f"{REWARD_MODEL}.n_gpus_per_node", 8) if own else subject.get(GPUS, 8)
    spans = [
        subject.whole(f"{REWARD_MODEL}.rollout.{name}_parallel_size") or 1
        for name in ("tensor_model", "data", "pipeline_model")
    ]
    if isinstance(nodes, int) and isinstance(each, int) and nodes * each < math.prod(spans):
        keys = [f"{REWARD_MODEL}.{name}" for name in ("nnodes", "n_gpus_per_node")] if own else [NODES, GPUS]
        message = f"the reward model's engine spans {gpu_count(math.prod(spans))}, but has {gpu_count(nodes * each)}"
        tensor, none = f"{REWARD_MODEL}.rollout.tensor_model_parallel_size", own and not nodes
        fix = f"set {keys[0] if none else tensor} to 1"
        yield error("REWARD-1", message, fix, [tensor, *keys], {"reward.model_nodes": 1} if none else None)


RULES = (manager, function, model)

"""Reward settings, as far as the configuration shows them: P30, REWARD-1, -2 and -9.

veRL: `verl/experimental/reward_loop/reward_manager/registry.py: get_reward_manager_cls`.
"""

import math

from launcher.check.config.base import Findings, of_registry, of_trainer
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.core.text import did_you_mean
from launcher.preset.effective import BUILT_IN_REWARDS
from launcher.verl.config import GPUS, NODES, RESPONSE, REWARD_MODEL

PATH, FUNCTION = "reward.custom_reward_function.path", "reward.custom_reward_function.name"
MANAGER, SOURCE = "reward.reward_manager.name", "reward.reward_manager.source"
LONGEST, BUFFER = "reward.reward_kwargs.max_resp_len", "reward.reward_kwargs.overlong_buffer_cfg"


@of_registry
def manager(subject: Subject) -> Findings:
    """P30: the reward manager has a known name; a custom one has a file."""
    name, known = subject.get(MANAGER), subject.facts.names.get("managers", [])
    if subject.get(SOURCE, "register") == "register" and name is not None and known and name not in known:
        yield found("P30.manager", name=name, near=did_you_mean(str(name), known), version=subject.version, known=known)


def function(subject: Subject) -> Findings:
    """REWARD-2: veRL reads the name of a reward function only with its file."""
    name = subject.loaded.preset.reward.function
    if subject.get(PATH) or name in (None, "compute_score", *BUILT_IN_REWARDS):
        return
    yield found("REWARD-2", name=name)


@of_trainer
def model(subject: Subject) -> Findings:
    """REWARD-1: a reward model has a name, an engine and GPUs."""
    if subject.get(f"{REWARD_MODEL}.enable") is not True or not subject.at_least("0.9.0"):
        return
    if not subject.get(f"{REWARD_MODEL}.model_path"):
        yield found("REWARD-1.unset")
    if not subject.get(f"{REWARD_MODEL}.rollout.name"):
        yield found("REWARD-1.engine")
    own = bool(subject.get(f"{REWARD_MODEL}.enable_resource_pool"))
    nodes = subject.get(f"{REWARD_MODEL}.nnodes", 0) if own else subject.get(NODES, 1)
    each = subject.get(f"{REWARD_MODEL}.n_gpus_per_node", 8) if own else subject.get(GPUS, 8)
    spans = [
        subject.whole(f"{REWARD_MODEL}.rollout.{name}_parallel_size") or 1
        for name in ("tensor_model", "data", "pipeline_model")
    ]
    if isinstance(nodes, int) and isinstance(each, int) and nodes * each < math.prod(spans):
        keys = [f"{REWARD_MODEL}.{name}" for name in ("nnodes", "n_gpus_per_node")] if own else [NODES, GPUS]
        tensor, none = f"{REWARD_MODEL}.rollout.tensor_model_parallel_size", own and not nodes
        yield found(
            "REWARD-1.gpus",
            spans=math.prod(spans),
            gpus=nodes * each,
            key=keys[0] if none else tensor,
            keys=[tensor, *keys],
        )


@of_trainer
def overlong(subject: Subject) -> Findings:
    """REWARD-9: the lengths of dapo's penalty for long responses are consistent.

    veRL: `verl/experimental/reward_loop/reward_manager/dapo.py: DAPORewardManager.__init__`.
    """
    if subject.get(MANAGER) != "dapo" or subject.get(f"{BUFFER}.enable") is not True:
        return
    longest, length = subject.get(LONGEST), subject.get(f"{BUFFER}.len")
    if not longest:
        yield found("REWARD-9.unset", now="not set" if longest is None else longest, limit=subject.get(RESPONSE))
    elif isinstance(longest, int) and isinstance(length, int) and not 0 < length <= longest:
        yield found("REWARD-9.length", length=length, longest=longest)


RULES = (manager, function, model, overlong)

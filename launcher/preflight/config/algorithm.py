"""The algorithm: V5, V19 and P19, and settings with which nothing is learned.

veRL: `verl/workers/config/actor.py: ActorConfig.__post_init__`, `verl/trainer/ppo/core_algos.py: get_policy_loss_fn`,
`verl/trainer/ppo/v1/trainer_base.py: _resolve_filter_groups_metric`.
"""

from launcher.preflight.config.base import Findings, error, info, unknown_name, warning
from launcher.preflight.subject import Subject
from launcher.verl_config import ACTOR, CRITIC, ESTIMATOR, LOSS_MODE, TRAINER, N

CRITIC_ON = f"{CRITIC}.enable"
FILTER = "algorithm.filter_groups"


def aggregation(subject: Subject) -> Findings:
    """V5: this version of veRL has the loss aggregation mode."""
    for block in (ACTOR, CRITIC):
        key = f"{block}.loss_agg_mode"
        if subject.get(key) == "token-sum" and not subject.at_least("0.9.0") and subject.is_set(key):
            message = f"'token-sum' requires veRL 0.9; this is veRL {subject.version}"
            yield error("V5", message, f"set {key} to token-mean", [key])


def loss_mode(subject: Subject) -> Findings:
    """P19: the policy loss has a known name."""
    known = subject.facts.names.get("losses", [])
    if "vanilla" in known:  # older versions do not register it
        yield from unknown_name(subject, "P19", LOSS_MODE, known, "a policy loss", "fails in the first actor update")


def gae_needs_critic(subject: Subject) -> Findings:
    """ALG-1: GAE requires a critic."""
    if subject.get(ESTIMATOR) == "gae" and subject.get(CRITIC_ON) is False:
        message = "PPO's advantage estimator (gae) requires a critic, and critic.enable is false"
        yield error("ALG-1", message, "remove critic.enable, or set algorithm to grpo", [ESTIMATOR, CRITIC_ON])


def group_of_one(subject: Subject) -> Findings:
    """ALG-2: GRPO compares the responses to one prompt, so it needs several."""
    if subject.group_based and subject.whole(N) == 1:
        message = "GRPO compares the responses to one prompt, and rollout.n is 1: nothing useful is learned"
        yield warning("ALG-2", message, "set rollout.n to a value from 4 to 16", [ESTIMATOR, N], {"rollout.n": 5})


def two_kls(subject: Subject) -> Findings:
    """ALG-3: the KL to the reference is counted in the reward and in the loss."""
    if subject.get("algorithm.use_kl_in_reward") is True and subject.get(f"{ACTOR}.use_kl_loss") is True:
        message = "the KL to the reference is counted twice: in the reward and in the loss"
        fix = "keep one: PPO usually counts it in the reward, GRPO in the loss"
        yield info("ALG-3", message, fix, ["algorithm.use_kl_in_reward", f"{ACTOR}.use_kl_loss"])


def filter_metric(subject: Subject) -> Findings:
    """V19: DAPO's group filter has a metric (0.9); a custom sampler skips the check."""
    if subject.get(f"{FILTER}.enable") is not True or not subject.is_v1:
        return
    if subject.get(f"{TRAINER}.v1.sampler.custom_sampler.path") is not None:
        return
    if not subject.get(f"{FILTER}.metric"):
        message = f"{FILTER}.enable is true, but {FILTER}.metric is not set"
        yield error("V19", message, f"set {FILTER}.metric to reward", [f"{FILTER}.enable", f"{FILTER}.metric"])
    model = "reward.reward_model"
    if subject.get(f"{model}.enable") is True and not subject.get(f"{model}.enable_resource_pool"):
        message = "groups are filtered while responses arrive, but the reward model scores them only afterwards"
        fix = f"set {model}.enable_resource_pool to true, or use a reward function"
        yield error("V19", message, fix, [f"{FILTER}.enable", f"{model}.enable_resource_pool"])


RULES = (aggregation, loss_mode, gae_needs_critic, group_of_one, two_kls, filter_metric)

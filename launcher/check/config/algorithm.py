"""The algorithm: V5, V19 and P19, and settings that prevent learning.

veRL: `verl/workers/config/actor.py: ActorConfig.__post_init__`, `verl/trainer/ppo/core_algos.py: get_policy_loss_fn`,
`verl/trainer/ppo/v1/trainer_base.py: _resolve_filter_groups_metric`.
"""

from collections.abc import Collection, Mapping

from launcher.check.config.base import Findings, of_keys, of_trainer
from launcher.check.finding import Words, found
from launcher.check.subject import Subject
from launcher.core.text import nearest, perhaps
from launcher.preset.schema import BY_KEY
from launcher.verl.algorithms import Algorithm, estimators, losses
from launcher.verl.config import ACTOR, CRITIC, ESTIMATOR, LOSS_MODE, MODEL, TRAINER, N

CRITIC_ON = f"{CRITIC}.enable"
FILTER = "algorithm.filter_groups"
SQUARES, GDPO_KEYS = f"{ACTOR}.calculate_sum_pi_squared", "algorithm.gdpo_reward_keys"
POSITIVE = {
    "dro": {f"{ACTOR}.policy_loss.dro_beta": 0.1},
    "clip_cov": {f"{ACTOR}.policy_loss.clip_cov_ratio": 0.0002},
    "kl_cov": {f"{ACTOR}.policy_loss.kl_cov_ratio": 0.0002},
    "sapo": {f"{ACTOR}.tau_pos": 1.0, f"{ACTOR}.tau_neg": 1.05},
}
"""Per loss, the keys that it divides by or requires to be positive, with veRL's defaults."""
BYPASS = "algorithm.rollout_correction.bypass_mode"
BUILT_IN_METRICS = ("reward", "acc", "score", "pred")
"""Metrics for filtering groups without a custom reward function: veRL's own results."""
_EXTERNAL = "VERL_USE_EXTERNAL_MODULES"
_MODULES = (
    f"{MODEL}.external_lib",
    f"{CRITIC}.model.external_lib",
    "data.custom_cls.path",
    "reward.custom_reward_function.path",
    "actor_rollout_ref.rollout.agent.agent_loop_config_path",
)
"""Keys of user modules that veRL imports, which may register estimators and losses."""


@of_keys
def aggregation(subject: Subject) -> Findings:
    """V5: this veRL has the loss aggregation mode."""
    for block in (ACTOR, CRITIC):
        key = f"{block}.loss_agg_mode"
        if subject.get(key) == "token-sum" and not subject.at_least("0.9.0") and subject.is_set(key):
            yield found("V5", version=subject.version, key=key)


def loss_mode(subject: Subject) -> Findings:
    """P19: the policy loss is one of this veRL, or the user's own."""
    known = subject.facts.names.get("losses", [])
    if "vanilla" in known:  # older versions do not register it
        yield from _registered(subject, "P19", LOSS_MODE, losses(), known)


def estimator(subject: Subject) -> Findings:
    """ALG-4: the advantage estimator is one of this veRL, or the user's own."""
    known = [each.name for each in estimators().values() if subject.at_least(each.since)]
    known += subject.facts.names.get("estimators", [])  # those of an installed fork
    yield from _registered(subject, "ALG-4", ESTIMATOR, estimators(), known)


def _registered(
    subject: Subject, id: str, key: str, catalogue: Mapping[str, Algorithm], known: Collection[str]
) -> Findings:
    """An error for a name of another version or without registration; a note if a user's module may register it."""
    name = subject.text(key)
    if name is None or name in known:
        return
    field = BY_KEY[key]
    near = nearest(name, [*map(field.from_verl, known), "ppo"])
    near = "vanilla" if near == "ppo" and key == LOSS_MODE else near  # the loss of PPO
    places = [place for place in _MODULES if subject.get(place)]
    preset = subject.loaded.preset
    places += ["program"] if preset.is_foreign or preset.program.imports_from else []
    places += [f"env.{_EXTERNAL}"] if preset.env.get(_EXTERNAL) else []
    what = "policy loss" if id == "P19" else "advantage estimator"
    words: Words = {"what": what, "key": key, "name": name, "version": subject.version, "known": sorted(set(known))}
    if name in catalogue:
        yield found(f"{id}.old", **words, since=catalogue[name].since)
    elif near is not None and not places:
        yield found(f"{id}.near", **words, near=near, perhaps=perhaps(near))
    elif not places:
        yield found(f"{id}.unknown", **words)
    else:
        yield found(f"{id}.external", **words, places=places, keys=[key, *places])


@of_trainer
def trainers_of_estimators(subject: Subject) -> Findings:
    """ALG-5: ReMax, GDPO and the optimal token baselines need the legacy trainer."""
    known = estimators().get(subject.text(ESTIMATOR) or "")
    if known is not None and known.lacks and subject.is_v1:
        yield found("ALG-5", version=subject.version, lacks=known.lacks, name=known.name)


@of_trainer
def optimal_baseline(subject: Subject) -> Findings:
    """ALG-6: the optimal token baseline requires the sum of squared probabilities from the actor."""
    if "optimal_token_baseline" in (subject.text(ESTIMATOR) or "") and subject.get(SQUARES) is not True:
        yield found("ALG-6", value=subject.get(ESTIMATOR))


@of_trainer
def rewards_of_gdpo(subject: Subject) -> Findings:
    """ALG-7: GDPO normalizes each of several rewards, whose names are required."""
    if subject.get(ESTIMATOR) == "gdpo" and not subject.get(GDPO_KEYS):
        yield found("ALG-7")


@of_trainer
def correction_of_bypass(subject: Subject) -> Findings:
    """ALG-8: the loss bypass_mode requires a rollout correction in bypass mode."""
    if subject.get(LOSS_MODE) == "bypass_mode" and subject.get(BYPASS) is not True:
        yield found("ALG-8")


def strengths(subject: Subject) -> Findings:
    """ALG-10: dro_beta (which veRL leaves unset), clip_cov_ratio, kl_cov_ratio and tau are positive.

    veRL: `verl/trainer/ppo/core_algos.py: compute_policy_loss_dro, ..._clip_cov, ..._kl_cov, ..._sapo`.
    """
    mode = subject.text(LOSS_MODE) or ""
    for key, usual in POSITIVE.get(mode, {}).items():
        if not (subject.number(key) or 0) > 0:
            yield found("ALG-10", mode=mode, key=key, value=subject.get(key), usual=usual)


def gae_needs_critic(subject: Subject) -> Findings:
    """ALG-1: GAE requires a critic."""
    if subject.get(ESTIMATOR) == "gae" and subject.get(CRITIC_ON) is False:
        yield found("ALG-1")


def group_of_one(subject: Subject) -> Findings:
    """ALG-2: GRPO, RLOO and others compare several responses per prompt."""
    if subject.group_based and subject.whole(N) == 1:
        name = subject.get(ESTIMATOR)
        yield found("ALG-2", name=name)


def two_kls(subject: Subject) -> Findings:
    """ALG-3: the KL to the reference is in the reward or in the loss, not in both."""
    if subject.get("algorithm.use_kl_in_reward") is True and subject.get(f"{ACTOR}.use_kl_loss") is True:
        yield found("ALG-3")


def filter_metric(subject: Subject) -> Findings:
    """V19: DAPO's group filter has a metric (0.9). ALG-9: it needs the v1 trainer or a custom sampler."""
    if subject.get(f"{FILTER}.enable") is not True:
        return
    if not subject.is_v1:
        yield found("ALG-9.legacy" if subject.at_least("0.9.0") else "ALG-9.old")
        return
    sampler = f"{TRAINER}.v1.sampler.custom_sampler.path"
    if subject.get(sampler) is not None:
        yield found("ALG-9.sampler")
        return
    metric, own = subject.text(f"{FILTER}.metric"), subject.get("reward.custom_reward_function.path")
    if metric and not own and metric not in BUILT_IN_METRICS:
        yield found("V19.unknown", metric=metric)
    if not subject.get(f"{FILTER}.metric"):
        yield found("V19.unset")
    model = "reward.reward_model"
    if subject.get(f"{model}.enable") is True and not subject.get(f"{model}.enable_resource_pool"):
        yield found("V19.reward-model")


RULES = (
    aggregation,
    loss_mode,
    estimator,
    trainers_of_estimators,
    optimal_baseline,
    rewards_of_gdpo,
    correction_of_bypass,
    strengths,
    gae_needs_critic,
    group_of_one,
    two_kls,
    filter_metric,
)

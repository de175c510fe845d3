"""The advantage estimators and policy losses of veRL: what each means, what it needs, since when, and its paper.

veRL: `verl/trainer/ppo/core_algos.py: AdvantageEstimator, register_adv_est, register_policy_loss`, by tags 0.4.1
to 0.9.1. What a module of the user's registers there is used as it is: nothing here limits the names.
"""

from dataclasses import dataclass

_FIRST = "0.4.1"


@dataclass(frozen=True)
class Algorithm:
    """An estimator or a loss. `group`: it compares several responses to a prompt, so rollout.n is above 1.

    `lacks` is what the new trainer of veRL 0.9 does not pass to it: only the old one runs it.
    """

    name: str
    meaning: str
    paper: str
    since: str = _FIRST
    group: bool = False
    lacks: str = ""


ESTIMATORS = {
    each.name: each
    for each in (
        Algorithm("gae", "PPO: a critic estimates values, GAE turns them into advantages", "1506.02438"),
        Algorithm("grpo", "reward minus the group's mean, over its spread", "2402.03300", group=True),
        Algorithm("grpo_vectorized", "GRPO, computed at once for all groups", "2402.03300", "0.6.0", group=True),
        Algorithm("grpo_passk", "only the best response of a group, minus the second best", "2503.19595", group=True),
        Algorithm("rloo", "reward minus the mean of the group's other responses", "2402.14740", group=True),
        Algorithm("rloo_vectorized", "RLOO, computed at once for all groups", "2402.14740", "0.6.0", group=True),
        Algorithm("reinforce_plus_plus", "discounted return, normalized over the whole batch", "2501.03262"),
        Algorithm(
            "reinforce_plus_plus_baseline",
            "reward minus the group's mean, normalized over the whole batch",
            "2501.03262",
            group=True,
        ),
        Algorithm(
            "remax", "reward minus that of the greedy response", "2310.10505", lacks="rewards of greedy responses"
        ),
        Algorithm("opo", "reward minus the group's length-weighted mean", "2505.23585", group=True),
        Algorithm(
            "gpg",
            "policy gradient on the group-centered reward, without KL and clipping",
            "2504.02546",
            "0.5.0",
            group=True,
        ),
        Algorithm(
            "gdpo",
            "GRPO for several rewards: each is normalized by itself",
            "2601.05242",
            "0.7.1",
            group=True,
            lacks="prompts",
        ),
        Algorithm(
            "optimal_token_baseline",
            "the baseline of least variance for each token",
            "2602.07078",
            "0.7.1",
            group=True,
            lacks="sums of squared probabilities",
        ),
        Algorithm(
            "tir_optimal_token_baseline",
            "the same over the turns of a tool run",
            "2602.07078",
            "0.7.1",
            group=True,
            lacks="sums of squared probabilities",
        ),
    )
}
"""Advantage estimators by veRL's name."""

LOSSES = {
    each.name: each
    for each in (
        Algorithm("vanilla", "PPO's clipped ratio, token by token", "1707.06347"),
        Algorithm("gspo", "clips the ratio of whole sequences; clip ranges of 3e-4", "2507.18071", "0.6.0"),
        Algorithm("sapo", "a soft gate instead of the clip", "2511.20347", "0.7.0"),
        Algorithm("gpg", "plain policy gradient without a ratio", "2504.02546", "0.5.0"),
        Algorithm("clip_cov", "leaves out tokens that drive the entropy down", "2505.22617"),
        Algorithm("kl_cov", "holds tokens that drive the entropy down by a KL", "2505.22617"),
        Algorithm("geo_mean", "GMPO: geometric mean of the ratios of a response", "2507.20673", "0.6.0"),
        Algorithm("cispo", "clips the weight, not the gradient: no token is dropped", "2506.13585", "0.7.0"),
        Algorithm("dppo_tv", "masks tokens by total variation instead of the ratio", "2602.04879", "0.7.1"),
        Algorithm("dppo_kl", "masks tokens by their KL instead of the ratio", "2602.04879", "0.7.1"),
        Algorithm("dro", "direct reward optimization: a squared loss on the log-ratio", "2405.19107", "0.9.0"),
        Algorithm("bypass_mode", "the rollout's own log-probabilities as the old policy", "2512.23075", "0.7.0"),
    )
}
"""Policy losses by veRL's name."""

"""Metrics derived from veRL's metrics and the configuration: a number per step, or None."""

import math
from collections.abc import Callable
from typing import NamedTuple

from launcher.health import keys
from launcher.health.config import RunConfig
from launcher.health.frame import Frame
from launcher.verl.config import ACTOR, BATCH, CRITIC_ALONE, GAMMA, PROMPT, ROLLOUT

Source = Callable[[Frame], float | None]
_THREE_DECIMALS = 0.0005  # maximum value behind a printed 0.000
_NOTHING = 0.05  # explained variance
_MOST = 0.5  # share of the score range
_STILL = 1e-5  # a KL in nats that only an unchanged policy has for long
_MOVED = 0.005  # a KL in nats that rounding alone does not reach
_NO_RATE = 1e-9  # 10,000 updates of this size change a weight of 0.02 by less than a thousandth
_SHORT = 16  # tokens; a lower limit truncates text before a stop token
_REACHED = 0.9  # share of the expected advantage: a dump may lack responses, but not the recorded step
_OPENING = 3  # steps
_MODE_SHOWS = 5  # steps in which the metrics show a trainer mode that is not known
_MODE = "trainer.v1.trainer_mode"
DROPPED = (keys.FILTERED, keys.EVICTED, keys.FAILED, keys.SURPLUS)
_COUNTS = frozenset(key for names in DROPPED for key in names)


class Derived(NamedTuple):
    """A derived metric: its source keys, () if it comes from the configuration alone, and its computation."""

    keys: tuple[str, ...]
    of: Callable[[RunConfig], Source]
    scale: tuple[str, ...] | None = None  # keys with its scale; None: its own


def _plain(names: tuple[str, ...], source: Source, scale: tuple[str, ...] | None = None) -> Derived:
    return Derived(names, lambda config: source, scale)


def _gradient(frame: Frame) -> float | None:
    """None at a step without signal, which SIG-1 flags."""
    if frame.no_signal:
        return None
    x = frame.get(keys.GRADIENT)
    return _THREE_DECIMALS if x == 0 and frame.three_decimals else x


def _update(frame: Frame) -> float | None:
    """ppo_kl; 0.0005 for a printed 0.000, which may be any value below it and does not prove a single mini-batch."""
    x = frame.get(keys.PPO_KL)
    return _THREE_DECIMALS if x == 0 and frame.three_decimals else x


def _explained(frame: Frame) -> float | None:
    """The explained variance; None for equal scores, where it would be far below 0."""
    return None if frame.same_scores else frame.get(keys.EXPLAINED)


def _idle(frame: Frame) -> float | None:
    x = _explained(frame)
    return None if x is None else float(x < _NOTHING)


def _value_error(frame: Frame) -> float | None:
    """The value loss as a share of the squared range of returns."""
    loss, high, low = map(frame.get, (keys.VALUE_LOSS, keys.RETURN_MAX, keys.RETURN_MIN))
    return None if loss is None or high is None or low is None or high <= low else loss / (high - low) ** 2


def _valid(names: tuple[str, ...]) -> Derived:
    """A difference of probabilities, if veRL does not mark it as invalid."""
    return _plain(names, lambda frame: None if frame.get(keys.PROBS_VALID) == 0 else frame.get(names))


def _truncated(config: RunConfig) -> Source:
    """The share of truncated responses.

    The v1 trainer compares with the longest response of the batch, so its share is never 0. Returns 0 if the longest
    response is below the limit (if unknown: below an earlier one).
    """
    known, longest_ever = config.response_limit, 0.0

    def share(frame: Frame) -> float | None:
        nonlocal longest_ever
        x, longest = frame.get(keys.TRUNCATED), frame.get(keys.LENGTH_MAX)
        if x is None or longest is None:
            return x
        longest_ever = max(longest_ever, longest)
        return 0.0 if longest < (longest_ever if known is None else known) else x

    return share


def _opening(names: tuple[str, ...], of_rewards: bool = False) -> Derived:
    """The highest value of steps 1 to 3, or that value as a multiple of the squared range of scores so far."""

    def of(config: RunConfig) -> Source:
        most, high, low = 0.0, -math.inf, math.inf

        def opening(frame: Frame) -> float | None:
            nonlocal most, high, low
            if frame.step <= _OPENING:
                most = max(most, frame.get(names) or 0.0)
            if not most or not of_rewards:
                return most or None
            top, least = frame.get(keys.SCORE_MAX), frame.get(keys.SCORE_MIN)
            high, low = max(high, high if top is None else top), min(low, low if least is None else least)
            return most / (high - low) ** 2 if high > low else None

        return opening

    return Derived(names, of, scale=())


def _decay(config: RunConfig) -> Source:
    """The share of the weights that AdamW subtracts per update: rate x decay."""
    decay = config.number(f"{ACTOR}.optim.weight_decay") or 0.0
    return lambda frame: None if (rate := frame.get(keys.LEARNING_RATE)) is None else rate * decay


def _zero_rate(config: RunConfig) -> Source:
    """Whether the learning rate is exactly 0 between warm-up and the last steps."""
    first, last = config.warmup_steps, config.total_steps or math.inf

    def zero(frame: Frame) -> float | None:
        x = frame.get(keys.LEARNING_RATE)
        if x is None or frame.three_decimals:
            return None
        return float(x == 0 and frame.count >= 2 and first < frame.step <= last - 2)

    return zero


def _lost_rate(config: RunConfig) -> Source:
    """1 while the learning rate was always too low for the weights and the policy is still; None in the warm-up."""
    most, least = 0.0, max(config.rounding_rate, _NO_RATE)

    def lost(frame: Frame) -> float | None:
        nonlocal most
        now, kl = frame.get(keys.LEARNING_RATE), frame.get(keys.KL)
        if now is None or frame.three_decimals:
            return None
        rises, most = now > most, max(most, now)
        waits = rises or frame.step <= config.warmup_steps
        return None if waits else float(0 < most < least and (kl is None or abs(kl) <= _MOVED))

    return lost


def _coefficient_growth(config: RunConfig) -> Source:
    """The KL coefficient as a multiple of its first value."""
    first: float | None = None

    def growth(frame: Frame) -> float | None:
        nonlocal first
        x = frame.get(keys.KL_COEFFICIENT)
        first = first or x
        return x / first if x is not None and first else None

    return growth


def _penalty(frame: Frame) -> float | None:
    """The KL penalty's part of the mean score, as a share of the score range."""
    score, reward, high, low = map(frame.get, (keys.SCORE, keys.REWARD, keys.SCORE_MAX, keys.SCORE_MIN))
    known = score is not None and reward is not None and high is not None and low is not None and high > low
    return (score - reward) / (high - low) if known else None  # type: ignore[operator]


def _runaway(config: RunConfig) -> Source:
    """The growth of the KL coefficient while the penalty takes most of the reward."""
    growth = _coefficient_growth(config)
    return lambda frame: x if (x := growth(frame)) is not None and (_penalty(frame) or 0.0) > _MOST else None


def _still(config: RunConfig) -> Source:
    """Whether the policy does not move although its learning rate and rewards would move it.

    Judged by the KL to the reference, and by ppo_kl if a step has several updates. While the learning rate rises
    (warm-up), it is not judged.
    """
    alone = max(config.warmup_steps, config.number(CRITIC_ALONE) or 0.0)
    several, rate = config.several_updates, math.inf

    def still(frame: Frame) -> float | None:
        nonlocal rate
        kl, update, now = map(frame.get, (keys.KL, keys.PPO_KL, keys.LEARNING_RATE))
        rises, rate = now is not None and now > rate, math.inf if now is None else now
        if frame.step <= alone or rises or now == 0 or frame.no_signal or frame.three_decimals:
            return None
        unchanged = bool(several) and update is not None and abs(update) <= _STILL / 1000
        return None if kl is None and not several else float(unchanged or (kl is not None and abs(kl) <= _STILL))

    return still


def _never_ended(config: RunConfig) -> Source:
    """Whether all responses so far had the maximum length (if unknown: one length)."""
    limit, ended = config.response_limit or 0.0, False

    def never(frame: Frame) -> float | None:
        nonlocal ended
        least, most = frame.get(keys.LENGTH_MIN), frame.get(keys.LENGTH_MAX)
        if least is None or most is None or 0 < limit < _SHORT:
            return None
        ended = ended or least < most or least < limit
        return float(not ended)

    return never


def _astray(config: RunConfig) -> Source:
    """Whether the recorded advantages differ from those computed from the scores of the responses (GRPO)."""
    known = config.estimator == "grpo" and config.flag("algorithm.norm_adv_by_std_in_grpo", True)

    def astray(frame: Frame) -> float | None:
        names = keys.ADVANTAGE_MAX, keys.ADVANTAGE_MIN, keys.ADVANTAGE_HIGH, keys.ADVANTAGE_LOW
        found = [x for x in map(frame.get, names) if x is not None]
        if not known or config.kl_in_reward or len(found) < len(names):
            return None
        high, low, expected, least = found
        return float(high < _REACHED * expected or low > _REACHED * least)

    return astray


def _kept(config: RunConfig) -> Source:
    """The mean return per token as a share of the mean reward per response.

    With the reward at the last of L tokens, the token k before it gets gamma^k of it (veRL: core_algos.py:
    compute_gae_advantage_return, compute_reinforce_plus_plus_outcome_advantage). The mean is (1 - gamma^L) / (L * (1 -
    gamma)). The higher of this share and the logged one counts: rewards within a response lose less, and if short
    responses score best, the metrics show a loss even without discounting.
    """
    gamma = config.number(GAMMA)

    def kept(frame: Frame) -> float | None:
        gained, score, length = frame.get(keys.RETURN), frame.get(keys.SCORE), frame.get(keys.LENGTH)
        if gamma is None or not 0 <= gamma < 1 or gained is None or score is None or length is None:
            return None
        reward = frame.get(keys.REWARD) or score
        if score * reward <= 0:
            return None
        formula = (1 - gamma**length) / (length * (1 - gamma)) if length >= 1 else 1.0
        return max(formula, gained / score, gained / reward)

    return kept


def _dropped(names: tuple[str, ...]) -> Derived:
    """A share of the generated groups. veRL logs counts above 0 only: after the first one, a missing count is 0."""

    def of(config: RunConfig) -> Source:
        batch, had = config.number(BATCH) or 0.0, False

        def share(frame: Frame) -> float | None:
            nonlocal had
            if not had and frame.data.keys().isdisjoint(_COUNTS):
                return None
            counts = [max(frame.get(each) or 0.0, 0.0) for each in DROPPED]
            had = had or any(counts)
            return max(frame.get(names) or 0.0, 0.0) / (batch + sum(counts)) if had and batch else None

        return share

    return Derived(names, of, scale=())


def _prompts_cut(config: RunConfig) -> Source:
    limit = config.number(PROMPT) or math.inf
    return lambda frame: (
        None
        if (most := frame.get(keys.PROMPT_MAX)) is None
        else (frame.get(keys.PROMPTS_CUT) or 0.0)
        if most >= limit
        else 0.0
    )


def _prompts_alike(config: RunConfig) -> Source:
    """Whether all prompts have equal length after steps with different lengths."""
    differed = False

    def alike(frame: Frame) -> float | None:
        nonlocal differed
        least, most = frame.get(keys.PROMPT_MIN), frame.get(keys.PROMPT_MAX)
        if least is None or most is None:
            return None
        differed = differed or least < most
        return float(least == most and differed)

    return alike


def _waiting(config: RunConfig) -> Source:
    """The trainer's idle share of a step; None if the rollout uses its GPUs meanwhile."""
    separate = config.text(_MODE) == "separate_async"

    def share(frame: Frame) -> float | None:
        nonlocal separate
        if not separate and frame.count <= _MODE_SHOWS:
            separate = any(key.startswith(keys.SEPARATE) for key in frame.data)
        waited, whole = frame.get(keys.GENERATION), frame.get(keys.STEP_TIME)
        known = separate and waited is not None and whole is not None and whole > 0
        return min(waited / whole, 1.0) if known and waited is not None and whole else None

    return share


def _alike(frame: Frame) -> float | None:
    """The share of nearly equal answers, at most twice its excess over the share of equal expected answers."""
    x = frame.get(keys.NEAR_EQUAL)
    return None if x is None else min(x, 2 * (x - (frame.get(keys.EQUAL_TRUTHS) or 0.0)))


def _sampling(name: str, everything: float) -> Derived:
    def of(config: RunConfig) -> Source:
        value = config.number(f"{ROLLOUT}.{name}")
        return lambda frame: value if value is not None and value > 0 else everything

    return Derived((), of)


METRICS = {
    "OPENING_KL": _opening(keys.KL),
    "OPENING_GRADIENT": _opening(keys.GRADIENT),
    "OPENING_VALUE": _opening(keys.VALUE_LOSS, of_rewards=True),
    "GRADIENT": _plain(keys.GRADIENT, _gradient),
    "SIGNAL_GRADIENT": _plain(keys.GRADIENT, lambda frame: None if frame.no_signal is None else _gradient(frame)),
    "UPDATE": _plain(keys.PPO_KL, _update),
    "EXPLAINED": _plain(keys.EXPLAINED, _explained),
    "IDLE_CRITIC": _plain(keys.EXPLAINED, _idle, scale=()),
    "VALUE_ERROR": _plain(keys.VALUE_LOSS, _value_error, scale=()),
    "VALID_DIFF": _valid(keys.PROBS_DIFF),
    "VALID_DIFF_MAX": _valid(keys.PROBS_DIFF_MAX),
    "VALID_CORRELATION": _valid(keys.PROBS_CORRELATION),
    "TRUNCATED": Derived(keys.TRUNCATED, _truncated),
    "ZERO_RATE": Derived(keys.LEARNING_RATE, _zero_rate, scale=()),
    "LOST_RATE": Derived(keys.LEARNING_RATE, _lost_rate, scale=()),
    "COEFFICIENT_GROWTH": Derived(keys.KL_COEFFICIENT, _coefficient_growth, scale=()),
    "RUNAWAY": Derived(keys.KL_COEFFICIENT, _runaway, scale=()),
    "PENALTY": _plain(keys.REWARD, _penalty, scale=()),
    "STILL": Derived(keys.KL + keys.PPO_KL, _still, scale=()),
    "NEVER_ENDED": Derived(keys.LENGTH_MIN, _never_ended, scale=()),
    "ASTRAY": Derived(keys.ADVANTAGE_HIGH, _astray, scale=()),
    "KEPT": Derived(keys.RETURN, _kept, scale=()),
    "DECAY": Derived(keys.LEARNING_RATE, _decay, scale=()),
    "FILTERED": _dropped(keys.FILTERED),
    "EVICTED": _dropped(keys.EVICTED),
    "FAILED": _dropped(keys.FAILED),
    "SURPLUS": _dropped(keys.SURPLUS),
    "CUT_PROMPTS": Derived(keys.PROMPT_MAX, _prompts_cut, keys.PROMPTS_CUT),
    "PROMPTS_ALIKE": Derived(keys.PROMPT_MIN, _prompts_alike, scale=()),
    "WAITING": Derived(keys.GENERATION, _waiting, scale=()),
    "ALIKE": _plain(keys.NEAR_EQUAL, _alike),
    "NO_TOOLS": _plain(keys.TURNS, lambda frame: None if (x := frame.get(keys.TURNS)) is None else float(x <= 2), ()),
    "KL_TARGET": Derived((), lambda config: lambda frame: config.target_kl),
    "TOP_P": _sampling("top_p", 1.0),
    "TOP_K": _sampling("top_k", math.inf),
}


def keys_of(name: str, drawn: bool = False) -> tuple[str, ...]:
    """The keys of a metric of `keys` or this module; with `drawn` only keys with its scale."""
    if (found := METRICS.get(name)) is not None:
        return found.scale if drawn and found.scale is not None else found.keys
    names: tuple[str, ...] = getattr(keys, name)
    return names

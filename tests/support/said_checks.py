"""What the numbers of messages must be, computed again from the metrics of a run by other code than the rules."""

import math
import re
import statistics
from collections.abc import Callable

from said_numbers import ENTROPY, KL, LENGTH, LOSS, SCORE, TIME, Past, Shown, finite, smooth


def cut(data: dict[str, float], limit: object, longest: float) -> float:
    """The share of cut responses: none where even the longest is below the limit."""
    share, most = data["response_length/clip_ratio"], data.get("response_length/max")
    return share if most is None or most >= (limit if isinstance(limit, int | float) else longest) else 0.0


def cut_now(past: Past) -> float:
    longest = max((data.get("response_length/max", 0.0) for _, data in past.steps), default=0.0)
    return cut(past.steps[-1][1], past.config.get("data.max_response_length"), longest)


def flat(data: dict[str, float]) -> bool | None:
    known = [
        (data[f"critic/{kind}/max"], data[f"critic/{kind}/min"])
        for kind in ("score", "advantages")
        if f"critic/{kind}/max" in data
    ]
    return None if not known else any(high - low <= 1e-9 * max(abs(high), abs(low)) for high, low in known)


def drift(past: Past, rise: str, steps: str, reward: str | None) -> bool:
    """KL-4: how far the smoothed median of three has risen above its lowest in 21 steps, and the reward meanwhile."""
    kls, rows, rewards = list[float](), list[float](), list[float]()
    warm = past.config.get("trainer.critic_warmup") or 0
    for step, data in past.steps:
        kl, score = (next((data[name] for name in names if name in data), None) for names in (KL, SCORE))
        if kl is not None and finite(kl) and isinstance(warm, int) and step > warm:
            kls.append(kl)
        if kl is None or score is None:
            continue
        rewards.append(score)
        rows += [statistics.median(kls[-3:])] if kls else []
    level, score_level = smooth(rows), smooth(rewards)
    recent = level[-21:]
    place = min(range(len(recent)), key=lambda at: recent[at])
    ago = len(recent) - 1 - place
    paid = reward is None or Shown.of(reward).is_(score_level[-1] - score_level[-1 - ago])
    return Shown.of(rise).is_(recent[-1] - recent[place]) and int(steps) == ago and paid


def lasting_best(past: Past, best: str, step: str) -> bool:
    """The highest that both the smoothed score and the median of five reached, at its step."""
    scored = [
        (at, next(data[name] for name in SCORE if name in data))
        for at, data in past.steps
        if any(n in data for n in SCORE)
    ]
    values = [x for _, x in scored]
    level = smooth(values)
    lower = {at: min(level[n], statistics.median(values[max(n - 4, 0) : n + 1])) for n, (at, _) in enumerate(scored)}
    span = max(values) - min(values)
    return (
        Shown.of(best).is_(lower[int(step)]) and max(lower.values()) <= lower[int(step)] + 0.02 * max(span, 1e-9) + 1.0
    )


def moved(past: Past, verb: str, before: str, after: str, steps: str) -> bool:
    count, now, then = int(steps), Shown.of(after), Shown.of(before)
    down = now.low < then.low
    ends = now.is_(past.median(3, *ENTROPY)) and then.is_(past.median(3, *ENTROPY, ago=count))
    return ends and before != after and (verb == "fell") is down


def validations(past: Past, at: int | None = None) -> list[tuple[int, float]]:
    found = []
    for step, data in past.steps:
        heads = [
            x
            for key, x in data.items()
            if (key.startswith("val-core/") and key.rpartition("/")[2].startswith("mean@"))
            or key.startswith(("val/test_score/", "test_score/"))
        ]
        if heads:
            found.append((step, statistics.fmean(heads)))
    return found


def validated(past: Past, value: str, above: str | None, two: str | None, best: str, step: str) -> bool:
    found = validations(past)
    values = [x for _, x in found]
    pairs = {at: statistics.fmean(values[max(n - 1, 0) : n + 1]) for n, (at, _) in enumerate(found)}
    right = (
        Shown.of(value).is_(values[-1])
        and Shown.of(best).is_(pairs[int(step)])
        and (two is not None) is (len(found) > 1)
    )
    return right and (values[-1] > pairs[int(step)] + 1e-12) is (above is not None)


def share(key: str, count: int = 1) -> Callable[[Past, str], bool]:
    return lambda past, x: Shown.of(x).is_(past.median(count, key), 100)


def value(*names: str) -> Callable[[Past, str], bool]:
    return lambda past, x: Shown.of(x).is_(past.value(*names))


def against_usual(*names: str) -> Callable[[Past, str, str], bool]:
    return lambda past, x, usual: Shown.of(x).is_(past.value(*names)) and past.called_usual(usual, *names)


def against_past(*names: str) -> Callable[[Past, str, str, str], bool]:
    """A value of the past that is not the usual one: the first values, or those of 50 to 100 steps ago."""

    def right(past: Past, x: str, then: str, when: str) -> bool:
        values, shown = past.values(*names), Shown.of(then)
        known = values[:20] if when == "first steps" else values
        return Shown.of(x).is_(past.value(*names)) and shown.high >= min(known) and shown.low <= max(known)

    return right


def beside_rewards(past: Past, loss: str, span: str) -> bool:
    """The value loss beside the usual range of the rewards of a step; where none had one, that of their means."""
    ends = [
        (data["critic/score/max"], data["critic/score/min"]) for _, data in past.steps if "critic/score/max" in data
    ]
    scores = past.values("critic/score/mean")[-40:] or [0.0]
    ranges = [high - low for high, low in ends if high > low] or [max(scores) - min(scores)]
    shown = Shown.of(span)
    return Shown.of(loss).is_(past.median(3, *LOSS)) and shown.high >= min(ranges) and shown.low <= max(ranges)


def mismatch_grown(past: Past, name: str, x: str, first: str) -> bool:
    key = "rollout_corr/kl" if name == "rollout KL" else "training/rollout_probs_diff_mean"
    values, shown = past.values(key)[:16], Shown.of(first)
    return Shown.of(x).is_(past.smooth(key)) and shown.high >= min(values) and shown.low <= max(values)


def took(past: Past, seconds: str, apart: str | None) -> bool:
    """The time of a step, less what it contains besides training (here: saving)."""
    whole = past.value(*TIME) or 0.0
    core = whole - (past.value("timing_s/save_checkpoint") or 0.0)
    rest = past.value("timing_s/save_checkpoint") or past.value("timing_s/testing")
    return Shown.of(seconds).is_(core) and (apart is not None) is bool(rest)


def times(past: Past, seconds: str, apart: str | None, times: str, usual: str) -> bool:
    return took(past, seconds, apart) and Shown.of(times).ratio_of(Shown.of(seconds), Shown.of(usual))


def length_ratio(past: Past, x: str, usual: str, times: str, named: str | None) -> bool:
    """The ratio is to the larger one of the usual and the first length (the median of three)."""
    right = Shown.of(x).is_(past.median(3, *SCORE)) and past.called_usual(usual, *SCORE)
    first = statistics.median(past.values(*LENGTH)[:3])
    known = [*past.usual.get(LENGTH[0], ())[:1], *([] if named == "usual" else [Shown(first, first)])]
    now = past.value(*LENGTH)
    return right and (not known or now is None or any(Shown.of(times).ratio_of(Shown(now, now), x) for x in known))


def non_finite(past: Past, step: str, names: str, now: str | None) -> bool:
    data = next(data for at, data in past.steps if at == int(step))
    named = [name for name in re.split(r", | and \d+ more", names) if name]
    return all(not finite(data[name]) for name in named) and (now is not None or int(step) == past.steps[-1][0])


def same_scores(data: dict[str, float]) -> bool:
    return "critic/score/max" in data and data["critic/score/max"] - data["critic/score/min"] <= 1e-9 * abs(
        data["critic/score/max"]
    )


def explained(past: Past) -> list[float]:
    """The explained variances of steps whose rewards differ: of equal ones there is nothing to explain."""
    return [
        data["critic/vf_explained_var"]
        for _, data in past.steps
        if finite(data.get("critic/vf_explained_var", math.nan)) and not same_scores(data)
    ]


def waited(past: Past) -> list[float]:
    """The shares of the steps in which the trainer waited for responses."""
    return [min(data["timing_s/gen"] / data["timing_s/step"], 1.0) for _, data in past.steps if "timing_s/gen" in data]


def kept(past: Past, share: str) -> bool:
    """The mean return as a share of the mean reward, or what gamma alone would leave, where that is more."""
    score, reward, gained = (past.value(f"critic/{name}/mean") for name in ("score", "rewards", "returns"))
    length, gamma = past.value(*LENGTH), past.config["algorithm.gamma"]
    if not score or not gained or not length or not isinstance(gamma, float):
        return False
    alone = (1 - gamma**length) / (length * (1 - gamma))
    return Shown.of(share).is_(100 * max(alone, gained / score, gained / (reward or score)))

"""MIS-1 and STALE-1: whether the samples come from the policy that is trained."""

from collections.abc import Mapping, Sequence

from launcher.format import number
from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, ladder
from launcher.health.state import Reading
from launcher.record.levels import Bound, worst


class Mismatch(Rule):
    """The probabilities of the rollout engine against those of training, by whatever figures are logged."""

    id = "MIS-1"
    question = "Do rollout and training agree?"
    family = "mismatch"
    needs = (
        (
            *keys.PROBS_DIFF,
            *keys.PROBS_CORRELATION,
            *keys.ROLLOUT_KL,
            *keys.WEIGHT_MEAN,
            *keys.WEIGHT_SAMPLES,
            *keys.CHI2,
        ),
    )

    def judge(self, frame: Frame) -> Reading | None:
        valid = frame.get(keys.PROBS_VALID) != 0
        found = []  # level, words
        for name, words, names, distance in _FIGURES:
            if names in (keys.PROBS_DIFF, keys.PROBS_CORRELATION) and not valid:
                continue  # not figures at all at such a step
            x = frame.get(names)
            if x is not None:
                level = worst(distance(x), _bounds(self.limits.raising, name))
                found.append((level, f"{words} {number(x)}"))
        if not found:
            return None
        highest = max(level for level, _ in found)
        return Reading(highest, ", ".join(words for level, words in found if level == highest))


_FIGURES = (
    ("probs_diff", "probability difference", keys.PROBS_DIFF, abs),
    ("correlation", "correlation", keys.PROBS_CORRELATION, lambda x: 1 - x),
    ("kl", "rollout KL", keys.ROLLOUT_KL, abs),
    ("weight", "mean weight", keys.WEIGHT_MEAN, float),
    ("samples", "effective sample size", keys.WEIGHT_SAMPLES, lambda x: 1 - x),
    ("chi2", "chi² of tokens", keys.CHI2, float),
)


def _bounds(limits: Mapping[str, float], name: str) -> Sequence[Bound]:
    if name == "weight":
        return ladder(limits, "weight_low", "<") + ladder(limits, "weight_high", ">")
    return ladder(limits, name)


class StaleSamples(Rule):
    """How many weight versions lie between sampling and training."""

    id = "STALE-1"
    question = "Are the samples fresh?"
    family = "mismatch"
    needs = (keys.STALENESS,)
    on_chart = True
    limit = ("versions", ">=")

    def weigh(self, x: float, frame: Frame) -> Reading:
        return self.compare(x, f"samples are {number(x)} versions old")

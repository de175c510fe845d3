"""MIS-1 and STALE-1: whether the samples come from the policy that is trained."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from launcher.format import number
from launcher.health import keys
from launcher.health.clauses import Clause, Rung, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule
from launcher.health.state import Reading


class _Figure(NamedTuple):
    """One figure of the mismatch: the names of its limits and of its metric, and what it is."""

    name: str
    words: str
    metric: tuple[str, ...]
    kind: Literal["value", "size", "below 1", "around 1"] = "value"

    def clause(self, limits: Mapping[str, float], x: float) -> Clause:
        rungs = ladder(limits, self.name)
        if self.kind == "below 1":
            rungs = [Rung(level, "<=", 1 - value) for level, _, value in rungs]
        elif self.kind == "around 1":
            rungs = ladder(limits, "weight_low", "<") + ladder(limits, "weight_high", ">")
        size = abs(x) if self.kind == "size" else x
        return Clause(size, rungs, "" if size == x else f"size of the {self.words}", self.metric, fixed=True)


_FIGURES = (
    _Figure("probs_diff", "probability difference", keys.PROBS_DIFF, "size"),
    _Figure("correlation", "correlation", keys.PROBS_CORRELATION, "below 1"),
    _Figure("kl", "rollout KL", keys.ROLLOUT_KL, "size"),
    _Figure("weight", "mean weight", keys.WEIGHT_MEAN, "around 1"),
    _Figure("samples", "effective sample size", keys.WEIGHT_SAMPLES, "below 1"),
    _Figure("chi2", "chi² of tokens", keys.CHI2),
)


class Mismatch(Rule):
    """The probabilities of the rollout engine against those of training, by whatever figures are logged."""

    id = "MIS-1"
    name = "Rollout mismatch"
    family = "mismatch"
    needs = (tuple(key for figure in _FIGURES for key in figure.metric),)
    also = tuple(figure.metric for figure in _FIGURES)

    def judge(self, frame: Frame) -> Reading | None:
        valid = frame.get(keys.PROBS_VALID) != 0
        found = []  # figure, its value
        for figure in _FIGURES:
            if figure.metric in (keys.PROBS_DIFF, keys.PROBS_CORRELATION) and not valid:
                continue  # not figures at all at such a step
            x = frame.get(figure.metric)
            if x is not None:
                found.append((figure, x))
        if not found:
            return None
        reading = self.compare("", lambda limits: [figure.clause(limits, x) for figure, x in found])
        said = [
            f"{figure.words} {number(x)}"
            for (figure, x), clause in zip(found, reading.raising, strict=True)
            if clause.level == reading.raw
        ]
        return replace(reading, message=", ".join(said))


class StaleSamples(Rule):
    """How many weight versions lie between sampling and training."""

    id = "STALE-1"
    name = "Stale samples"
    family = "mismatch"
    needs = (keys.STALENESS,)

    def judge(self, frame: Frame) -> Reading | None:
        x = frame.get(keys.STALENESS)
        if x is None:
            return None
        return self.compare(
            f"samples are {number(x)} versions old",
            lambda limits: [Clause(x, ladder(limits, "versions"), metric=keys.STALENESS, fixed=True)],
        )

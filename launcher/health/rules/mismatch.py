"""MIS-1 to MIS-3, RATIO-1 and STALE-1: whether the samples come from the policy that is trained."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, SHARE, Clause, Rung, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, warming
from launcher.health.series import Baseline
from launcher.health.state import Reading
from launcher.record.levels import Level
from launcher.verl.config import ACTOR, BATCH, CORRECTION, MINI, ROLLOUT

_WARM_UP = 8  # steps


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
    """Compares the probabilities of the rollout engine with those of training, by the logged metrics (MIS-1)."""

    id = "MIS-1"
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


class GrowingMismatch(Rule):
    """Compares the largest probability difference with its usual, and the mean one while responses grow (MIS-2).

    Not calibrated on failing runs: a NOTICE at most.
    """

    id = "MIS-2"
    needs = (keys.PROBS_DIFF, keys.PROBS_DIFF_MAX)
    also = (keys.LENGTH,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._mean, self._highest, self._length = Baseline(20), Baseline(20), Baseline(20)

    def rate(self, frame: Frame, mean: float, highest: float) -> Reading | None:
        length = frame.get(keys.LENGTH)
        if frame.get(keys.PROBS_VALID) == 0:
            return None
        usual = self._mean.median, self._highest.median, self._length.median
        known, reading = len(self._mean), None
        if known >= _WARM_UP:
            message = f"probability difference {number(mean)} (usual {number(usual[0])}), highest {number(highest)}"
            longer = length / usual[2] if length is not None and usual[2] > 0 else 1.0
            if longer >= self.limits.raising["notice.length"]:
                message += f", responses {number(longer)} times as long"
            reading = self.compare(message, lambda limits: self._clauses(limits, mean, highest, longer, usual))
        refused = reading is not None and reading.raw > Level.OK
        for series, x in ((self._mean, mean), (self._highest, highest), (self._length, length)):
            if x is not None:
                series.add(x, refused=refused)
        return reading or warming(_WARM_UP - known)

    @staticmethod
    def _clauses(
        limits: Mapping[str, float], mean: float, highest: float, longer: float, usual: tuple[float, float, float]
    ) -> Sequence[Clause]:
        top = max(limits["notice.highest"] * usual[1], limits["notice.floor"])
        together = mean if longer >= limits["notice.length"] else math.nan
        grown = Rung(Level.NOTICE, ">", max(limits["notice.mean"] * usual[0], limits["notice.least"]))
        return [
            Clause(highest, [Rung(Level.NOTICE, ">", top)], metric=keys.PROBS_DIFF_MAX, span=SHARE),
            Clause(together, [grown], "difference while responses grow", keys.PROBS_DIFF, SHARE),
        ]


class FirstUpdate(Rule):
    """Looks for a drift within the only update of a batch, in which policy and old policy are the same (RATIO-1)."""

    id = "RATIO-1"
    needs = (keys.PPO_KL,)
    also = (keys.CLIPPED,)

    def not_applicable(self) -> str | None:
        batch, mini, epochs = (self.config.number(key) for key in (BATCH, MINI, f"{ACTOR}.ppo_epochs"))
        if batch is None or mini is None:
            return f"{BATCH} or {MINI} is unknown"
        if mini < batch or (epochs or 1) > 1:
            return "several updates per batch"
        if self.config.flag(f"{CORRECTION}.bypass_mode"):
            return "the old policy is the rollout's (bypass_mode)"
        return None

    def rate(self, frame: Frame, drift: float) -> Reading:
        clipped = frame.get(keys.CLIPPED)
        shown = f", {number(100 * clipped)} % of tokens clipped" if clipped is not None else ""
        return self.compare(
            f"ppo_kl {number(abs(drift))} on the only update (expected 0){shown}",
            lambda limits: [
                Clause(abs(drift), ladder(limits, "drift", ">"), "size of ppo_kl", keys.PPO_KL, POSITIVE, fixed=True),
                Clause(
                    math.nan if clipped is None else clipped,
                    ladder(limits, "clipped", ">"),
                    "clipped share",
                    keys.CLIPPED,
                    SHARE,
                    fixed=True,
                ),
            ],
        )


class StaleSamples(Rule):
    """Judges how many weight versions separate sampling from training (STALE-1)."""

    id = "STALE-1"
    needs = (keys.STALENESS,)

    def rate(self, frame: Frame, x: float) -> Reading:
        return self.compare(
            f"samples are {number(x)} versions old",
            lambda limits: [Clause(x, ladder(limits, "versions"), metric=keys.STALENESS, fixed=True)],
        )


class LimitedSampling(Rule):
    """Looks for sampling that leaves out tokens, which the trainer's probabilities do not do (MIS-3).

    The temperature is no such case: the trainer divides its logits by it (veRL: workers/engine_workers.py).
    """

    id = "MIS-3"
    also = (keys.PROBS_DIFF,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._top_p, self._top_k = (setup.config.number(f"{ROLLOUT}.{name}") for name in ("top_p", "top_k"))

    def not_applicable(self) -> str | None:
        unknown = self._top_p is None and self._top_k is None
        return "rollout.top_p and rollout.top_k are unknown" if unknown else None

    def judge(self, frame: Frame) -> Reading:
        top_p = 1.0 if self._top_p is None else self._top_p
        top_k = self._top_k if self._top_k and self._top_k > 0 else math.inf
        said = [f"top_p {number(top_p)}"] if top_p < 1 else []
        said += [f"top_k {number(top_k)}"] if top_k < math.inf else []
        message = f"sampled with {' and '.join(said)}, trained without" if said else "samples from all tokens"
        return self.compare(
            message,
            lambda limits: [
                Clause(top_p, ladder(limits, "top_p", "<"), "top_p", span=SHARE, fixed=True),
                Clause(top_k, ladder(limits, "top_k", "<"), "top_k", span=POSITIVE, fixed=True),
            ],
        )

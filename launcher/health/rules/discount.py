"""DISC-1: what discounting leaves of the reward."""

import math
from collections.abc import Mapping
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup
from launcher.health.state import Reading
from launcher.verl.config import GAMMA


class DiscountedReward(Rule):
    """The mean return of a token as a share of the mean reward of a response.

    With a reward at the last of L tokens, the return of the token that is k before it is gamma^k of the reward (veRL:
    core_algos.py: compute_gae_advantage_return with lam 1, compute_reinforce_plus_plus_outcome_advantage), so their
    mean is (1 - gamma^L) / (L * (1 - gamma)) of it. With a lower lam, returns get there as the critic learns. The
    higher of this share and the one in the metrics is judged: a reward within a response loses less than the formula
    says, and where short responses score best, the metrics show a loss even without discounting.
    """

    id = "DISC-1"
    needs = (keys.RETURN, keys.SCORE)
    also = (keys.LENGTH,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        gamma = setup.config.number(GAMMA)
        self._gamma = math.nan if gamma is None else gamma

    def not_applicable(self) -> str | None:
        if self.config.discounts is False:
            return f"no discounting in this run ({self.config.estimator})"
        if self.config.discounts is None or math.isnan(self._gamma):
            return f"{GAMMA} is unknown"
        return None if 0 <= self._gamma < 1 else f"no discounting in this run (gamma {number(self._gamma)})"

    def judge(self, frame: Frame) -> Reading | None:
        gained, score, length = (frame.get(names) for names in (keys.RETURN, keys.SCORE, keys.LENGTH))
        if gained is None or score is None or length is None:
            return None
        reward = frame.get(keys.REWARD) or score
        compared = score * reward > 0
        share = max(_kept(self._gamma, length), gained / score, gained / reward) if compared else math.nan
        reading = self.compare(
            f"returns average {number(100 * share)} % of the score", lambda limits: [self._least(limits, share)]
        )
        if not compared:
            return replace(reading, message="not compared: the mean score is 0, or smaller than the KL penalty")
        return replace(reading, message=f"{reading.message}: discounting hides the reward") if reading.raw else reading

    @staticmethod
    def _least(limits: Mapping[str, float], share: float) -> Clause:
        return Clause(share, ladder(limits, "share", "<"), "share of the score", span=POSITIVE, fixed=True)


def _kept(gamma: float, length: float) -> float:
    """The mean of gamma^k over the tokens of a response."""
    return (1 - gamma**length) / (length * (1 - gamma)) if length >= 1 else 1.0

"""REW-1, REW-2, REW-4, SIG-1 and DISC-1: the reward itself, whether it says anything, what discounting leaves of it."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import POSITIVE, AtLevel, Clause, Rung, ladder, rungs
from launcher.health.frame import Frame
from launcher.health.rules.base import PastRule, Rule, Setup, lasting, moved, warming
from launcher.health.signals import Reward
from launcher.health.state import Reading
from launcher.record.levels import FLAGS, Level
from launcher.verl.config import GAMMA

_RANGES = ((keys.SCORE_MAX, keys.SCORE_MIN), (keys.ADVANTAGE_MAX, keys.ADVANTAGE_MIN))
_HAD = 10  # steps with signal after which its absence is a loss


class RewardDrop(Rule):
    """Compares the smoothed score with its best (REW-1).

    The loss is measured by the range of the scores, and by how far the best is above the lowest score ever: half of
    a small reward is much.
    """

    id = "REW-1"
    worse = -1
    needs = (keys.SCORE,)

    def rate(self, frame: Frame, score: float) -> Reading:
        reward = frame.signals.reward
        if reward.count < 10:
            return warming(10 - reward.count)
        best = f"best so far {number(reward.best)} at step {reward.best_step}"
        return self.compare(f"reward {number(reward.ema)}, {best}", lambda limits: self._drop(limits, reward))

    @staticmethod
    def _drop(limits: Mapping[str, float], reward: Reward) -> Sequence[Clause]:
        if reward.best is None:
            return ()
        best, gained = reward.best, reward.best - reward.lowest

        def below(sigmas: str) -> list[Rung]:
            return rungs(limits, "<", lambda at: best - max(drop(at), at(sigmas) * reward.sigma))

        def drop(at: AtLevel) -> float:
            return min(at("span") * reward.span, at("share") * gained)

        slowly = below("lasting")
        unrecovered = slowly[0]._replace(level=Level.CRITICAL)  # what is a WARN, for all of the last steps
        return [
            Clause(reward.ema, below("sigmas"), "smoothed", keys.SCORE),
            Clause(reward.lasting, slowly, "mean of 10 steps", keys.SCORE),
            Clause(reward.recent_best, [unrecovered], "best of 20 steps", keys.SCORE),
        ]


class RewardPlateau(Rule):
    """Counts steps without a new best (REW-2)."""

    id = "REW-2"
    needs = (keys.SCORE,)

    def rate(self, frame: Frame, score: float) -> Reading:
        reward = frame.signals.reward
        if reward.count < 120:
            return warming(120 - reward.count)
        waited = reward.steps_since_best
        best = f"(best {number(reward.best)} at step {reward.best_step})"
        counted = math.nan if reward.near_top(reward.ema) else waited
        reading = self.compare(
            f"last new best {waited} steps ago {best}",
            lambda limits: [Clause(counted, ladder(limits, "steps"), "steps without a new best", span=POSITIVE)],
        )
        return replace(reading, message=f"no new best reward for {waited} steps {best}") if reading.raw else reading


class RewardLeap(PastRule):
    """Looks for a score far above its usual, or beyond anything that a response had (REW-4)."""

    id = "REW-4"
    needs = (keys.SCORE,)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # the highest and the lowest score of a response until three steps ago, while the rule was content
        self._highest, self._lowest = -math.inf, math.inf
        self._ends: deque[tuple[float, float]] = deque(maxlen=4)

    def rate(self, frame: Frame, score: float) -> Reading:
        reward = frame.signals.reward
        found = [x for names in (keys.SCORE, keys.SCORE_MAX, keys.SCORE_MIN) if (x := frame.get(names)) is not None]
        self._ends.append((max(found), min(found)))
        refused = frame.raw.get("REW-1", Level.OK) >= Level.WARN
        if reward.count < 10:
            self._usual.add(score, refused)
            self._widen()
            return warming(10 - reward.count)
        usual, now = self._usual.median, reward.med3
        verb = "rose" if now > usual else "went"
        reading = self.compare(
            f"reward {moved(verb, usual, now)}", lambda limits: [self._leap(limits, reward, now, usual)]
        )
        if reading.raw < Level.WARN:
            self._widen()
        self._usual.add(score, refused or reading.raw >= Level.WARN)
        return reading

    def _widen(self) -> None:
        high, low = self._ends[0]
        self._highest, self._lowest = max(self._highest, high), min(self._lowest, low)

    def _leap(self, limits: Mapping[str, float], reward: Reward, now: float, usual: float) -> Clause:
        leap = reward.distance(limits["notice.span"], limits["notice.sigmas"])
        above = [Rung(Level.NOTICE, ">", usual + leap)]
        if (span := self._highest - self._lowest) > 0:
            above.append(Rung(Level.WARN, ">", self._lowest + limits["warn.scale"] * span))
        return Clause(now, above, "median of 3 steps", keys.SCORE)


class Signal(Rule):
    """Counts steps on which all rewards or all advantages are equal (SIG-1)."""

    id = "SIG-1"
    needs = ((*keys.SCORE_MAX, *keys.ADVANTAGE_MAX), (*keys.SCORE_MIN, *keys.ADVANTAGE_MIN))

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._run = 0  # flat steps up to now
        self._had = 0  # steps with signal so far
        self._flat = 0  # steps without, before the present ones in a row
        self._last: deque[bool] = deque(maxlen=10)
        self._solved = False

    def judge(self, frame: Frame) -> Reading | None:
        if not any(_given(frame, *ends) for ends in _RANGES):
            return None
        same_score, flat = frame.same_scores(), frame.no_signal()
        self._last.append(flat)
        if not flat:
            self._flat += self._run
        self._run = self._run + 1 if flat else 0
        self._had += not flat
        steps = f"{self._run} step{'s' if self._run != 1 else ''}"
        message = f"all advantages are 0 (equal rewards within each group) for {steps}"
        if same_score:
            shown = number(frame.get(keys.SCORE_MAX))
            message = f"all samples have the same reward ({shown}) for {steps}"
        self._solved = same_score and _solved(frame.signals.reward)
        case = "solved" if self._solved else "had" if self._had >= _HAD else "never"
        among = math.nan if flat else sum(self._last)
        reading = self.compare(message, lambda limits: self._missing(limits, case, among))
        if flat:
            return lasting(reading)
        scattered = f"{among} of the last {len(self._last)} steps had no learning signal"
        return replace(reading, message=scattered if reading.raw else "rewards differ")

    def harms(self) -> bool:
        return not self._solved  # there is nothing left to learn

    def _missing(self, limits: Mapping[str, float], case: str, among: float) -> Sequence[Clause]:
        """Steps without signal in a row, and at a step with signal those before it."""
        missing = ladder(limits, case)
        if case == "had":  # where flat steps are common, a few in a row are chance
            share = math.log((self._flat + 0.5) / (self._flat + self._had + 1))
            missing = rungs(limits, ">=", lambda at: max(at("had"), math.log(at("chance")) / share), FLAGS)
        return [
            Clause(self._run, missing, "consecutive steps without a signal", span=POSITIVE),
            Clause(among, ladder(limits, "mostly"), "steps without a signal, of the last 10", span=(0, 10)),
        ]


def _solved(reward: Reward) -> bool:
    """Whether equal rewards mean that every response is as good as any ever was."""
    return reward.score is not None and reward.lowest < reward.score >= reward.highest


def _given(frame: Frame, high: Sequence[str], low: Sequence[str]) -> bool:
    return frame.get(high) is not None and frame.get(low) is not None


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

    def rate(self, frame: Frame, gained: float, score: float) -> Reading | None:
        length = frame.get(keys.LENGTH)
        if length is None:
            return None
        reward = frame.get(keys.REWARD) or score
        compared = score * reward > 0
        share = max(_kept(self._gamma, length), gained / score, gained / reward) if compared else math.nan
        reading = self.compare(
            f"returns average {number(100 * share)} % of the score", lambda limits: [self._least(limits, share)]
        )
        if not compared:
            return replace(reading, message="not compared: the mean score is 0, or smaller than the KL penalty")
        return (
            replace(reading, message=f"{reading.message}: gamma removes most of the reward") if reading.raw else reading
        )

    @staticmethod
    def _least(limits: Mapping[str, float], share: float) -> Clause:
        return Clause(share, ladder(limits, "share", "<"), "share of the score", span=POSITIVE, fixed=True)


def _kept(gamma: float, length: float) -> float:
    """The mean of gamma^k over the tokens of a response."""
    return (1 - gamma**length) / (length * (1 - gamma)) if length >= 1 else 1.0

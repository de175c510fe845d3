"""NUM-1: numbers that are none."""

import math

from launcher.health import keys
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup
from launcher.health.state import Reading
from launcher.record.levels import Level

_SHOWN = 4


class FiniteNumbers(Rule):
    """A NaN or infinity under any key that is not a validation's."""

    id = "NUM-1"
    question = "Are all numbers finite?"
    family = "numbers"
    also = (keys.POLICY_LOSS, keys.GRADIENT, keys.VALUE_LOSS)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last_norm: int | None = None  # count of the last step on which only grad norms were bad

    def judge(self, frame: Frame) -> Reading:
        isfinite = math.isfinite
        bad = [key for key, value in frame.data.items() if not isfinite(value)]
        bad = [key for key in bad if not keys.is_validation(key) and not _by_design(key, frame)]
        if not bad:
            return Reading(Level.OK, "all figures are finite")
        training = [key for key in bad if keys.is_training(key)]
        level = Level.CRITICAL if training else Level.WARN
        if training and all(key.endswith("/grad_norm") for key in training):
            # veRL skips such an update, so one is harmless
            before, self._last_norm = self._last_norm, frame.count
            again = before is not None and frame.count - before <= self.limits.raising["critical.again"]
            level = Level.CRITICAL if again else Level.WARN
        named = sorted(bad, key=lambda key: not keys.is_training(key))
        more = f" and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        return Reading(level, f"non-finite at step {frame.step}: {', '.join(named[:_SHOWN])}{more}")


def _by_design(key: str, frame: Frame) -> bool:
    """Whether veRL itself marks the figure as invalid at this step."""
    if not key.startswith("training/rollout_probs_diff_") and not key.endswith("pearson_corr"):
        return False
    return frame.get(keys.PROBS_VALID) == 0

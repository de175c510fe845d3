"""NUM-1: NaN and infinite metrics."""

from collections.abc import Sequence

from launcher.health import keys
from launcher.health.clauses import POSITIVE, Clause, Measure
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup
from launcher.health.state import Reading
from launcher.record.levels import CRITICAL, WARN

_SHOWN = 4
_LIMITS = (
    ([(CRITICAL, ">=", 1.0)], Measure("non-finite training metrics", span=POSITIVE)),
    ([(WARN, ">=", 1.0), (CRITICAL, ">=", 2.0)], Measure("recent non-finite gradient norms", span=POSITIVE)),
    ([(WARN, ">=", 1.0)], Measure("other non-finite metrics", span=POSITIVE)),
)


class FiniteNumbers(Rule):
    """Flags NaN and infinity under any training metric."""

    id = "NUM-1"
    also = (keys.POLICY_LOSS, keys.GRADIENT, keys.VALUE_LOSS)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last_norm: int | None = None  # count of the last step on which only grad norms were bad
        self._said = ""  # about the last step that had any

    def judge(self, frame: Frame) -> Reading:
        bad = [key for key in frame.bad if not keys.is_validation(key) and not _by_design(key, frame)]
        if not bad:
            message = f"{self._said}; all are finite now" if self.flag else "all metrics are finite"
            return self.compare(message, lambda limits: _counts())
        training = [key for key in bad if keys.is_training(key)]
        skipped = 0
        if training and all(key.endswith("/grad_norm") for key in training):
            # veRL skips such an update, so one is harmless
            before, self._last_norm = self._last_norm, frame.count
            again = before is not None and frame.count - before <= self.limits.raising["critical.again"]
            skipped, training = 2 if again else 1, []
        named = sorted(bad, key=lambda key: not keys.is_training(key))
        more = f"; {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        self._said = f"non-finite at {self.config.numbering.place(frame.step)}: {'; '.join(named[:_SHOWN])}{more}"
        others = sum(not keys.is_training(key) for key in bad)
        return self.compare(self._said, lambda limits: _counts(len(training), skipped, others))


def _counts(training: int = 0, skipped: int = 0, others: int = 0) -> Sequence[Clause]:
    """The number of non-finite metrics. `skipped`: only gradient norms, now and in the steps before."""
    return [(float(count), *limits) for count, limits in zip((training, skipped, others), _LIMITS, strict=True)]


def _by_design(key: str, frame: Frame) -> bool:
    """Whether veRL marks the metric as invalid at this step, or it is a correlation of constants."""
    correlation = key.endswith("pearson_corr")  # undefined if all probabilities are equal
    if not key.startswith("training/rollout_probs_diff_") and not correlation:
        return False
    return frame.get(keys.PROBS_VALID) == 0 or (correlation and frame.get(keys.PROBS_DIFF) is not None)

"""The one setting that would save most time, with the gain that the spans predict."""

import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.core.tables import read_tables, record
from launcher.metrics.intervals import quantile
from launcher.preset.yaml_text import text_of
from launcher.timing.evidence import Evidence, Row
from launcher.timing.predictors import PREDICTORS
from launcher.verl.config import ENGINE

LEAST = 0.03  # of a step: less is not worth a change
_SURE = 0.95


@dataclass(frozen=True)
class Advice:
    """One change. `saved` are seconds per step, with the interval from `low` to `high`; `seconds` is the step now."""

    id: str
    cause: str
    do: str
    setting: str
    now: str
    seconds: float
    saved: float
    low: float
    high: float
    others: tuple["Advice", ...] = field(default=(), repr=False)

    @property
    def speedup(self) -> float:
        """How many times as fast a step would be."""
        return self.seconds / max(self.seconds - self.saved, 1e-9)

    @property
    def share(self) -> float:
        """The part of the step that it would save."""
        return self.saved / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        told: dict[str, Any] = {
            name: getattr(self, name) for name in ("id", "cause", "do", "setting", "now", "seconds", "saved")
        }
        told |= {"interval": [self.low, self.high], "speedup": self.speedup}
        return told | {"others": [other.to_json() | {"others": []} for other in self.others]}


def rows() -> list[Row]:
    """All rows of advice.toml."""
    return [record(Row, row) for row in read_tables(Path(__file__).with_suffix(".toml"))["advice"]]


def best(evidence: Evidence) -> Advice | None:
    """The change that saves most; the next ones are its `others`. None where none saves `LEAST` of a step."""
    found = [advice for row in rows() if (advice := _advice(row, evidence)) is not None]
    worth = sorted((each for each in found if each.share >= LEAST), key=lambda each: -each.saved)
    if not worth:
        return None
    first, *others = worth
    return Advice(**{**vars(first), "others": tuple(others[:3])})


def _advice(row: Row, evidence: Evidence) -> Advice | None:
    """What a row predicts; None where it does not apply."""
    engine = evidence.config.text(ENGINE)
    if (row.only == "gpu" and evidence.config.on_cpu) or (row.only == "vllm" and engine not in ("vllm", "sglang")):
        return None
    if row.when and text_of(evidence.value(row.key)) != row.when:
        return None
    found = PREDICTORS[row.predictor](row, evidence)
    if found is None or not found.saved or not all(map(math.isfinite, found.saved)):
        return None
    mean = statistics.fmean(found.saved)
    if mean <= 0:
        return None
    spread = statistics.stdev(found.saved) / math.sqrt(len(found.saved)) if len(found.saved) > 1 else mean
    reach = spread * quantile((1 + _SURE) / 2, max(len(found.saved) - 1, 1))
    middle = mean * math.sqrt(row.low * row.high)
    low, high = max(0.0, (mean - reach) * row.low), min((mean + reach) * row.high, evidence.seconds)
    if low <= 0:  # it may save nothing
        return None
    now = text_of(evidence.value(row.key))
    return Advice(
        row.id, row.cause, row.do, f"{row.key}={found.value}", now, evidence.seconds, min(middle, high), low, high
    )

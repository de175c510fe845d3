"""What a prediction is made from, and what it is."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.preset.effective import EffectiveConfig
from launcher.preset.schema import FIELDS
from launcher.record.layout import RunDir
from launcher.timing.anatomy import StepTime
from launcher.timing.size import Size
from launcher.verl.config import GPUS, NODES


def gpus_of(config: EffectiveConfig) -> int:
    """GPUs of a run, or its processes on a CPU."""
    return (config.whole(GPUS) or 1) * (config.whole(NODES) or 1)


@dataclass(frozen=True)
class Row:
    """A row of advice.toml."""

    id: str
    cause: str
    do: str
    key: str
    predictor: str
    stage: str
    low: float = 1.0
    high: float = 1.0
    to: str = ""
    when: str = ""
    only: str = ""
    mini: str = ""
    dynamic: str = ""
    bytes: float = 0.0
    own: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """Recent whole steps with their metrics, the settings of the run, and its GPU: name and memory."""

    run: RunDir
    steps: Sequence[StepTime]
    figures: Mapping[int, Mapping[str, float]]
    config: EffectiveConfig
    model: Size | None
    gpu: str = ""
    gpu_gb: float | None = None

    def value(self, field_name: str) -> Any:
        """The value of a preset field."""
        return self.config.get(FIELDS[field_name].key)

    def number(self, field_name: str) -> float | None:
        """The value of a field that is a positive number."""
        value = self.value(field_name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None

    @property
    def gpus(self) -> int:
        """All that the run has."""
        return gpus_of(self.config)

    @property
    def seconds(self) -> float:
        """The mean step."""
        return statistics.fmean(step.seconds for step in self.steps)

    def stage(self, name: str) -> list[float]:
        """Seconds of a stage in each step."""
        return [step.stages.get(name, 0.0) for step in self.steps]


@dataclass(frozen=True)
class Prediction:
    """The value to set, and the seconds that each step would take less with it."""

    value: str
    saved: Sequence[float]

"""What a console log tells, as events."""

from dataclasses import dataclass
from typing import Any

from launcher.console.lines import Line


@dataclass(frozen=True)
class StepLine:
    """The figures of one step. `line` counts from 1; `offset` is the byte where the line starts.

    A step comes a second time, with more figures, when its line arrived in two parts: the later one is right.
    """

    step: int
    data: dict[str, float]
    line: int
    offset: int
    three_decimals: bool


@dataclass(frozen=True)
class PhaseChange:
    """A phase begins, one of `launcher.console.phases.PHASES`."""

    phase: str
    line: int
    offset: int


@dataclass(frozen=True)
class Progress:
    """veRL's progress bar: steps done and steps in all."""

    step: int
    total: int


@dataclass(frozen=True)
class RolloutCount:
    """How many prompts of the rollout (or validation) are in which state."""

    pending: int
    running: int
    finished: int
    failed: int


@dataclass(frozen=True)
class TotalSteps:
    """The number of steps that this run will make."""

    total: int


@dataclass(frozen=True)
class Resumed:
    """Training goes on from the checkpoint of this step."""

    step: int


@dataclass(frozen=True)
class ConfigDump:
    """The resolved configuration: value by veRL key, such as `actor_rollout_ref.actor.optim.lr`."""

    keys: dict[str, Any]


@dataclass(frozen=True)
class Notable:
    """A line that tells of an error."""

    line: Line


Event = StepLine | PhaseChange | Progress | RolloutCount | TotalSteps | Resumed | ConfigDump | Notable

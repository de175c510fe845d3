"""The x axis of a chart: where a step lies, in steps or in what a run spent until then."""

from typing import Protocol


class Axis(Protocol):
    """Maps the steps of one run to x and back; never falls from one step to the next.

    `unit` is the width of one step where x counts steps, and 0 where x flows.
    """

    @property
    def unit(self) -> float: ...
    def place(self, step: int) -> float:
        """x of a step."""

    def step_at(self, x: float) -> int:
        """The first step at `x` or right of it."""

    def label(self, x: float) -> str:
        """x as a short text."""


class StepAxis:
    """x is the step itself."""

    unit = 1.0

    def place(self, step: int) -> float:
        return step

    def step_at(self, x: float) -> int:
        return -int(-x // 1)

    def label(self, x: float) -> str:
        return f"{x:.0f}"


STEPS = StepAxis()

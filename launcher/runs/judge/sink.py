"""Receivers of a monitor's results."""

from collections.abc import Iterable

from launcher.metrics.records import StepRecord
from launcher.record.events import LevelChange


class Sink:
    """Receives a monitor's results; the default methods drop them."""

    def steps(self, records: list[StepRecord]) -> None:
        """Receives complete steps, in order."""

    def phase(self, phase: str, step: int | None, t: float) -> None:
        """Receives the start of a phase."""

    def health(self, changes: Iterable[LevelChange], t: float) -> None:
        """Receives level changes of rules."""

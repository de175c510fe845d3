"""What receives the results of a monitor."""

from collections.abc import Iterable

from launcher.metrics.records import StepRecord
from launcher.record.events import LevelChange


class Sink:
    """Receives the results of a monitor; methods that a sink does not define drop them."""

    def steps(self, records: list[StepRecord]) -> None:
        """Steps that are complete, in order."""

    def phase(self, phase: str, step: int | None, t: float) -> None:
        """The run entered a phase."""

    def health(self, changes: Iterable[LevelChange], t: float) -> None:
        """Health rules rose or were released."""

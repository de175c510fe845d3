"""Following the steps of a run over all its attempts."""

from collections.abc import Iterator

from launcher.record.layout import AttemptDir, RunDir
from launcher.tail import LineTail


class StepTail:
    """The lines of every attempt's steps.jsonl, as they are written; `attempt` is the newest one seen."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._lines: LineTail | None = None
        self.attempt: AttemptDir | None = None

    def read(self) -> Iterator[tuple[int, bytes]]:
        """What is new: numbers of attempts, and lines of steps."""
        while True:
            number = self.attempt.number if self.attempt else 0
            while self._lines is not None and (lines := self._lines.read()):
                for line in lines:
                    yield number, line
            later = next((found for found in self._run.attempt_numbers() if found > number), None)
            if later is None:
                return
            self.attempt = self._run.attempt(later)
            self._lines = LineTail(self.attempt.steps)

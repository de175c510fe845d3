"""What the detail pane of a check needs beyond state.json: its limits as they are now, and its fixes."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from launcher.console.reader import ConfigDump, ConsoleReader, StepLine
from launcher.files import read_json
from launcher.health.checklist import Checklist
from launcher.health.families import Explanation
from launcher.metrics.records import StepRecord
from launcher.record.layout import AttemptDir, RunDir
from launcher.run.health import checklist_maker, earlier_steps, recorded_sizes
from launcher.run.reading.source import chunks
from launcher.tail import LineTail

_BATCH = 1 << 18  # bytes of steps between two looks whether anybody still wants to know


def _wanted() -> bool:
    return True


class Explainer:
    """A checklist rebuilt from a run's files, read only; `follow` takes it on as the run goes on.

    Limits depend on the run so far, and state.json does not carry them. Judging 10,000 steps takes seconds:
    call `follow` in a thread.
    """

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._attempt = 0
        self._steps: LineTail | None = None
        self._checklist: Checklist | None = None
        self._lock = threading.Lock()  # one who left may still be judging

    def follow(self, wanted: Callable[[], bool] = _wanted) -> bool:
        """Judges what was written since the last call; whether anything was. Gives up when not `wanted`."""
        with self._lock:
            return self._follow(wanted)

    def _follow(self, wanted: Callable[[], bool]) -> bool:
        attempt = self._run.last_attempt()
        if attempt is None:
            return False
        found = attempt.number != self._attempt
        if found:
            self._begin(attempt)
        assert self._checklist is not None and self._steps is not None
        while wanted() and (lines := self._steps.read(_BATCH)):
            found = True
            for line in lines:
                record = StepRecord.from_line(line)
                if record is not None:
                    self._checklist.step(record.step, record.data, t=record.t)
        return found

    def explain(self, rule: str) -> Explanation:
        """The explanation after the steps read so far. Raises UserError for a rule that does not exist."""
        if self._checklist is None:
            return Checklist().explain(rule)
        return self._checklist.explain(rule)

    def _begin(self, attempt: AttemptDir) -> None:
        """A checklist as the supervisor makes it: same keys, settings and sizes, and the earlier steps."""
        launch = read_json(attempt.launch)
        keys = {**(launch.get("keys") or {}), **_printed(attempt)}
        self._checklist = checklist_maker(self._run.read_info(), recorded_sizes(self._run))(keys)
        for record in earlier_steps(self._run, attempt.number, launch.get("resume_step")):
            self._checklist.step(record.step, record.data, t=record.t)
        self._attempt, self._steps = attempt.number, LineTail(attempt.steps)


def _printed(attempt: AttemptDir) -> Mapping[str, Any]:
    """The configuration as veRL printed it, before the first step."""
    if not attempt.console.exists():
        return {}
    reader = ConsoleReader()
    for chunk in chunks(attempt.console):
        for event in reader.feed(chunk):
            if isinstance(event, ConfigDump):
                return event.keys
            if isinstance(event, StepLine):
                return {}
    return {}

"""Steps that veRL went on to print when its supervisor was gone."""

from launcher.files import append_lines
from launcher.metrics.records import StepRecord
from launcher.metrics.timing import seconds_of
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir
from launcher.run.reading.checklist import checklist_maker
from launcher.run.reading.monitor import Monitor, Sink
from launcher.run.reading.recorded import LogClock, read_attempt
from launcher.run.reading.source import records


class _Steps(Sink):
    """A sink that keeps the steps alone."""

    def __init__(self) -> None:
        self.records: list[StepRecord] = []

    def steps(self, records: list[StepRecord]) -> None:
        self.records += records


def catch_up(attempt: AttemptDir) -> int | None:
    """Takes them into steps.jsonl; the last one, None when there were none. Raises OSError."""
    known = {found.step: found for line in records(attempt.steps) if (found := StepRecord.from_line(line))}
    console, metrics = attempt.logs()
    if not (console or metrics):
        return None
    sink = _Steps()
    keys = attempt.read_launch().keys
    monitor = Monitor(sink, checklist_maker(RunInfo(), {}), keys, file_logger=bool(console and metrics))
    read_attempt(monitor, console, metrics, LogClock(console, metrics))
    missed: list[StepRecord] = []
    newest, t = max(known, default=-1), 0.0
    for record in sink.records:
        if record.step in known:
            t = known[record.step].t
        elif record.step > newest:
            t += seconds_of(record.data)  # an estimate: step lines carry no time
            record.t = t or record.t
            missed.append(record)
    append_lines(attempt.steps, [record.to_line() for record in missed])
    return missed[-1].step if missed else None

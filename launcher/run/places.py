"""Where in the console something stands."""

from launcher.metrics.records import StepRecord
from launcher.record.layout import RunDir
from launcher.tail import LineTail


def place_of_step(run: RunDir, step: int) -> tuple[int, int] | None:
    """The newest attempt that printed a step, and the byte of its console.log where the line starts."""
    hint = b'"step":%d,' % step
    for number in reversed(run.attempt_numbers()):
        steps = LineTail(run.attempt(number).steps)
        while lines := steps.read():
            for line in lines:
                record = StepRecord.from_line(line) if hint in line else None
                if record is not None and record.step == step and record.log_offset is not None:
                    return number, record.log_offset
    return None

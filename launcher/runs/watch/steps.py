"""The steps of a run over all its attempts, or of a log."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from launcher.core import paths
from launcher.core.tail import LineTail
from launcher.metrics.records import StepRecord, parse_record
from launcher.record.info import Origin
from launcher.record.layout import AttemptDir, RunDir
from launcher.runs.watch.source import LogFile, chunks, records


class StepTail:
    """The lines of every attempt's steps.jsonl, as they are written; `attempt` is the newest one seen."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self._lines: LineTail | None = None
        self.attempt: AttemptDir | None = None

    def read(self) -> Iterator[tuple[int, list[bytes]]]:
        """What is new: numbers of attempts, and some lines of steps of each."""
        while True:
            number = self.attempt.number if self.attempt else 0
            while self._lines is not None and (lines := self._lines.read()):
                yield number, lines
            later = next((found for found in self.run.attempt_numbers() if found > number), None)
            if later is None:
                return
            self.attempt = self.run.attempt(later)
            self._lines = LineTail(self.attempt.steps)


def steps(source: RunDir | LogFile) -> Iterator[tuple[int, StepRecord]]:
    """Every step of every attempt, with the attempt's number."""
    if isinstance(source, RunDir):
        for number in source.attempt_numbers():
            for line in records(source.attempt(number).steps):
                if (record := StepRecord.from_line(line)) is not None:
                    yield number, record
    elif source.file_logger:
        for line in records(source.path):
            if (found := parse_record(line)) is not None:
                yield 1, StepRecord(found[0], 0.0, None, found[1])
    else:
        yield from _of_console(source.path)


def _of_console(path: Path) -> Iterator[tuple[int, StepRecord]]:
    from launcher.console.reader import ConsoleReader, StepLine  # its patterns take longer than the rest of this module

    def logged(events: Iterable[object]) -> Iterator[tuple[int, StepRecord]]:
        for event in events:
            if isinstance(event, StepLine):
                yield 1, StepRecord(event.step, 0.0, event.offset, event.data)

    reader = ConsoleReader()
    for chunk in chunks(path):
        yield from logged(reader.feed(chunk))
    yield from logged(reader.close())


def earlier_steps(run: RunDir, attempt: int, resume_step: int | None) -> list[StepRecord]:
    """Steps of the attempts before `attempt`, up to the checkpoint that it continues from.

    Those of a fork go on from its parent's, and so on.
    """
    if resume_step is None:
        return []
    kept: dict[int, StepRecord] = {}
    seen: set[str] = set()  # a damaged run.yaml may name its own run
    before: RunDir | None = run
    while before is not None and before.id not in seen:
        seen.add(before.id)
        found = {each.step: each for number, each in steps(before) if number < attempt and each.step <= resume_step}
        kept = found | kept
        parent = before.read_info().parent
        attempt, resume_step = sys.maxsize, min(resume_step, parent.step or 0) if parent else 0
        before = parent_of(parent)
    return [kept[step] for step in sorted(kept)]


def inherited_steps(run: RunDir) -> list[StepRecord]:
    """The steps that a fork goes on from: its parent's up to the fork, those that this one goes on from, and so on."""
    parent = run.read_info().parent
    before = parent_of(parent)
    return earlier_steps(before, sys.maxsize, parent.step) if before and parent else []


def parent_of(parent: Origin | None) -> RunDir | None:
    """The run of a fork's parent; None where it has none, or it was deleted."""
    run = RunDir(paths.runs_dir() / Path(parent.run).name) if parent is not None else None
    return run if run is not None and run.run_yaml.exists() else None


def place_of_step(run: RunDir, step: int) -> tuple[int, int] | None:
    """The newest attempt that printed a step, and the byte of its console.log where the line starts."""
    hint = b'"step":%d,' % step
    for number in reversed(run.attempt_numbers()):
        for line in records(run.attempt(number).steps):
            record = StepRecord.from_line(line) if hint in line else None
            if record is not None and record.step == step and record.log_offset is not None:
                return number, record.log_offset
    return None

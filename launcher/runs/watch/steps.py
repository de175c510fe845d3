"""The steps of a run over all attempts, or of a log."""

import dataclasses
import re
import statistics
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from launcher.core import paths
from launcher.core.tail import LineTail, records
from launcher.health import keys
from launcher.metrics import names
from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore
from launcher.record.info import Origin
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.numbering import Numbering
from launcher.record.state import RunState, stored
from launcher.runs.watch.log import Log


class StepTail:
    """The lines of every attempt's steps.jsonl as they are written; `attempt`: the newest one seen."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self._lines: LineTail | None = None
        self.attempt: AttemptDir | None = None

    def read(self) -> Iterator[tuple[int, list[bytes]]]:
        """New lines, by attempt number."""
        while True:
            number = self.attempt.number if self.attempt else 0
            while self._lines is not None and (lines := self._lines.read()):
                yield number, lines
            later = next((found for found in self.run.attempt_numbers() if found > number), None)
            if later is None:
                return
            self.attempt = self.run.attempt(later)
            self._lines = LineTail(self.attempt.steps)


def steps(source: RunDir | Log) -> Iterator[tuple[int, StepRecord]]:
    """Every step of every attempt, with the attempt's number."""
    if isinstance(source, Log):
        yield from ((1, record) for record in source.steps())
        return
    for number in source.attempt_numbers():
        for line in records(source.attempt(number).steps):
            if (record := StepRecord.from_line(line)) is not None:
                yield number, record


def numbering_of(source: RunDir | Log) -> Numbering:
    """The step numbers of the lines of a run or log."""
    return source.numbering if isinstance(source, Log) else (stored(source) or RunState("")).numbering


def shown_steps(source: RunDir | Log) -> tuple[Numbering, list[tuple[int, StepRecord]]]:
    """The steps as they are shown: with the numbers of steps, if known, and what they count."""
    numbering, found = numbering_of(source), list(steps(source))
    for _, record in found:
        record.step = numbering.step(record.step)
    return numbering, found


def earlier_steps(run: RunDir, attempt: int, resume_step: int | None) -> list[StepRecord]:
    """The steps that `attempt` continues: of earlier attempts up to its checkpoint; for a fork, its parent's first."""
    if resume_step is None:
        return []
    kept: dict[int, StepRecord] = {}
    seen: set[str] = set()  # a damaged run.yaml may name its own run
    before: RunDir | None = run
    while before is not None and before.id not in seen:
        seen.add(before.id)
        own = {each.step: each for number, each in steps(before) if number < attempt and each.step <= resume_step}
        kept = own | kept
        parent = before.read_info().parent
        attempt, resume_step = sys.maxsize, min(resume_step, parent.step or 0) if parent else 0
        before = parent_of(parent)
    return [kept[step] for step in sorted(kept)]


def inherited_steps(run: RunDir) -> list[StepRecord]:
    """The steps that a fork continues: its parent's up to the fork, recursively."""
    parent = run.read_info().parent
    before = parent_of(parent)
    return earlier_steps(before, sys.maxsize, parent.step) if before and parent else []


def parent_of(parent: Origin | None) -> RunDir | None:
    """The parent run of a fork; None without one, or if deleted."""
    run = RunDir(paths.runs_dir() / Path(parent.run).name) if parent is not None else None
    return run if run is not None and run.run_yaml.exists() else None


def place_of_step(run: RunDir, step: int) -> tuple[int, int] | None:
    """The newest attempt that printed a step, and the byte offset of the line in its console.log."""
    hint = b'"step":%d,' % step
    for number in reversed(run.attempt_numbers()):
        for line in records(run.attempt(number).steps):
            record = StepRecord.from_line(line) if hint in line else None
            if record is not None and record.step == step and record.log_offset is not None:
                return number, record.log_offset
    return None


_STEP = re.compile(rb'\{"step":(\d+),')
_VALIDATED = re.compile(rb'"val-core/[^"]*/(?:acc|reward)/mean@\d+":([-+.\de]+)')
_VALUES = [(key, b'"%s":' % key.encode()) for key in names.SCORE]


class Scores:
    """Follows only the scores; values of a resumed attempt replace those of repeated steps.

    For a run that only validates (`ppo-tui eval`), the best score is the validation's.
    """

    def __init__(self, run: RunDir) -> None:
        self.series = Series()
        self._validated: float | None = None
        self._tail = StepTail(run)

    @classmethod
    def elsewhere(cls, run: RunDir, best: float | None) -> "Scores":
        """The scores of a run on another machine, which reports only its best score."""
        scores = cls(run)
        scores._validated = best
        return scores

    def poll(self) -> bool:
        """Reads new lines; returns whether there was a score."""
        fresh = False
        for line in chain.from_iterable(lines for _, lines in self._tail.read()):
            score = _score(line)
            if score is not None:
                step, value = score
                if self.series.steps and step <= self.series.steps[-1]:
                    self.series.cut(step)
                self.series.append(step, value)
                fresh = True
            elif not self.series.steps and (validated := _VALIDATED.search(line)):
                self._validated = float(validated[1])
        return fresh

    def put_into(self, state: RunState) -> RunState:
        """`state` with best and last score, as far as read."""
        return dataclasses.replace(state, best_score=self.best, last_score=self.series.last)

    @property
    def best(self) -> float | None:
        """The highest finite score; None without one."""
        steps = self.series.steps
        if not steps:
            return self._validated
        span = self.series.span(steps[0], steps[-1])
        return span.high if span else None


def scored(run: RunDir, state: RunState) -> RunState:
    """`state` with best and last score of the steps on disk."""
    scores = Scores(run)
    scores.poll()
    return scores.put_into(state)


def best_and_last(run: RunDir, state: RunState) -> tuple[float | None, float | None]:
    """Best and last score, from state.json or, for runs of an earlier ppo-tui, from the steps."""
    if state.best_score is None or state.last_score is None:
        state = scored(run, state)
    return state.best_score, state.last_score


def validation(store: SeriesStore) -> Series | None:
    """The mean over the headline scores per validation, as in VAL-1; None without any."""
    logged = [series for key in filter(keys.is_validation_score, store.keys()) if (series := store.get(key))]
    if len(logged) < 2:
        return logged[0] if logged else None
    scores: dict[int, list[float]] = {}
    for series in logged:
        for step, value in zip(series.steps, series.values, strict=True):
            scores.setdefault(step, []).append(value)
    mean = Series()
    for step in sorted(scores):
        mean.append(step, statistics.fmean(scores[step]))
    return mean


def _score(line: bytes) -> tuple[int, float] | None:
    """Step and score of a line of steps.jsonl; 2 µs for lines of our own writer."""
    step = _STEP.match(line)
    for key, label in _VALUES:
        at = line.find(label)
        if at < 0:
            continue
        end = line.find(b",", at)
        text = line[at + len(label) : end if end >= 0 else len(line)]
        try:
            return int(step[1]), float(text.strip(b'"}'))  # type: ignore[index]
        except (TypeError, ValueError):  # written by another program
            record = StepRecord.from_line(line)
            return (record.step, record.data[key]) if record and key in record.data else None
    return None

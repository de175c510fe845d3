"""The scores of a run: of its steps alone, for a list of hundreds of runs, and of its validations."""

import dataclasses
import re
import statistics
from itertools import chain

from launcher.health import keys
from launcher.metrics import names
from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore
from launcher.record.layout import RunDir
from launcher.record.state import RunState
from launcher.runs.watch.steps import StepTail

_STEP = re.compile(rb'\{"step":(\d+),')
_VALIDATED = re.compile(rb'"val-core/[^"]*/(?:acc|reward)/mean@\d+":([-+.\de]+)')
_VALUES = [(key, b'"%s":' % key.encode()) for key in names.SCORE]


class Scores:
    """Follows the score of each step and no other figure; where a resumed attempt repeats steps, its values hold.

    Of a run that only validates (`ppo-tui eval`) the validation's score is the best one.
    """

    def __init__(self, run: RunDir) -> None:
        self.series = Series()
        self._validated: float | None = None
        self._tail = StepTail(run)

    @classmethod
    def elsewhere(cls, run: RunDir, best: float | None) -> "Scores":
        """Of a run of another machine, which tells its best score alone."""
        found = cls(run)
        found._validated = best
        return found

    def poll(self) -> bool:
        """Reads what is new; whether a score was."""
        found = False
        for line in chain.from_iterable(lines for _, lines in self._tail.read()):
            score = _score(line)
            if score is not None:
                step, value = score
                if self.series.steps and step <= self.series.steps[-1]:
                    self.series.cut(step)
                self.series.append(step, value)
                found = True
            elif not self.series.steps and (validated := _VALIDATED.search(line)):
                self._validated = float(validated[1])
        return found

    def put_into(self, state: RunState) -> RunState:
        """`state` with the best and the last score, as far as steps were read."""
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
    """`state` with the best and the last score of the steps on disk."""
    scores = Scores(run)
    scores.poll()
    return scores.put_into(state)


def best_and_last(run: RunDir, state: RunState) -> tuple[float | None, float | None]:
    """The best and the last score: as state.json has them, or read from the steps of a run of an earlier ppo-tui."""
    if state.best_score is None or state.last_score is None:
        state = scored(run, state)
    return state.best_score, state.last_score


def validation(store: SeriesStore) -> Series | None:
    """The mean over the headline scores of each validation, as VAL-1 judges it; None without any."""
    found = [series for key in filter(keys.is_validation_score, store.keys()) if (series := store.get(key))]
    if len(found) < 2:
        return found[0] if found else None
    scores: dict[int, list[float]] = {}
    for series in found:
        for step, value in zip(series.steps, series.values, strict=True):
            scores.setdefault(step, []).append(value)
    mean = Series()
    for step in sorted(scores):
        mean.append(step, statistics.fmean(scores[step]))
    return mean


def _score(line: bytes) -> tuple[int, float] | None:
    """Step and score of a line of steps.jsonl; of one that our own writer wrote in 2 µs."""
    step = _STEP.match(line)
    for key, label in _VALUES:
        at = line.find(label)
        if at < 0:
            continue
        end = line.find(b",", at)
        text = line[at + len(label) : end if end >= 0 else len(line)]
        try:
            return int(step[1]), float(text.strip(b'"}'))  # type: ignore[index]
        except (TypeError, ValueError):  # somebody else wrote it
            record = StepRecord.from_line(line)
            return (record.step, record.data[key]) if record and key in record.data else None
    return None

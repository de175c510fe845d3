"""Runs next to each other: their results and differing settings."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from launcher.core.errors import UserError
from launcher.core.format import counted, duration, number
from launcher.health import keys
from launcher.metrics import names
from launcher.metrics.records import StepRecord, jsonable
from launcher.metrics.store import Series, SeriesStore
from launcher.metrics.timing import seconds_of
from launcher.preset.yaml_text import shown
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, all_runs, find
from launcher.record.note import read_note
from launcher.record.state import RunState, current
from launcher.runs.watch import check_words
from launcher.runs.watch.history import elapsed
from launcher.runs.watch.run_settings import Difference, compared_settings, foreign, settings
from launcher.runs.watch.steps import StepTail, numbering_of

FEWEST, MOST, MOST_TAGGED = 2, 8, 64
_NONE = "–"
_VERSIONS = "versions."
_STEP_SECONDS = ("perf/time_per_step", "timing_s/step")
_TOKENS = "perf/total_num_tokens"
_DRIFTS = (*names.KL, *names.STALENESS, *names.PPO_KL, *names.CLIPPED)
_KEYS = frozenset((*names.SCORE, *_DRIFTS, *names.ENTROPY, *names.THROUGHPUT, *keys.LENGTH, *_STEP_SECONDS, _TOKENS))


def _compared(key: str) -> bool:
    return key in _KEYS or keys.is_validation_score(key)


@dataclass(frozen=True)
class RunResults:
    """The results of a run. Values are from the last step that has them; None without any.

    `line`: the last logged line, if the step is unknown. `kl_key`: the KL metric of `kl`, as estimates differ.
    `throughput`: tokens per second and GPU. `duration`: seconds of all attempts with their start. `step_seconds`:
    median duration of a step.
    """

    run: str
    name: str
    state: str
    outcome: str | None
    verdict: str | None
    step: int | None
    line: int | None
    total: int | None
    best_score: float | None
    last_score: float | None
    kl: float | None
    kl_key: str | None
    entropy: float | None
    throughput: float | None
    duration: float | None
    step_seconds: float | None

    @property
    def at(self) -> str:
        """`60/80`, `60`, `line 12`."""
        if self.step is None:
            return _NONE if self.line is None else f"line {self.line}"
        return f"{self.step}/{self.total}" if self.total else str(self.step)

    def to_json(self) -> Mapping[str, object]:
        """For `--json`; nan and infinities are the strings "nan", "inf", "-inf"."""
        fields = asdict(self)
        return fields | jsonable({key: value for key, value in fields.items() if isinstance(value, float)})


def find_runs(
    words: Sequence[str], note: Callable[[str], None] | None = None, files: Callable[[Path], RunDir] | None = None
) -> list[RunDir]:
    """The runs to compare: two to eight, each once; `note` as in `find`. Raises UserError."""
    if not FEWEST <= len(words) <= MOST:
        raise UserError(f"compare expects {FEWEST} to {MOST} runs, not {len(words)}", "'ppo-tui list' lists the runs")
    runs = [files(Path(word)) if files and Path(word).is_file() else find(word, note) for word in words]
    paths = [run.path for run in runs]
    for index, word in enumerate(words):
        if paths[index] in paths[:index]:
            raise UserError(f"'{word}' is run {runs[index].id}, which is listed twice", "name each run once")
    return runs


def tagged(tag: str) -> list[RunDir]:
    """The runs with a tag, oldest first. Raises UserError for fewer than two or more than 64."""
    runs = [run for run in reversed(all_runs()) if tag.removeprefix("#") in read_note(run.note).tags]
    if not FEWEST <= len(runs) <= MOST_TAGGED:
        raise UserError(
            f"tag #{tag.removeprefix('#')}: {counted(len(runs), 'run')}, but compare expects {FEWEST} to {MOST_TAGGED}",
            "'ppo-tui list --json' shows the tags",
        )
    return runs


class Compared:
    """One run of a comparison: its settings, metrics and state.

    `info`: run.yaml with the preset merged with the newest resume's settings (`resumed`). `store`: only the compared
    metrics.
    """

    def __init__(self, run: RunDir) -> None:
        self.run, self.store = run, SeriesStore()
        self.info, self.resumed = compared_settings(run)
        self._tail = StepTail(run)
        self._spans: dict[int, tuple[float, float]] = {}  # attempt: begin and end of its steps

    def poll(self) -> bool:
        """Reads new data. Returns whether there were new steps."""
        fresh, numbering = False, numbering_of(self.run)
        for attempt, lines in self._tail.read():
            for record in filter(None, map(StepRecord.from_line, lines)):
                fresh = True
                begin = record.t - seconds_of(record.data)
                record.step = numbering.step(record.step)
                self._spans[attempt] = (self._spans.get(attempt, (begin, 0.0))[0], record.t)
                record.data = {key: value for key, value in record.data.items() if _compared(key)}
                self.store.add(record, attempt)
        return fresh

    def facts(self) -> RunResults:
        """The results of the run, from the steps read so far."""
        run, state = self.run, current(self.run)
        seconds = elapsed(run, state, self._spans, now=state.updated)
        return summary(run.id, self.info, state, self.store, seconds)


def summary(run: str, info: RunInfo, state: RunState, store: SeriesStore, seconds: float | None) -> RunResults:
    """The results of a run, from its directory."""

    def of(keys: Sequence[str]) -> tuple[str | None, Series]:
        return store.first_of(*keys) or (None, Series())

    (_, score), (kl_key, kl) = of(names.SCORE), of(names.KL)
    paces = [seconds for seconds in of(_STEP_SECONDS)[1].values if math.isfinite(seconds)]
    span = score.span(0, score.steps[-1]) if score.steps else None
    return RunResults(
        run=run,
        name=info.name or run,
        state=state.state,
        outcome=state.outcome,
        verdict=state.verdict,
        step=store.last_step if state.numbering.every else None,
        line=None if state.numbering.every else store.last_step,
        total=state.total,
        best_score=span.high if span else None,
        last_score=score.last,
        kl=kl.last,
        kl_key=kl_key,
        entropy=of(names.ENTROPY)[1].last,
        throughput=of(names.THROUGHPUT)[1].last,
        duration=seconds,
        step_seconds=statistics.median(paces) if paces else None,
    )


def notes(compared: Sequence[Compared]) -> list[str]:
    """Caveats about the compared settings."""
    lines = []
    for each in compared:
        if each.info.preset is None:
            none = "shows no settings in its log; they" if each.info.from_log else "has no preset; its settings"
            lines.append(f"run {each.run.id} {none} are not compared")
        elif foreign(each.info):
            lines.append(f"run {each.run.id} is of another framework; only settings that all runs have are compared")
        elif each.info.from_log:
            lines.append(
                f"run {each.run.id} was made elsewhere; its settings are taken from its log and veRL's defaults"
            )
        elif each.resumed:
            resumed = " ".join(each.resumed)
            lines.append(f"run {each.run.id} was resumed with {resumed}; its settings since then are compared")
    return lines


def fact_rows(facts: Sequence[RunResults]) -> list[list[str]]:
    """The results as rows of words, one column per run."""
    rows = [
        ["RUN", *(fact.run for fact in facts)],
        ["state", *(check_words.state_word(fact.state, fact.outcome) for fact in facts)],
        ["verdict", *(check_words.shown(fact.state, fact.verdict) for fact in facts)],
        ["step", *(fact.at for fact in facts)],
        ["best score", *(number(fact.best_score) for fact in facts)],
        ["last score", *(number(fact.last_score) for fact in facts)],
        ["KL", *(number(fact.kl) for fact in facts)],
        ["entropy", *(number(fact.entropy) for fact in facts)],
        ["tokens/s", *(number(fact.throughput) for fact in facts)],
        ["s/step", *(number(fact.step_seconds) for fact in facts)],
        ["duration", *(duration(fact.duration) for fact in facts)],
    ]
    if len({fact.kl_key for fact in facts if fact.kl_key}) > 1:
        rows.insert(7, ["KL key", *(fact.kl_key or _NONE for fact in facts)])
    return rows


def difference_rows(runs: Sequence[RunDir], changes: Sequence[Difference]) -> list[list[str]]:
    """The differences as rows of words, one column per run; unset values show their defaults."""
    heading = ["SETTING", *(run.id for run in runs)]
    return [heading, *([entry.key, *(shown(value) for value in entry.values)] for entry in changes)]


class Band(NamedTuple):
    """Mean, minimum and maximum over several runs at their common steps."""

    mean: Series
    low: Series
    high: Series


def groups(infos: Sequence[RunInfo]) -> list[int]:
    """The group of each run, numbered from 0 in order; a run without a preset, or of another framework, is alone."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(_alike(info, place), len(numbers)) for place, info in enumerate(infos)]


def _alike(info: RunInfo, place: int) -> object:
    if info.preset is None or foreign(info):
        return place
    known = settings(info).items()
    return frozenset(
        (key, repr(value)) for key, value in known if not key.endswith("seed") and not key.startswith(_VERSIONS)
    )


def band(runs: Sequence[Series]) -> Band:
    """The values of several runs per step, without steps at which a run lacks a finite value."""
    result = Band(Series(), Series(), Series())
    steps = set(runs[0].steps).intersection(*(run.steps for run in runs[1:]))
    for step in sorted(steps):
        values = [value for run in runs if (value := run.at(step)) is not None and math.isfinite(value)]
        if len(values) == len(runs):
            result.mean.append(step, math.fsum(values) / len(values))
            result.low.append(step, min(values))
            result.high.append(step, max(values))
    return result

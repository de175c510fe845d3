"""Runs side by side: how each went, and which settings differ."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from launcher.core.errors import UserError
from launcher.core.format import duration, number
from launcher.health import keys, verdict
from launcher.metrics import names
from launcher.metrics.records import StepRecord, jsonable
from launcher.metrics.store import Series, SeriesStore
from launcher.metrics.timing import seconds_of
from launcher.preset.yaml_text import shown
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, all_runs, find
from launcher.record.note import read_note
from launcher.record.state import RunState, current
from launcher.runs.watch.history import elapsed
from launcher.runs.watch.run_settings import Difference, last_settings, settings
from launcher.runs.watch.steps import StepTail

FEWEST, MOST, MOST_TAGGED = 2, 8, 64
_NONE = "–"
_STEP_SECONDS = ("perf/time_per_step", "timing_s/step")
_TOKENS = "perf/total_num_tokens"
_DRIFTS = (*names.KL, *names.STALENESS, *names.PPO_KL, *names.CLIPPED)
_KEYS = frozenset((*names.SCORE, *_DRIFTS, *names.ENTROPY, *names.THROUGHPUT, *keys.LENGTH, *_STEP_SECONDS, _TOKENS))


def _compared(key: str) -> bool:
    return key in _KEYS or keys.is_validation_score(key)


@dataclass(frozen=True)
class Facts:
    """How a run went. Figures are those of the last step that has them; None where none has.

    `kl_key` names which of veRL's KL figures `kl` is: they estimate differently. `throughput` is tokens a
    second and GPU, `duration` the seconds that all attempts took, their start-up included, `step_seconds` the
    median of those that a step took.
    """

    run: str
    name: str
    state: str
    outcome: str | None
    verdict: str | None
    step: int | None
    total: int | None
    best_score: float | None
    last_score: float | None
    kl: float | None
    kl_key: str | None
    entropy: float | None
    throughput: float | None
    duration: float | None
    step_seconds: float | None

    def to_json(self) -> dict[str, Any]:
        """For `--json`; nan and infinities are the strings "nan", "inf", "-inf"."""
        found = asdict(self)
        return found | jsonable({key: value for key, value in found.items() if isinstance(value, float)})


def find_runs(words: Sequence[str]) -> list[RunDir]:
    """The runs that are compared: two to eight, each once. Raises UserError."""
    if not FEWEST <= len(words) <= MOST:
        raise UserError(f"compare expects {FEWEST} to {MOST} runs, not {len(words)}", "'ppo-tui runs' lists the runs")
    runs = [find(word) for word in words]
    ids = [run.id for run in runs]
    for index, word in enumerate(words):
        if ids[index] in ids[:index]:
            raise UserError(f"'{word}' is run {ids[index]}, which is listed twice", "name each run once")
    return runs


def tagged(tag: str) -> list[RunDir]:
    """The runs with a tag, the oldest first. Raises UserError for fewer than two, or more than 64."""
    found = [run for run in reversed(all_runs()) if tag.removeprefix("#") in read_note(run.note).tags]
    if not FEWEST <= len(found) <= MOST_TAGGED:
        raise UserError(
            f"{len(found)} runs have the tag #{tag.removeprefix('#')}, but compare expects {FEWEST} to {MOST_TAGGED}",
            "'ppo-tui runs --json' shows the tags",
        )
    return found


class Compared:
    """One run of a comparison: what it was asked for, its figures, and how it goes.

    `info` is run.yaml with the settings that the newest attempt was resumed with laid over the preset;
    `resumed` are those settings. `store` holds the compared figures alone.
    """

    def __init__(self, run: RunDir) -> None:
        self.run, self.store = run, SeriesStore()
        self.info, self.resumed = last_settings(run)
        self._tail = StepTail(run)
        self._spans: dict[int, tuple[float, float]] = {}  # attempt: begin and end of its steps

    def poll(self) -> bool:
        """Reads what is new; whether a step was."""
        found = False
        for attempt, lines in self._tail.read():
            for record in filter(None, map(StepRecord.from_line, lines)):
                found = True
                begin = record.t - seconds_of(record.data)
                self._spans[attempt] = (self._spans.get(attempt, (begin, 0.0))[0], record.t)
                record.data = {key: value for key, value in record.data.items() if _compared(key)}
                self.store.add(record, attempt)
        return found

    def facts(self) -> Facts:
        """How the run went, by the steps read so far."""
        run, state = self.run, current(self.run)
        seconds = elapsed(run, state, self._spans, now=state.updated)
        return summary(run.id, self.info, state, self.store, seconds)


def facts(run: RunDir) -> Facts:
    """Reads how a run went."""
    compared = Compared(run)
    compared.poll()
    return compared.facts()


def summary(run: str, info: RunInfo, state: RunState, store: SeriesStore, seconds: float | None) -> Facts:
    """The facts of a run from what its directory holds."""
    score, kl = store.first_of(*names.SCORE), store.first_of(*names.KL)
    entropy, throughput = store.first_of(*names.ENTROPY), store.first_of(*names.THROUGHPUT)
    pace = store.first_of(*_STEP_SECONDS)
    paces = [seconds for seconds in pace[1].values if math.isfinite(seconds)] if pace else []
    span = score[1].span(0, score[1].steps[-1]) if score else None
    return Facts(
        run=run,
        name=info.name or run,
        state=state.state,
        outcome=state.outcome,
        verdict=state.verdict,
        step=store.last_step,
        total=state.total,
        best_score=span.high if span else None,
        last_score=score[1].last if score else None,
        kl=kl[1].last if kl else None,
        kl_key=kl[0] if kl else None,
        entropy=entropy[1].last if entropy else None,
        throughput=throughput[1].last if throughput else None,
        duration=seconds,
        step_seconds=statistics.median(paces) if paces else None,
    )


def notes(compared: Sequence[Compared]) -> list[str]:
    """Caveats about the compared settings."""
    found = []
    for each in compared:
        if each.info.preset is None:
            found.append(f"run {each.run.id} has no preset; its settings are not compared")
        elif each.info.from_log:
            found.append(
                f"run {each.run.id} was made elsewhere; its settings are taken from its log and veRL's defaults"
            )
        elif each.resumed:
            resumed = " ".join(each.resumed)
            found.append(f"run {each.run.id} was resumed with {resumed}; its settings since then are compared")
    return found


def fact_rows(found: Sequence[Facts]) -> list[list[str]]:
    """The facts as rows of words, one column a run."""
    rows = [
        ["RUN", *(fact.run for fact in found)],
        ["state", *(f"{fact.state} ({fact.outcome})" if fact.outcome else fact.state for fact in found)],
        ["verdict", *(verdict.shown(fact.state, fact.verdict) for fact in found)],
        ["step", *(f"{_NONE if fact.step is None else fact.step}/{fact.total or _NONE}" for fact in found)],
        ["best score", *(number(fact.best_score) for fact in found)],
        ["last score", *(number(fact.last_score) for fact in found)],
        ["KL", *(number(fact.kl) for fact in found)],
        ["entropy", *(number(fact.entropy) for fact in found)],
        ["tokens/s", *(number(fact.throughput) for fact in found)],
        ["s/step", *(number(fact.step_seconds) for fact in found)],
        ["duration", *(duration(fact.duration) for fact in found)],
    ]
    if len({fact.kl_key for fact in found if fact.kl_key}) > 1:
        rows.insert(7, ["KL key", *(fact.kl_key or _NONE for fact in found)])
    return rows


def difference_rows(runs: Sequence[RunDir], found: Sequence[Difference]) -> list[list[str]]:
    """The differences as rows of words, one column a run; a value that is not set is its default."""
    heading = ["SETTING", *(run.id for run in runs)]
    return [heading, *([entry.key, *(shown(value) for value in entry.values)] for entry in found)]


_VERSIONS = "versions."


class Band(NamedTuple):
    """Mean, lowest and highest value of several runs at the steps that all of them have."""

    mean: Series
    low: Series
    high: Series


def groups(infos: Sequence[RunInfo]) -> list[int]:
    """The group of each run, counted from 0 in the order of the runs; one without a preset is alone."""
    found: dict[object, int] = {}
    return [found.setdefault(_alike(info, place), len(found)) for place, info in enumerate(infos)]


def _alike(info: RunInfo, place: int) -> object:
    if info.preset is None:
        return place
    known = settings(info).items()
    return frozenset(
        (key, repr(value)) for key, value in known if not key.endswith("seed") and not key.startswith(_VERSIONS)
    )


def band(runs: Sequence[Series]) -> Band:
    """The values of several runs, step by step; a step is left out that one of them has no finite value of."""
    found = Band(Series(), Series(), Series())
    steps = set(runs[0].steps).intersection(*(run.steps for run in runs[1:]))
    for step in sorted(steps):
        values = [value for run in runs if (value := run.at(step)) is not None and math.isfinite(value)]
        if len(values) == len(runs):
            found.mean.append(step, math.fsum(values) / len(values))
            found.low.append(step, min(values))
            found.high.append(step, max(values))
    return found

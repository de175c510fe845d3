"""Numbers that stand in one line agree, at every step of every recorded run (tests/data/bank), by `said_numbers`."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from said_forms import wrong
from said_numbers import Past, Shown

from launcher.health.checklist import Checklist
from launcher.metrics.names import charts
from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
from launcher.record.levels import Level
from launcher.record.state import RunState
from tui.kit.charts.figures import plot

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[2] / "bench"
BIG = pytest.mark.nightly(
    "launcher/health/", "launcher/metrics/", "tui/kit/charts/", "bench/health_bank.py", "tests/support/said_"
)
PARTS = [*(pytest.param(half, 3, marks=BIG) for half in ("calibration", "unseen")), ("gpu", 1), ("judged", 1)]


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("health_bank")


def judged(bank: Any, half: str) -> Iterator[tuple[str, Past, SeriesStore, Checklist, bool]]:
    """Each step of each run of a part of the bank, judged, and whether the level of a rule changed there."""
    for run in bank.runs(half):
        checklist = Checklist(run.config, host_total_gb=bank.HOST_GB, vocabulary=run.vocabulary, clock=False)
        past, store = Past(run.config), SeriesStore()
        for step, t, data in run.known:
            changed = bool(checklist.step(step, data, t=t))
            past.see(step, data)
            store.add(StepRecord(step, t, None, data), 1)
            yield f"{run.name}, step {step}", past, store, checklist, changed


_HEAD = re.compile(r"(\S+) (?:([↑↓])|\s) ?\s*(?:(best|usual|start) (\S+))?.*")


@pytest.mark.parametrize(("half", "every"), PARTS)
def test_every_number_of_every_message_and_chart_follows_from_the_metrics(bank: Any, half: str, every: int) -> None:
    """Where a level changes, and at one in so many steps. The length is read first, as others say × its usual value."""
    found, read, headings, arrows = list[str](), 0, 0, 0
    for place, past, store, checklist, changed in judged(bank, half):
        rows = checklist.checks() if changed or len(past.steps) % every == 0 else []
        for row in sorted(rows, key=lambda row: row.rule != "LEN-1"):
            if row.level >= Level.OK:
                read += 1
                found += [f"{place}, {row.level}: {each}" for each in wrong(row.rule, row.message, past)]
        if len(past.steps) % 5 == 0:
            for heading, arrow in headings_of(place, past, store, checklist):
                headings, arrows = headings + heading, arrows + arrow
    assert read > 10_000
    assert not found[:20]
    assert headings > 500 and arrows > 100


def headings_of(place: str, past: Past, store: SeriesStore, checklist: Checklist) -> Iterator[tuple[bool, bool]]:
    """Arrows of charts point away from the number beside them; the usual value and the start are those that the
    messages of the same step name. Yields whether a heading has such a number, and an arrow."""
    state = RunState(state="running", checks=tuple(checklist.checks()))
    for figure in charts(store):
        shown = plot(figure, store, state, [])
        text = " ".join("".join(part for part, _ in row) for row in shown.headline)
        if not shown.curves or (found := _HEAD.fullmatch(text)) is None or found[3] is None:
            continue
        value, arrow, word, other = Shown.of(found[1]), found[2], found[3], Shown.of(found[4])
        where = f"{place}, {figure.title}: {text}"
        if arrow == "↓":
            assert value.low < other.low, where
        if arrow == "↑" and word != "best":
            assert value.low > other.low, where
        if word == "best":
            assert value.low <= other.low, where
        if word == "start":
            assert other.is_(past.values(*figure.keys)[0]), where
        yield True, arrow is not None

"""The rows of tests/data/rules.toml: a run's logged values, and the level of one health rule after each step.

A series is a list of values: `x×n` n times, `a..b×n` and `a~b×n` n values between the two by equal steps or factors,
`-` none. A single value without `×` holds for all steps. `first`: number of the first step.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import health_bank
import tomllib

from launcher.health.checklist import Checklist
from launcher.metrics.names import charts
from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
from launcher.record.levels import Level
from launcher.record.state import RunState
from tui.kit.charts.figures import plot

TABLE = Path(__file__).parents[1] / "data" / "rules.toml"


def rows() -> list[tuple[str, dict[str, Any]]]:
    """Rule and row."""
    return [(rule, row) for rule, found in tomllib.loads(TABLE.read_text("utf-8")).items() for row in found]


def _values(series: str) -> Iterator[float | None]:
    for part in series.split():
        value, _, times = part.partition("×")
        low, sign, high = value.partition(".." if ".." in value else "~")
        for n in range(count := int(times or 1)):
            share = n / (count - 1) if sign else 0.0
            first = None if low == "-" else float(low)
            if first is None or not sign:
                yield first
            else:
                last = float(high)
                yield first + (last - first) * share if sign == ".." else first * (last / first) ** share


def steps(logged: dict[str, str]) -> list[dict[str, float]]:
    """The metrics of each step."""
    columns = {name: list(_values(series)) for name, series in logged.items()}
    count = max(map(len, columns.values()), default=0)
    filled = {name: values * count if len(values) == 1 else values for name, values in columns.items()}
    assert {len(values) for values in filled.values()} <= {count}, logged
    found = [{name: x for name, values in filled.items() if (x := values[n]) is not None} for n in range(count)]
    return [{"actor/pg_loss": 0.01, **data} for data in found]


def judged(rule: str, row: Mapping[str, Any]) -> tuple[str, str]:
    """The levels, run-length coded, and the rule's messages at level changes and at the end."""
    checklist = Checklist(row.get("config"), row.get("settings"), clock=False, **row.get("options", {}))
    state = checklist._entries[rule].state  # `checks` makes all rows
    levels, texts = list[Level](), list[str]()
    for number, data in enumerate(steps(row.get("logged", {})), row.get("first", 1)):
        before = state.level
        changes = checklist.step(number, data, three_decimals=row.get("three_decimals", False))
        told = [(each.step, each.before, each.after) for each in changes if each.rule == rule]
        assert told == ([(number, before, state.level)] if state.level != before else [])
        levels.append(state.level)
        texts += [f"{number}: {state.message}"] if told else []
    (last,) = (check for check in checklist.checks() if check.rule == rule)
    assert last.level == state.level
    runs = [(str(level), len(list(group))) for level, group in groupby(levels or [last.level])]
    return " ".join(level if count == 1 else f"{level}×{count}" for level, count in runs), "\n".join(
        [*texts, last.message]
    )


def astray(rule: str, row: Mapping[str, Any]) -> set[str]:
    """The limits of a row whose compared value is not on the scale of the curve in which they are drawn."""
    checklist, values = Checklist(row.get("config"), row.get("settings"), clock=False), dict[str, float]()
    for number, data in enumerate(steps(row.get("logged", {})), row.get("first", 1)):
        checklist.step(number, data)
        values |= {key: max(values.get(key, 0.0), abs(x)) for key, x in data.items() if math.isfinite(x)}
    (last,) = (check for check in checklist.checks() if check.rule == rule)
    drawn = [(last.keys[each.series], each) for each in last.bounds if each.series >= 0 and each.now is not None]
    return {f"{rule} {each.metric} of {key}" for key, each in drawn if abs(each.now or 0.0) > 1.0001 * values[key]}


def messages() -> dict[str, str]:
    """The message of each row, for the golden."""
    return {f"{rule} {row['why']}": judged(rule, row)[1] for rule, row in rows()}


def bank() -> dict[str, str]:
    """For recorded runs of tests/data/bank: level changes, chart headlines, and last messages."""
    return {run.name: "\n".join(_of_bank(run)) for half in ("judged", "gpu") for run in health_bank.runs(half)}


def _of_bank(run: health_bank.BankRun) -> Iterator[str]:
    checklist, store = run.checklist(), SeriesStore()
    for step, t, data in run.known:
        yield from (f"{step} {each.rule} {each.after}: {each.message}" for each in checklist.step(step, data, t=t))
        store.add(StepRecord(step, t, None, data), 1)
        if step % 10 == 0:
            state = RunState("running", checks=tuple(checklist.checks()))
            shown = {figure.title: plot(figure, store, state, []).headline for figure in charts(store)}
            yield from (f"{step} {title} {text}" for title, rows in shown.items() for row in rows for text, _ in row)
    yield from (f"{check.rule} {check.level}: {check.message}" for check in checklist.checks())

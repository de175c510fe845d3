"""One metric as a table row, and as words below its chart."""

from collections.abc import Sequence

from launcher.core.format import counted, number
from launcher.core.text import clean
from launcher.metrics.glossary import describe
from launcher.metrics.responses import PREFIX
from launcher.metrics.store import Series, SeriesStore
from launcher.record.check import Check
from launcher.runs.watch.check_words import bound_words
from tui.kit.drawing.glyphs import PIN
from tui.kit.drawing.rows import Row, fit, packed, paragraph, shorten, spread
from tui.kit.drawing.trace import spark
from tui.kit.run_words import level_sign

_FIGURES = (  # of launcher.metrics.responses, the words before each
    ("unvaried_groups", "equal rewards"),
    ("all_right_groups", "all right"),
    ("all_wrong_groups", "all wrong"),
    ("near_equal", "alike"),
    ("prompt_copied", "copied"),
    ("format_only", "no answer"),
    ("forgotten", "forgotten"),
)


def legend() -> list[tuple[str, str]]:
    """The words before the shares of a step, and the meaning of each."""
    return [(words, f"share of {describe(PREFIX + name).meaning}") for name, words in _FIGURES]


def figures_row(series: SeriesStore, step: int) -> Row:
    """`equal rewards 40 % · alike 3 %`: shares of a step's responses; empty without any."""
    said = [
        f"{words} {number(100 * value)} %"
        for name, words in _FIGURES
        if (found := series.get(PREFIX + name)) is not None and (value := found.at(step)) is not None
    ]
    return [(" " + " · ".join(said), "dim")] if said else []


_VALUE, _BOUND = 12, 8  # cells of the newest value with its unit, and of the lowest and the highest
_SPARK, _NAME = 12, 54  # minimum cells of the curve, maximum cells of the name
_RANGE_FROM, _SPARK_FROM = 72, 44  # minimum columns for a range and a curve next to complete names


def column_heads(shown: int, known: int, columns: int) -> Row:
    """The heading of the table, with the number of filtered metrics."""
    name, sparks, ranged = _widths(columns)
    count = f"{known}" if shown == known else f"{shown} of {known}"
    row: Row = [("  ", "text"), *fit([(f"metric ({count})", "dim")], name), (f" {'now':>{_VALUE}}", "dim")]
    if ranged:
        row.append((f" {'lowest':>{_BOUND}} {'highest':>{_BOUND}}", "dim"))
    return [*row, ("  steps", "dim")] if sparks else row


def metric_row(key: str, series: Series, last: int, *, pinned: bool, columns: int) -> Row:
    """Name, newest, lowest and highest value, curve of the steps 0 to `last`; the first cell is for the cursor."""
    name, sparks, ranged = _widths(columns)
    family, slash, rest = shorten(title(key), name).partition("/")
    named: Row = [(family + slash, "dim"), (rest, "text")] if rest else [(family, "text")]
    newest = series.last
    row: Row = [(" ", "text"), (PIN if pinned else " ", "live"), *fit(named, name), (" ", "text")]
    row += spread([], [(_value(key, newest), "title" if _finite(newest) else "critical")], _VALUE)
    if ranged:
        whole = series.span(0, last)
        bounds = (number(whole.low), number(whole.high)) if whole else ("", "")
        for bound in bounds:
            row += [(" ", "text"), *spread([], [(bound, "dim")], _BOUND)]
    return [*row, ("  ", "text"), *spark(series, last, sparks)] if sparks else row


def meaning_rows(key: str, columns: int) -> list[Row]:
    """The meaning of a metric in at most two lines."""
    metric = describe(key)
    text = f"{metric.meaning} ({metric.unit})" if metric.unit else metric.meaning
    return paragraph(text, "text", columns)[:2]


def fact_rows(key: str, series: Series, *, pinned: bool, columns: int) -> list[Row]:
    """Newest, lowest and highest value, the steps that logged it, and its meaning."""
    newest, whole = series.last, series.span(series.steps[0], series.steps[-1])
    facts: list[Row] = [[("now ", "dim"), (_value(key, newest), "title" if _finite(newest) else "critical")]]
    for word, bound in (("lowest", whole.low), ("highest", whole.high)) if whole else ():
        facts.append([(f"{word} ", "dim"), (number(bound), "text")])
    steps = f"{series.steps[0]} to {series.steps[-1]}, {counted(len(series), 'value')}"
    facts.append([("steps ", "dim"), (steps, "text")])
    rows: list[Row] = [[(" ", "text"), *row] for row in packed(facts, columns - 1, "   ")]
    note: Row = [(f" {PIN} on the dashboard", "live")] if pinned else []
    return [*rows, *meaning_rows(key, columns), note]


def used_by(key: str, checks: Sequence[Check], columns: int) -> list[Row]:
    """The checks that judge a metric, with their limits."""
    rows: list[Row] = []
    for check in checks:
        if key not in check.keys:
            continue
        sign, role = level_sign(check.level)
        rows += [
            [],
            [(f" {sign} {check.level.words} ", role), (clean(check.heading), "text"), (f" {check.rule}", "dim")],
        ]
        bounds = [bound_words(bound) for bound in check.bounds if bound.series == check.keys.index(key)]
        rows += paragraph("; ".join(bounds), "dim", columns) if bounds else []
    return rows


def title(key: str) -> str:
    """A key as one inert line; it may come from a damaged log."""
    return " ".join(clean(key).splitlines())


def _widths(columns: int) -> tuple[int, int, bool]:
    """Cells for the name and the curve, and whether lowest and highest value fit."""
    ranged, sparked = columns >= _RANGE_FROM, columns >= _SPARK_FROM
    room = columns - 2 - 1 - _VALUE - 2 * (_BOUND + 1) * ranged - (2 + _SPARK) * sparked
    name = min(max(room, 6), _NAME)
    return name, (_SPARK + room - name) * sparked, ranged


def _value(key: str, value: float | None) -> str:
    unit = describe(key).unit
    with_unit = f"{number(value)} {unit}"
    return with_unit if unit not in ("", "share") and _finite(value) and len(with_unit) <= _VALUE else number(value)


def _finite(value: float | None) -> bool:
    return value is not None and value - value == 0

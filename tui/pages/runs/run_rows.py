"""Runs and presets as lines of a list, and what is below the list about the chosen one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from launcher.core.format import SHORT_ID, duration, number
from tui.kit.charts.axes import plan
from tui.kit.drawing.glyphs import WARN
from tui.kit.drawing.rows import Row, Span, crop, fit, put, spread
from tui.kit.drawing.scale import step_limit
from tui.kit.drawing.trace import spark
from tui.kit.metric_rows import shorten
from tui.kit.run_words import lineage, notice, state_words, verdict_word
from tui.pages.runs.run_list import RunSummary

if TYPE_CHECKING:
    from launcher.preset.files import Summary

_STATE, _VERDICT, _STEP, _SCORE, _TIME, _STARTED = 12, 12, 9, 6, 7, 12  # cells of the columns of a run
_NAME, _SPARK = 19, 7  # at 80 columns; wider ones give both more, and a long name takes the curve's
_LEAST_SPARK = 3  # cells below which a curve is not worth its place
_ID = len(" · ") + SHORT_ID  # cells behind a name
SEE_QUEUE = "Q shows the queue and what each run waits for"
_MORE = 120  # columns from which there is room for the last score and the start
_NEEDS, _DESCRIPTION = 25, 51  # columns of a preset


class _Widths(NamedTuple):
    name: int
    spark: int
    more: bool


def run_heading(columns: int, words: str, longest: int = 0) -> Row:
    """The heads of the columns; `words` say how the runs are narrowed and ordered."""
    widths = _widths(columns, longest)
    row: Row = fit([(" Runs", "title"), (words, "live")], 3 + _STATE + widths.name)
    more = f" {'last':>{_SCORE}}" if widths.more else ""
    row.append((f" {'verdict':{_VERDICT}} {'step':{_STEP}} {'best':>{_SCORE}}{more}", "dim"))
    curve = f" {'reward':{widths.spark}.{widths.spark}}" if widths.spark else ""
    row.append((f"{curve} {'time':>{_TIME}}", "dim"))
    return [*row, ("  started", "dim")] if widths.more else row


def run_row(run: RunSummary, mark: str, columns: int, longest: int = 0) -> Row:
    """`❯1● running   toy-cpu · 7f3a   ● OK   62/80   0.812  ▂▃▅▆▇█   3m 20s`; cell 0 is the cursor's.

    `longest` is the length of the longest name in the list: runs must differ in their names before a curve is drawn.
    """
    widths, state, series = _widths(columns, longest), run.state, run.scores.series
    word, role = (f"{WARN} damaged", "warn") if state.damaged else state_words(state)[0]
    level_sign, verdict, level_role = verdict_word(state.state, state.verdict)
    step, total = state.step, state.total
    short = f" · {run.id[:SHORT_ID]}" if run.id != run.name else ""  # somebody else's job
    named = [(shorten(run.name, widths.name - len(short)), "text"), (short, "dim")]
    best, last = number(run.scores.best), number(series.last)
    cells = [
        fit([(f"{word.partition(' · ')[0]}", role)], _STATE),
        fit(named, widths.name),
        fit([(f"{level_sign} {verdict}", level_role)], _VERDICT),
        fit([(f"{'–' if step is None else step}/{total or '–'}", "text")], _STEP),
        spread([], [(best, "title")], _SCORE),
        *([spread([], [(last, "text")], _SCORE)] if widths.more else []),
        *([_curve(run, widths.spark)] if widths.spark else []),
        spread([], [(_took(run), "dim")], _TIME),
        *([[(f" {_when(state.created)}", "dim")]] if widths.more else []),
    ]
    row: Row = [(" ", "text"), (mark or " ", "live")]
    for cell in cells:
        row += [*cell, (" ", "text")]
    return row[:-1]


def preset_row(preset: Summary) -> Row:
    """`toy-cpu    no GPU    Real veRL PPO without a GPU`; before the needs whether it is the user's."""
    row: Row = [(f"   {preset.name}", "text")]
    if preset.error is not None:
        return put(row, _NEEDS, [(preset.error, "critical")])
    needs = " · ".join(each for each in (_whose(preset), preset.needs) if each)
    row = put(row, _NEEDS, crop([(needs, "dim")], _DESCRIPTION - _NEEDS - 2))
    return put(row, _DESCRIPTION, [(preset.description, "text")])


def _whose(preset: Summary) -> str:
    if preset.shadows:
        return "yours, hides shipped"
    return "yours" if preset.origin == "user" else ""


def about_run(run: RunSummary) -> list[Span]:
    """How the run ended, or what it does; and its folder, once it has one."""
    said = "".join(text for text, _ in state_words(run.state))
    role, text = notice(run.state) or ("text", said)
    noted = [(str(run.note), "notice")] if str(run.note) else []
    if run.waits:
        return [(f"{run.name}: {text}", role), *noted, (SEE_QUEUE, "dim")]
    origin = lineage(run.path)
    came = [(origin, "dim")] if origin else []
    return [(f"{run.name}: {text}", role), *came, *noted, (str(run.path), "dim")]


def about_preset(preset: Summary) -> list[Span]:
    if preset.error is not None:
        return [(preset.error, "critical")]
    rows = [(preset.description, "text")] if preset.description else []
    if preset.origin == "user":
        return [*rows, (f"yours{', replaces the shipped preset' if preset.shadows else ''}: {preset.path}", "dim")]
    return [*rows, (f"needs {preset.needs or 'not stated'}", "dim")]


def _widths(columns: int, longest: int) -> _Widths:
    more = columns >= _MORE
    extra = max(columns - 80 - (_SCORE + _STARTED + 3) * more, 0)
    both = _NAME + _SPARK + extra
    name = max(_NAME + min(extra // 2, 24), longest + _ID)
    if both - name < _LEAST_SPARK:
        return _Widths(both + 1, 0, more)  # the blank before the curve is not needed then
    return _Widths(name, min(both - name, _SPARK + 40), more)


def _curve(run: RunSummary, cells: int) -> Row:
    series = run.scores.series
    if not series.steps:
        return [(" " * cells, "text")]
    last = step_limit(series.steps[-1], plan(run.state, series.steps[-1]))
    return fit(spark(series, last, cells), cells)


def _took(run: RunSummary) -> str:
    """In whole minutes while the run lives, so that it seldom repaints."""
    seconds = run.seconds
    if seconds is None or not run.state.live:
        return duration(seconds)
    return duration(seconds - seconds % 60).removesuffix(" 00s") if seconds >= 60 else "<1m"


def _when(created: object) -> str:
    try:
        when = datetime.fromtimestamp(float(created))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
    return f"{when.day:>2} {when:%b %H:%M}"

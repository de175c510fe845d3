"""Runs and presets as lines of a list, and the text below about the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from launcher.core.format import SHORT_ID, duration, number
from launcher.record.info import Edit
from launcher.record.layout import RunDir
from launcher.record.state import known
from launcher.runs.watch.run_settings import differs
from tui.kit.charts.axes import plan
from tui.kit.drawing.glyphs import FINISHED, WARN
from tui.kit.drawing.rows import Row, Span, crop, fit, put, shorten, spread
from tui.kit.drawing.scale import step_limit
from tui.kit.drawing.trace import spark
from tui.kit.run_words import level_sign, lineage, notice, state_words, verdict_word
from tui.pages.runs.run_list import RunSummary

if TYPE_CHECKING:
    from launcher.preset.files import Summary

_BEST, _STEP, _TIME, _STARTED, _LAST = "best", "step", "time", "started", "last"
_CELLS = {_BEST: 6, _STEP: 9, "curve": 8, _TIME: 7, _STARTED: 13, _LAST: 6}  # of columns that a narrow list lacks
_LONG_NAME = 26  # cells of a name; a third of the columns if that is more
_STATE, _VERDICT, _NARROW_VERDICT = 11, 12, 10  # widths of state and verdict
_NARROW = 60  # columns below which the verdict is narrow, and columns of the other parts
_CURVE, _MOST_CURVE = 8, 47
_ORDER = (_BEST, _STEP, "curve", _TIME, _STARTED, _LAST)  # the most important first
_LEAST_NAME = 7  # minimum width of a name before the differing settings
_ID = len(" · ") + SHORT_ID  # cells behind a name
SEE_QUEUE = "Q shows the queue and what each run waits for"
_MARGIN = 3  # cells before the name of a preset
_MARK = 7  # width of the mark of a fitting preset


@dataclass(frozen=True)
class Columns:
    """The widths of a list's columns in cells; 0 for one without room."""

    verdict: int
    name: int
    curve: int
    others: frozenset[str]

    def __contains__(self, column: object) -> bool:
        return column in self.others


def columns_of(columns: int, longest: int = 0, changed: int = 0) -> Columns:
    """The columns that fit into `columns` cells, most important first; none is cut, and more cells never show fewer.

    `longest`, `changed`: cells of the longest name and of the longest differences after it.
    """
    verdict = min(max(columns - _NARROW, _NARROW_VERDICT), _VERDICT)
    name = min(longest + _ID + (changed + 1 if changed else 0), max(_LONG_NAME, columns // 3))
    room = columns - 4 - name - _STATE - verdict
    fitting = [at for at, used in enumerate(accumulate(_CELLS[each] + 1 for each in _ORDER), 1) if used <= room]
    others = frozenset(_ORDER[: len(fitting)])
    room -= sum(_CELLS[each] + 1 for each in others)
    curve = min(_CURVE + room, _MOST_CURVE) if "curve" in others else 0
    return Columns(verdict, max(name + room - max(curve - _CURVE, 0), 1), curve, others)


def run_heading(shown: Columns, words: str) -> Row:
    """The heads of the columns; `words`: the filter and order of the runs."""
    row: Row = fit([(" Runs", "title"), (words, "live")], 3 + _STATE + shown.name)
    heads = [f"{'verdict':{shown.verdict}}"]
    heads += [f"{'step':{_CELLS[_STEP]}}"] if _STEP in shown else []
    heads += [f"{name:>{_CELLS[name]}}" for name in (_BEST, _LAST) if name in shown]
    heads += [f"{'reward':{shown.curve}.{shown.curve}}"] if shown.curve else []
    heads += [f"{'time':>{_CELLS[_TIME]}}"] if _TIME in shown else []
    heads += [" started"] if _STARTED in shown else []
    return [*row, (" " + " ".join(heads), "dim")]


def run_row(run: RunSummary, mark: str, shown: Columns, changes: Sequence[Edit] = ()) -> Row:
    """`❯1● running   toy-cpu lr=0.1 · 7f3a   ● OK   62/80   0.812  ▂▃▅▆▇█   3m 20s`; cell 0 is for the cursor."""
    state, series = run.state, run.scores.series
    word, role = (f"{WARN} damaged", "warn") if state.damaged else state_words(state)[0]
    level_sign, verdict, level_role = verdict_word(state.state, state.verdict)
    short = f" · {run.id[:SHORT_ID]}" if run.id != run.name else ""  # another user's job
    room = shown.name - len(short)
    first = len(differs(changes[:1])) + (3 if changes[1:] else 0)  # with the number of the others, such as ` +2`
    differing = differs(changes, max(room - len(run.name) - 1, min(first, room - _LEAST_NAME - 1)))
    name = shorten(run.name, room - (len(differing) + 1 if differing else 0))
    named = [(name, "text"), (f" {differing}" if differing else "", "live"), (short, "dim")]
    scores = {_BEST: (number(run.scores.best), "title"), _LAST: (number(series.last), "text")}
    cells = [
        fit([(f"{word.partition(' · ')[0]}", role)], _STATE),
        fit(named, shown.name),
        fit([(_within(f"{level_sign} {verdict}", shown.verdict), level_role)], shown.verdict),
    ]
    if _STEP in shown:
        cells.append(fit([(state.shown.at, "text")], _CELLS[_STEP]))
    cells += [spread([], [span], _CELLS[column]) for column, span in scores.items() if column in shown]
    if shown.curve:
        cells.append(_curve(run, shown.curve))
    if _TIME in shown:
        cells.append(spread([], [(_took(run), "dim")], _CELLS[_TIME]))
    if _STARTED in shown:
        cells.append([(f" {started(state.created)}", "dim")])
    row: Row = [(" ", "text"), (mark or " ", "live")]
    for cell in cells:
        row += [*cell, (" ", "text")]
    return row[:-1]


def _within(words: str, room: int) -> str:
    """A sign and a word; only the word if both do not fit."""
    return words if len(words) <= room else words.partition(" ")[2]


def preset_row(preset: Summary, columns: int, longest: int) -> Row:
    """`toy-cpu ✔ fits no GPU`; marks the user's own."""
    named = [(shorten(preset.name, max(columns - _MARGIN, 1)), "dim" if preset.fits is False else "text")]
    row: Row = [(" " * _MARGIN, "text"), *named]
    at = _MARGIN + longest + 2
    if preset.error is not None:
        return crop(put(row, at, [(preset.error, "critical")]), columns)
    if preset.fits:
        row = put(row, at, [FITS])
    at += _MARK
    whose = "yours, hides shipped" if preset.shadows else "yours" if preset.origin == "user" else ""
    needs = " · ".join(each for each in (whose, preset.needs) if each)
    while len(needs) > columns - at and (cut := max(needs.rfind(sign) for sign in (";", ",", " ·"))) > 0:
        needs = needs[:cut]  # as many parts as fit
    return put(row, at, [(needs, "dim")]) if needs and len(needs) <= columns - at else row


FITS = (f"{FINISHED} fits", "ok")


def about_run(run: RunSummary) -> list[Span]:
    """The end or current state of the run, its worst flag, and its folder."""
    said = "".join(text for text, _ in state_words(run.state))
    role, text = notice(run.state) or ("text", said)
    noted = [(str(run.note), "text")] if str(run.note) else []
    if run.waits:
        return [(f"{run.name}: {text}", role), *noted, (SEE_QUEUE, "dim")]
    origin = lineage(run.path)
    came = [(origin, "dim")] if origin else []
    for check in known(RunDir(run.path)).checks if run.state.flags else ():  # the list reads states without them
        if check.rule == run.state.flags[0]:
            sign, level = level_sign(check.level)
            came.insert(0, (f"{sign} {check.rule}: {check.symptom}", level))
    return [(f"{run.name}: {text}", role), *came, *noted, (str(run.path), "dim")]


def about_preset(preset: Summary) -> list[Span]:
    if preset.error is not None:
        return [(preset.error, "critical")]
    rows = [(preset.description, "text")] if preset.description else []
    if preset.origin == "user":
        return [*rows, (f"yours{', replaces the shipped preset' if preset.shadows else ''}: {preset.path}", "dim")]
    return [*rows, (f"needs {preset.needs or 'not stated'}", "dim")]


def _curve(run: RunSummary, cells: int) -> Row:
    series = run.scores.series
    if not series.steps:
        return [(" " * cells, "text")]
    last = step_limit(series.steps[-1], plan(run.state, series.steps[-1]))
    return fit(spark(series, last, cells), cells)


def _took(run: RunSummary) -> str:
    """The duration, in whole minutes during a run, so that it seldom changes."""
    seconds = run.seconds
    if seconds is None or not run.state.live:
        return duration(seconds)
    return duration(seconds - seconds % 60).removesuffix(" 00s") if seconds >= 60 else "<1m"


def started(created: object) -> str:
    """The creation time of a run, such as `21 Nov 09:27`."""
    try:
        when = datetime.fromtimestamp(float(created))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
    return f"{when.day:>2} {when:%b %H:%M}"

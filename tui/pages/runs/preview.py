"""What a wide list shows beside it about the chosen run or preset."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from launcher.core.format import duration, number, roughly
from launcher.core.text import clean
from launcher.record.layout import RunDir
from launcher.record.state import current
from tui.kit.drawing.rows import Row
from tui.kit.drawing.spark import spark
from tui.kit.run_words import level_sign, lineage, notice, state_words, verdict_words
from tui.pages.runs.run_list import RunSummary
from tui.pages.runs.run_rows import SEE_QUEUE

if TYPE_CHECKING:
    from launcher.preset.files import Summary

_NAME = 12  # cells of the names of facts


def preview_run(run: RunSummary, columns: int) -> list[Row]:
    """State, verdict, figures, flags with their messages, note and folder. Reads state.json."""
    if run.waits:
        waits = _fact("state", state_words(run.state))
        return [[(clean(run.id), "title")], [], waits, [], *_text(SEE_QUEUE, "dim", columns)]
    state = current(RunDir(run.path))
    series, step = run.scores.series, "–" if state.step is None else f"{state.step} of {state.total or '?'}"
    rows: list[Row] = [[(clean(run.id), "title")], [], _fact("state", state_words(state))]
    rows.append(_fact("verdict", verdict_words(state)))
    rows.append(_fact("step", [(step, "text")]))
    if state.live and state.eta is not None:
        rows.append(_fact("ETA", [(roughly(state.eta), "text")]))
    rows.append(_fact("time", [(duration(run.seconds), "text")]))
    rows.append(_fact("reward", [(f"{number(series.last)}, best {number(run.scores.best)}", "text")]))
    if series.steps:
        rows.append(_fact("", spark(series, series.steps[-1], max(columns - _NAME, 1))))
    if said := notice(state):
        rows += [[], *_text(said[1], said[0], columns)]
    flags = [check for check in state.checks if check.rule in state.flags]
    for check in flags:
        sign, role = level_sign(check.level)
        rows += [[], [(f"{sign} {check.level} ", role), (clean(check.rule), "dim")]]
        rows += _text(check.message, "text", columns)
    if origin := lineage(run.path):
        rows += [[], *_text(origin, "text", columns)]
    if str(run.note):
        rows += [[], *_text(str(run.note), "notice", columns)]
    return [*rows, [], *_text(str(run.path), "dim", columns)]


def preview_preset(preset: Summary, columns: int, rows: int) -> list[Row]:
    """Description, needs, and the file as far as it fits. Reads the file."""
    head: list[Row] = [[(clean(preset.name), "title")], []]
    head += _text(preset.error or preset.description, "critical" if preset.error else "text", columns)
    head += [
        [],
        *_text(f"needs {preset.needs or 'not stated'}", "dim", columns),
        *_text(str(preset.path), "dim", columns),
    ]
    try:
        lines = preset.path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return [*head, [], *([(clean(line), "dim" if line.lstrip().startswith("#") else "text")] for line in lines[:rows])]


def _fact(name: str, row: Row) -> Row:
    return [(f"{name:<{_NAME}}", "dim"), *row]


def _text(text: str, role: str, columns: int) -> list[Row]:
    return [[(line, role)] for line in wrap(clean(text), max(columns, 8))]

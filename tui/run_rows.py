"""Runs and presets as lines of a list, and what is told about the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from launcher.format import number
from tui.drawing.rows import Row, Span, crop, put
from tui.run_list import RunSummary
from tui.run_words import LEVELS, STATES, notice, state_words, uptime
from tui.widgets.header_line import SHORT_ID

if TYPE_CHECKING:
    from launcher.preset.files import Summary

NAME, STEP, REWARD, CHECKS, TIME = 14, 40, 51, 58, 71  # columns of a run; together they fill 80
NEEDS, DESCRIPTION = 25, 51  # columns of a preset


def run_heading() -> Row:
    row: Row = [(" Runs", "title")]
    for column, word in (
        (NAME, "run"),
        (STEP, "step"),
        (REWARD, "reward"),
        (CHECKS, "checks"),
        (TIME, "time"),
    ):
        row = put(row, column, [(word, "dim")])
    return row


def run_row(run: RunSummary) -> Row:
    """`● running    toy-cpu · 7f3a    62/80    0.750    ▲ WARNING    3m`."""
    state = run.state
    name = str(state.get("state", "queued"))
    sign, role = STATES.get(name, ("?", "dim"))
    level_sign, verdict, level_role = LEVELS.get(str(state.get("verdict")), LEVELS["N-A"])
    step, total = state.get("step"), state.get("total")
    row: Row = [(f" {sign} {name}", role)]
    row = put(row, NAME, [*crop([(run.name, "text")], 17), (f" · {run.id[:SHORT_ID]}", "dim")])
    row = put(row, STEP, [(f"{'–' if step is None else step}/{total or '–'}", "text")])
    row = put(row, REWARD, [(number(run.reward), "text")])
    row = put(row, CHECKS, [(f"{level_sign} {verdict}", level_role)])
    return put(row, TIME, [(uptime(state, state.get("updated")).partition(" ")[2], "dim")])


def preset_row(preset: Summary) -> Row:
    """`toy-cpu    no GPU    Real veRL PPO without a GPU`."""
    row: Row = [(f"   {preset.name}", "text")]
    if preset.error is not None:
        return put(row, NEEDS, [(preset.error, "critical")])
    row = put(row, NEEDS, crop([(preset.needs, "dim")], DESCRIPTION - NEEDS - 2))
    return put(row, DESCRIPTION, [(preset.description, "text")])


def about_run(run: RunSummary) -> list[Span]:
    """How the run ended, or what it does; and its folder."""
    said = "".join(text for text, _ in state_words(run.state))
    role, text = notice(run.state) or ("text", said)
    return [(text, role), (str(run.path), "dim")]


def about_preset(preset: Summary) -> list[Span]:
    if preset.error is not None:
        return [(preset.error, "critical")]
    return [(preset.description, "text"), (f"needs {preset.needs or 'not said'}", "dim")]

"""Runs and presets in the inspector. Readers are slow, so the page runs them in a thread and caches results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.core.errors import UserError
from launcher.core.format import counted, duration, number, remaining
from launcher.core.text import clean
from launcher.metrics import names
from launcher.record.check import Check
from launcher.record.info import Edit
from launcher.record.layout import RunDir
from launcher.record.state import RunState, current
from launcher.runs.watch.run_settings import shown_value
from tui.kit.charts.lens import Lens
from tui.kit.charts.run_charts import RunCharts
from tui.kit.drawing.glyphs import ARROW, CRITICAL
from tui.kit.drawing.plot import Plot
from tui.kit.drawing.rows import Row, fold, folded, labelled, paragraph
from tui.kit.run_words import level_sign, lineage, notice, state_words, verdict_words
from tui.kit.widgets.inspector import CHARTS, Inspection
from tui.pages.runs.run_list import RunSummary
from tui.pages.runs.run_rows import FITS, SEE_QUEUE, started

if TYPE_CHECKING:
    from launcher.check.finding import Finding
    from launcher.preset.files import Summary

_NAME = 10  # cells of the names of facts


def read_charts(run: Path, before: RunCharts | None) -> RunCharts | None:
    """The run's steps, events and state as charts; reads only new data. A just deleted run keeps earlier data."""
    from launcher.runs.watch.reader import RunReader

    charts = before
    with suppress(OSError, UserError):
        charts = before or RunCharts(RunReader(run), Lens())
        charts.reader.poll()
    return charts


def inspect_run(run: RunSummary, charts: RunCharts | None, changes: Sequence[Edit], columns: int) -> Inspection:
    """State, verdict, four curves; below them its end, flags, differing settings and origin."""
    title: Row = [(clean(run.id), "title")]
    columns -= 1  # `_aligned` takes one
    if run.waits:
        return _aligned([title], (), [_fact("state", state_words(run.state)), *_text(SEE_QUEUE, "dim", columns)])
    state = charts.reader.state if charts is not None else current(RunDir(run.path))
    head: list[Row] = [title, _fact("state", [*state_words(state), ("   ", "text"), *verdict_words(state)])]
    head += labelled([("step", "dim")], " · ".join(_progress(run, state)), "text", _NAME, columns)
    rows: list[Row] = []
    if said := notice(state):
        rows += labelled([("end" if not state.live else "now", "dim")], said[1], said[0], _NAME, columns)
    for check in _flags(state):
        sign, role = level_sign(check.level)
        rows += labelled([(f"{sign} {check.rule}", role)], check.symptom, "text", _NAME, columns)
    if changes:
        rows += _settings("differs", changes, columns)
    for name, text, role in (("from", lineage(run.path), "text"), ("note", str(run.note), "text")):
        rows += labelled([(name, "dim")], text, role, _NAME, columns) if text else []
    rows += [[], *folded([(str(run.path), "dim")], columns)]
    if charts is None:
        plots = [Plot(figure.title, note="reading …") for figure in names.charts()[: names.FEW]]
    else:
        figures = names.charts(charts.reader.series)[:CHARTS]
        plots = [charts.figure(figure, figures) for figure in figures]
    return _aligned(head, plots, rows)


def _aligned(head: list[Row], plots: Sequence[Plot], rows: list[Row]) -> Inspection:
    """Aligns the texts with the chart titles."""
    head, rows = ([[(" ", "text"), *row] for row in part] for part in (head, rows))
    return Inspection(head, plots, rows)


def _progress(run: RunSummary, state: RunState) -> list[str]:
    step = "–" if state.step is None else state.shown.progress
    ends = [remaining(state.eta, state.done)] if state.live and state.eta is not None else []
    scores = [f"best {number(run.scores.best)}", f"last {number(run.scores.series.last)}"]
    return [step, *scores, duration(run.seconds), *ends, started(state.created)]


def _flags(state: RunState) -> list[Check]:
    """The flagged checks, newest first."""
    on = [check for check in state.checks if check.rule in state.flags]
    return sorted(on, key=lambda check: -1 if check.since is None else check.since, reverse=True)


def _settings(name: str, edits: Sequence[Edit], columns: int) -> list[Row]:
    """`differs actor.lr 3e-4 → 1e-5`, one line each."""
    rows: list[Row] = []
    for edit in edits:
        text = f"{clean(edit.key)} {shown_value(edit.before)} {ARROW} {shown_value(edit.now)}"
        rows += labelled([("" if rows else name, "dim")], text, "text", _NAME, columns)
    return rows


@dataclass(frozen=True)
class PresetFacts:
    """A preset as it would start on this machine."""

    plan: Sequence[Row] = ()
    findings: Sequence[Finding] = ()  # about memory
    base: str = ""  # the preset that it extends
    edits: Sequence[Edit] = ()  # its own settings
    lines: Sequence[str] = ()  # lines of its file
    machine: str = field(default="", kw_only=True)


def read_preset(name: str) -> PresetFacts:
    """Reads a preset and its plan on this machine, without unknown parts."""
    from launcher.check import fitting
    from launcher.check.subject import subject
    from launcher.core.format import gib
    from launcher.estimate import memory
    from launcher.preset.files import changed_from_base, find, load, read_text
    from launcher.preset.flow import flow, rows_of
    from launcher.runs.watch.pace import pace_of
    from tui.kit.plan_rows import essentials

    found = PresetFacts()
    with suppress(OSError, UserError):
        found = PresetFacts(lines=read_text(find(name)[0]).splitlines())
        base, edits = changed_from_base(name)
        found = PresetFacts(base=base, edits=edits, lines=found.lines)
        loaded = load(name)
        what, pace = subject(loaded), pace_of(loaded.name, loaded.snapshot())
        plan = essentials(what, flow(what, rows_of(what.get("data.train_files"))), memory.estimate(what), pace)
        gpus = what.machine.gpus
        machine = f"{counted(len(gpus), 'GPU')}, {gib(gpus[0].total)} GiB each" if gpus else "no GPU"
        wrong = [finding for finding in fitting.checks(what) if finding.level != "info"]
        found = PresetFacts(plan, wrong, base, edits, found.lines, machine=machine)
    return found


def inspect_preset(preset: Summary, facts: PresetFacts | None, columns: int) -> Inspection:
    """Its purpose, whether it fits this machine, its plan, its changes, and its file."""
    head: list[Row] = [[(clean(preset.name), "title")]]
    columns -= 1  # `_aligned` takes one
    if preset.error:
        head += _text(preset.error, "critical", columns)
    elif preset.description:
        head += _text(preset.description, "text", columns)
    known = facts or PresetFacts()
    rows = _fit(preset, known.machine)
    for row in known.plan:
        (name, role), (text, text_role) = row
        rows += labelled([(name.strip(), role)], text, text_role, _NAME, columns)
    for finding in known.findings:
        sign, role = level_sign(finding.problem.level)
        rows += labelled([(f"{sign} {finding.id}", role)], finding.message, "text", _NAME, columns)
    if known.base:
        rows += [[], _fact("base", [(clean(known.base), "text")]), *_settings("changes", known.edits, columns)]
    rows += [[], *folded([(str(preset.path), "dim")], columns)]
    for line in known.lines:
        role = "dim" if line.lstrip().startswith("#") else "text"
        rows += [[(piece, role)] for piece in fold(clean(line), max(columns - 1, 1))]
    return _aligned([*head, []], (), rows)


def _fit(preset: Summary, machine: str) -> list[Row]:
    """`needs     1 GPU, 24 GB`, and below it whether that fits."""
    needs = preset.needs or "not stated"
    row = _fact("needs", [(clean(needs), "text")])
    if preset.fits is None:
        return [row]
    has = f" this machine ({machine})" if machine else " this machine"
    return [row, _fact("", [FITS, (has, "dim")] if preset.fits else [(f"{CRITICAL} too large for{has}", "warn")])]


def _fact(name: str, row: Row) -> Row:
    return [(f"{name:<{_NAME}}", "dim"), *row]


def _text(text: str, role: str, columns: int) -> list[Row]:
    return paragraph(text, role, columns + 1, indent=0)

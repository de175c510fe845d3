"""One health check: its meaning, values, limits, duration and fixes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from launcher.core.text import clean
from launcher.health.catalogue import texts_of
from launcher.record.check import Check
from launcher.record.events import LevelChange
from launcher.record.problem import Problem
from launcher.runs.watch.check_words import CROSSED, bound_words, debounce_words, limits_by_metric
from launcher.runs.watch.history import stall_report
from launcher.runs.watch.reader import ERRORS
from tui.kit.charts.axes import plan
from tui.kit.charts.run_charts import check_plot
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, crop, labelled, packed, paragraph, put, spread, width
from tui.kit.navigation import RunView
from tui.kit.problem_rows import INDENT, explained, fix_items
from tui.kit.run_words import level_sign, reference, short_symptom
from tui.kit.widgets.inspector import CHARTS, Inspection

_MOST_HISTORY = 6
_MOST_STALLED = 200  # lines of the report of a stall; the file has all
STALL = "STALL-1"
_MESSAGE, _SOME = INDENT + 32, 30  # column of a message next to its name, and its minimum cells


def level_words(check: Check) -> Row:
    """`▲ WARN`."""
    sign, role = level_sign(check.level)
    return [(f" {sign} {check.level.words:<10} ", "dim" if check.muted else role)]


def find_check(checks: Sequence[Check], rule: str) -> Check:
    """The row of a checklist for a rule."""
    return next((check for check in checks if check.rule == rule), Check(rule))


def inspect_check(run: RunView, problem: Problem, columns: int) -> Inspection:
    """Name and message of a check, its curves with limits, its fixes, meaning and history."""
    rule = problem.id
    reader = run.reader
    checks, unit = reader.state.checks, reader.state.numbering.unit
    check = find_check(checks, rule)
    rules = [each.rule for each in checks]
    place = f"{rules.index(rule) + 1}/{len(rules)}" if rule in rules else ""
    levels = [event.what for event in reader.events if isinstance(event.what, LevelChange)]
    changes = [change for change in levels if change.rule == rule]
    edited = [] if run.read_only else [offer for offer in problem.offers if offer.field][:1]
    rows = [*_because(check, columns), *_limits(check, columns)]
    found = reader.explanation if rule == ERRORS else None
    if found is None or not found.problem.offers:  # otherwise its fixes are more specific
        rows += [row for item in fix_items(problem.offers, edited, columns) for row in item.rows]
    rows += _meanings(check, columns)
    for index, change in enumerate(list(reversed(changes))[:_MOST_HISTORY]):
        rows += _happened("History" if index == 0 else "", change, unit, columns)
    if found is not None:
        rows = [*explained(found.problem, columns), [], *rows]
    if rule == STALL and (report := stall_report(reader.dir)) is not None:
        rows = [*rows, [], *stalled(report, columns)]
    rows = [*rows, *reference(clean(rule), INDENT)]
    charts, end = [], plan(reader.state, reader.series.last_step)
    for index, key in enumerate(check.keys[:CHARTS]):
        bounds = [bound for bound in check.bounds if bound.series == index]
        charts.append(run.lens.look(check_plot(key, reader.series, end, bounds, changes), reader.series, end))
    return Inspection([*head(check, place, columns, unit), []], charts, rows)


def head(check: Check, place: str, columns: int, unit: str = "step") -> list[Row]:
    """The name with level and rule, then the message; `place`: its position among the checks."""
    rule, when = clean(check.rule), ""
    if check.on and check.since is not None:
        when = f"since {unit} {check.since} · "
    elif check.was is not None:
        when = f"{check.was} until {unit} {check.cleared} · "
    if check.muted:
        when = f"muted · {when}"
    left: Row = [*level_words(check), (clean(check.heading), "title")]
    right: Row = [(f"{when}{rule} · {place} ", "dim")]
    if width(left) + width(right) + 2 > columns:
        right = [(f"{rule} ", "dim")]
    message = clean(check.symptom)
    if right[0][0].startswith(rule) and when:
        message = f"{when.removesuffix(' · ')}: {message}"
    return [spread(left, right, columns), *paragraph(message, "text", columns, indent=INDENT, most=3, least=16)]


def stalled(report: tuple[Path, Sequence[str]], columns: int) -> list[Row]:
    """The facts collected when the run hung, and their file."""
    file, lines = report
    rows: list[Row] = [[(f" collected     {clean(str(file))}", "dim")]]
    for line in lines[:_MOST_STALLED]:
        rows += paragraph(line, "dim" if line.startswith("    ") else "text", columns, least=16) or [[]]
    return rows


def _meanings(check: Check, columns: int) -> list[Row]:
    """The meaning of the check's metrics, and their healthy and bad course."""
    found, rows = texts_of(check.rule, check.family), list[Row]()
    for label, text in (("Meaning", found.meaning), ("Healthy", found.healthy), ("Bad", found.bad)) if found else ():
        if text:
            rows += labelled([(f" {label}", "dim")], text, "text", INDENT, columns)
    return rows


def _because(check: Check, columns: int) -> list[Row]:
    """The evidence for a flag's leading cause, and the other causes."""
    supports = check.lead.supports if check.lead is not None else ()
    rows = [("Because" if not index else "", each.text) for index, each in enumerate(supports)]
    rows += [(label.capitalize(), text) for label, text in (each.row for each in check.rivals)]
    return [row for label, text in rows for row in labelled([(f" {label}", "dim")], text, "text", INDENT, columns)]


def _limits(check: Check, columns: int) -> list[Row]:
    """Each metric with its limits and the crossed ones; as many per row as fit."""
    rows: list[Row] = []
    for metric, bounds in limits_by_metric(check):
        items: list[Row] = [[(f"{clean(metric)}:", "dim")]] if metric else []
        for bound in bounds:
            sign, role = level_sign(bound.level)
            words = bound_words(bound)
            items.append(
                [(f"{sign} {words}{'' if bound.holds else CROSSED}", role)]
                if bound.crossed
                else [(sign, role), (f" {words}", "text")]
            )
        rows += packed(items, columns - INDENT - 1)
    if rows and (slow := debounce_words(check)):
        rows += paragraph(slow, "dim", columns - INDENT, indent=0, least=16)
    return [put([(" Limits now", "dim")] if not index else [], INDENT, row, 0) for index, row in enumerate(rows)]


def _happened(label: str, change: LevelChange, unit: str, columns: int) -> list[Row]:
    sign, role = level_sign(change.after)
    row: Row = put([(f" {label}", "dim")], INDENT, [(f"{unit} {change.step}", "text")])
    row = put(row, INDENT + 12, [(f"{sign} {change.after!s:<9} ", role)])
    return labelled(row, f"{change.message} {glyphs.DOT} was {change.before}", "dim", width(row), columns)


def check_row(check: Check, columns: int, *, said: bool = True) -> Row:
    """Level, name, rule and, if it fits, the message in one row; enter shows all of it."""
    rule = clean(check.rule) + (f" from {check.cause}" if check.cause else "") + (" · muted" if check.muted else "")
    head = crop([*level_words(check), (f"{clean(check.heading)} ", "text"), (rule, "dim")], max(columns, 1))
    room = columns - max(_MESSAGE, width(head) + 2)
    message: Row = [(short_symptom(check, room) if said else "", "text" if check.on else "dim")]
    return crop(put(head, _MESSAGE, message, 2), columns) if columns >= _MESSAGE + _SOME else head


def flag_rows(check: Check, columns: int) -> list[Row]:
    """A flag with its complete message, for a list with room for it."""
    first = check_row(check, columns, said=False)
    return [first, *paragraph(clean(check.symptom), "text", columns, indent=INDENT, most=3, least=16)]

"""One health check in words: a line of the list, the head of its page, what it means and what to try."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from launcher.core.text import clean
from launcher.health.catalogue import families
from launcher.health.verdict import CROSSED, bound_words, debounce_words, limits_by_figure
from launcher.record.check import Check, Suggestion
from launcher.record.events import LevelChange
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, put, spread, width
from tui.kit.run_words import level_sign

INDENT = 14  # cells before a name, and before the texts of a page
_MOST_HISTORY = 6
_MOST_STALLED = 200  # lines of the report of a stall; the file has all


def level_words(check: Check) -> Row:
    """`▲ WARN`."""
    sign, role = level_sign(check.level)
    return [(f" {sign} {check.level.words:<10} ", "dim" if check.muted else role)]


def check_rows(check: Check, columns: int) -> list[Row]:
    """Level, name and rule in one row, the message below it, and since when."""
    rule = clean(check.rule) + (" · muted" if check.muted else "")
    rows: list[Row] = [[*level_words(check), (f"{clean(check.name)} ", "text"), (rule, "dim")]]
    message = clean(check.message)
    if check.on and check.since is not None:
        message = f"since step {check.since}: {message}"
    elif check.was is not None:
        message = f"{message} ({check.was} until step {check.cleared})"
    lines = wrap(message, max(columns - INDENT, 16))
    return rows + [[(" " * INDENT + line, "text" if check.on else "dim")] for line in lines]


def head(check: Check, place: str, columns: int) -> list[Row]:
    """The name with level and rule, then the message; `place` tells which of how many checks it is."""
    rule, when = clean(check.rule), ""
    if check.on and check.since is not None:
        when = f"since step {check.since} · "
    elif check.was is not None:
        when = f"{check.was} until step {check.cleared} · "
    if check.muted:
        when = f"muted · {when}"
    left: Row = [*level_words(check), (clean(check.name), "title")]
    right: Row = [(f"{when}{rule} · {place} ", "dim")]
    if width(left) + width(right) + 2 > columns:
        right = [(f"{rule} ", "dim")]
    message = clean(check.message)
    if right[0][0].startswith(rule) and when:
        message = f"{when.removesuffix(' · ')}: {message}"
    lines = wrap(message, max(columns - INDENT - 1, 16), max_lines=3, placeholder=" …")
    return [spread(left, right, columns), *([(" " * INDENT + line, "text")] for line in lines)]


def stalled(report: tuple[Path, Sequence[str]], columns: int) -> list[Row]:
    """What was collected when the run stalled, and the file that has it."""
    file, lines = report
    rows: list[Row] = [[(f" collected     {clean(str(file))}", "dim")]]
    for line in lines[:_MOST_STALLED]:
        for part in wrap(line, max(columns - 2, 16)) or [""]:
            rows.append([(f" {part}", "dim" if line.startswith("    ") else "text")])
    return rows


def page(check: Check, changes: Sequence[LevelChange], editable: Suggestion | None, columns: int) -> list[Row]:
    """What the check means, its limits, what to try while it is on, and what was.

    `editable` is the suggestion that the preset editor opens on.
    """
    family = families().get(check.family)
    rows: list[Row] = []
    rows += _limits(check, columns)
    for index, fix in enumerate(check.fixes if check.on else ()):
        rows += _fix(("Try first", "then")[index] if index < 2 else "", fix, fix == editable, columns)
    if family is not None:
        rows += _entry("Meaning", family.meaning, columns)
        rows += _entry("Healthy", family.healthy, columns)
        rows += _entry("Bad", family.bad, columns)
    for index, change in enumerate(list(reversed(changes))[:_MOST_HISTORY]):
        rows.append(_happened("History" if index == 0 else "", change))
    return rows


def _limits(check: Check, columns: int) -> list[Row]:
    """Each figure with its limits, and which of them are crossed; as many in a row as fit."""
    rows: list[Row] = []
    for figure, bounds in limits_by_figure(check):
        items: list[Row] = [[(f"{clean(figure)}:", "dim")]] if figure else []
        for bound in bounds:
            sign, role = level_sign(bound.level)
            words = bound_words(bound)
            items.append(
                [(f"{sign} {words}{CROSSED}", role)] if bound.crossed else [(sign, role), (f" {words}", "text")]
            )
        rows += _packed(items, columns - INDENT - 1)
    if rows and (slow := debounce_words(check)):
        rows += [[(line, "dim")] for line in wrap(slow, max(columns - INDENT - 1, 16))]
    return [put([(" Limits now", "dim")] if not index else [], INDENT, row, 0) for index, row in enumerate(rows)]


def _packed(items: Sequence[Row], columns: int) -> list[Row]:
    """The items one after the other, in rows of so many cells."""
    rows: list[Row] = []
    for item in items:
        if rows and width(rows[-1]) + 2 + width(item) <= columns:
            rows[-1] = [*rows[-1], ("  ", "text"), *item]
        else:
            rows.append(item)
    return rows


def _entry(label: str, text: str, columns: int, role: str = "text") -> list[Row]:
    lines = wrap(text, max(columns - INDENT - 1, 16)) or [""]
    first: Row = [(f" {label}", "dim")]
    return [put(first if not index else [], INDENT, [(line, role)], 0) for index, line in enumerate(lines)]


def _fix(label: str, fix: Suggestion, editable: bool, columns: int) -> list[Row]:
    """One thing to try; a veRL key stands out, and `e` stands before the one that it opens."""
    key = clean(fix.key or "")
    (first, *others) = _entry(label, clean(fix.text), columns)
    text, role = first[-1]
    rest: Row = [(text[: len(key)], "title"), (text[len(key) :], role)]
    mark: Row = [("e ", "live")] if editable else []
    return [put([(f" {label}", "dim")], INDENT - width(mark), [*mark, *rest], 0), *others]


def _happened(label: str, change: LevelChange) -> Row:
    sign, role = level_sign(change.after)
    row: Row = put([(f" {label}", "dim")], INDENT, [(f"step {change.step}", "text")])
    row = put(row, INDENT + 12, [(f"{sign} {change.after!s:<9} ", role)])
    return [*row, (clean(change.message), "dim"), (f" {glyphs.DOT} was {change.before}", "dim")]

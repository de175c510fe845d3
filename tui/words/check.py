"""One health check in words: a line of the list, the head of its page, what it means and what to try."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from launcher.health.explain import FAMILIES, Explanation
from launcher.text import clean
from tui.drawing import glyphs
from tui.drawing.rows import Row, put, spread, width
from tui.words.run import LEVELS, ORDER, bound_words, strictest

INDENT = 13  # cells before a question, and before the texts of a page
_MOST_HISTORY = 6


def is_on(check: Mapping[str, Any]) -> bool:
    """Whether a flag is up."""
    return ORDER.get(str(check.get("level")), 0) >= ORDER["NOTICE"]


def level_words(check: Mapping[str, Any]) -> Row:
    """`▲ WARN`."""
    level = str(check.get("level"))
    sign, _, role = LEVELS.get(level, LEVELS["N-A"])
    return [(f" {sign} {level:<9} ", "dim" if check.get("muted") else role)]


def check_rows(check: Mapping[str, Any], columns: int) -> list[Row]:
    """Level, question and rule in one row, the message below it, and since when."""
    rule = clean(str(check.get("rule", ""))) + (" · muted" if check.get("muted") else "")
    question = f"{clean(str(check.get('question', '')))} "
    rows: list[Row] = [[*level_words(check), (question, "text"), (rule, "dim")]]
    message = clean(str(check.get("message") or ""))
    if is_on(check) and check.get("since") is not None:
        message = f"since step {check['since']}: {message}"
    elif check.get("was"):
        message = f"{message} ({check['was']} until step {check.get('cleared')})"
    lines = wrap(message, max(columns - INDENT, 16))
    return rows + [[(" " * INDENT + line, "text" if is_on(check) else "dim")] for line in lines]


def head(check: Mapping[str, Any], place: str, columns: int) -> list[Row]:
    """The question with level and rule, then the message; `place` says which of how many checks it is."""
    rule = clean(str(check.get("rule", "")))
    when = ""
    if is_on(check) and check.get("since") is not None:
        when = f"since step {check['since']} · "
    elif check.get("was"):
        when = f"{check['was']} until step {check.get('cleared')} · "
    if check.get("muted"):
        when = f"muted · {when}"
    left: Row = [*level_words(check), (clean(str(check.get("question", ""))), "title")]
    right: Row = [(f"{when}{rule} · {place} ", "dim")]
    if width(left) + width(right) + 2 > columns:
        right = [(f"{rule} ", "dim")]
    message = clean(str(check.get("message") or ""))
    if right[0][0].startswith(rule) and when:
        message = f"{when.removesuffix(' · ')}: {message}"
    lines = wrap(message, max(columns - INDENT - 1, 16), max_lines=3, placeholder=" …")
    return [spread(left, right, columns), *([(" " * INDENT + line, "text")] for line in lines)]


def page(
    check: Mapping[str, Any],
    found: Explanation | None,
    events: Sequence[Mapping[str, Any]],
    editable: str | None,
    columns: int,
) -> list[Row]:
    """What the check means, its limits, what to try and what was. `found` is None while the run is read.

    `editable` is the fix that the preset editor opens on.
    """
    family = FAMILIES.get(str(check.get("family")))
    rows: list[Row] = []
    if found is not None and found.lines:
        limits = strictest(found.lines)
        rows += _entry("Limits now", "", columns)
        for bound in limits:
            sign, _, role = LEVELS[str(bound.level)]
            rows[-1] = [*rows[-1], (f"{sign} {bound_words(bound)}   ", role)]
    if family is not None:
        rows += _entry("Meaning", family.meaning, columns)
    if found is None:
        rows += _entry("Try", "reading the run …", columns, "dim")
    elif found.fixes:
        for index, fix in enumerate(found.fixes):
            rows += _fix("Try" if index == 0 else "", clean(fix), fix == editable, columns)
    if family is not None:
        rows += _entry("Healthy", family.healthy, columns)
        rows += _entry("Bad", family.bad, columns)
        rows += _entry("First aid", family.first_aid, columns)
    for index, event in enumerate(list(reversed(events))[:_MOST_HISTORY]):
        rows.append(_happened("So far" if index == 0 else "", event))
    return rows


def _entry(label: str, text: str, columns: int, role: str = "text") -> list[Row]:
    lines = wrap(text, max(columns - INDENT - 1, 16)) or [""]
    first: Row = [(f" {label}", "dim")]
    return [put(first if not index else [], INDENT, [(line, role)], 0) for index, line in enumerate(lines)]


def _fix(label: str, fix: str, editable: bool, columns: int) -> list[Row]:
    """One thing to try; a veRL key stands out, and `e` stands before the one that it opens."""
    key = fix.partition(" ")[0] if "." in fix.partition(" ")[0] else ""
    (first, *others) = _entry(label, fix, columns)
    text, role = first[-1]
    rest: Row = [(text[: len(key)], "title"), (text[len(key) :], role)]
    mark: Row = [("e ", "live")] if editable else []
    return [put([(f" {label}", "dim")], INDENT - width(mark), [*mark, *rest], 0), *others]


def _happened(label: str, event: Mapping[str, Any]) -> Row:
    level = str(event.get("to"))
    sign, _, role = LEVELS.get(level, LEVELS["N-A"])
    row: Row = put([(f" {label}", "dim")], INDENT, [(f"step {event.get('step')}", "text")])
    row = put(row, INDENT + 12, [(f"{sign} {level:<9} ", role)])
    return [*row, (clean(str(event.get("message") or "")), "dim"), (f" {glyphs.DOT} was {event.get('from')}", "dim")]

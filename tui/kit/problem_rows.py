"""A problem in rows: title, evidence, fixes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from launcher.core.text import clean
from launcher.record.problem import FIX
from tui.kit.drawing.glyphs import ELLIPSIS
from tui.kit.drawing.rows import Item, Row, fold, paragraph, put, width
from tui.kit.run_words import level_sign

if TYPE_CHECKING:
    from launcher.record.fix import Offer
    from launcher.record.problem import Problem

INDENT = 14  # cells before the texts of a page
_PACKAGES = re.compile(r'^(File ").*-packages/')  # the install path of a library is irrelevant
_LEAST = 16  # cells of a text, however narrow the screen is


def name_of_line(line: int) -> str:
    """The entry name of a log line."""
    return f"line {line}"


def name_of_fix(index: int) -> str:
    """The entry name of a fix."""
    return f"fix {index}"


def title_rows(problem: Problem, columns: int) -> list[Row]:
    """The title of the problem."""
    return paragraph(problem.what, level_sign(problem.level)[1], columns, least=_LEAST)


def meaning_rows(problem: Problem, columns: int, most: int | None = None) -> list[Row]:
    """The meaning of the problem, in at most `most` rows."""
    return paragraph(problem.meaning, "text", columns, most=most, least=_LEAST)


def entries(problem: Problem, columns: int, most: int | None = None, *, quoted: int | None = None) -> list[Item]:
    """The fixes, then the evidence, each in as many rows as needed, or `most`; `quoted`: maximum rows of evidence."""
    items = fix_items(problem.offers, [each for each in problem.offers if each.field], columns, most)
    room = max(columns - INDENT - 1, _LEAST)
    for index, each in enumerate(problem.shown):
        text = _PACKAGES.sub(rf"\g<1>{ELLIPSIS}/", clean(each.text))
        role = "text" if index else level_sign(problem.level)[1]
        name = None if each.line is None else name_of_line(each.line)
        items.append(Item(name, _entry([(f" {each.label}", "dim")], [], text, role, room, quoted or most)))
    return items


def fix_items(offers: Sequence[Offer], marked: Sequence[Offer], columns: int, most: int | None = None) -> list[Item]:
    """The fixes in order; an `e` marks fixes that open the editor."""
    room, items = max(columns - INDENT - 1, _LEAST), []
    for index, offer in enumerate(offers):
        head: Row = [(f" {FIX} " if index == 0 else "     ", "dim"), (f"{index + 1}", "dim")]
        mark: Row = [("e ", "live")] if offer in marked else []
        items.append(Item(name_of_fix(index), _entry(head, mark, clean(offer.text), "text", room, most)))
    return items


def explained(problem: Problem, columns: int) -> list[Row]:
    """The whole problem in rows, as on its page."""
    return [
        *title_rows(problem, columns),
        *meaning_rows(problem, columns),
        [],
        *(row for item in entries(problem, columns) for row in item.rows),
    ]


def _entry(head: Row, mark: Row, text: str, role: str, room: int, most: int | None) -> list[Row]:
    """An entry with its mark in the cells before the text."""
    lines = fold(text, room)
    if most is not None and len(lines) > most:
        lines[most - 1 :] = [" ".join(lines[most - 1 :])]
    first = put(head, INDENT - width(mark), [*mark, (lines[0], role)], 1)
    return [first, *([(" " * INDENT + line, role)] for line in lines[1:])]

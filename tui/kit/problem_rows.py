"""A problem in rows: what went wrong, the lines of the log that show it, what to try."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from launcher.core.text import clean
from tui.kit.drawing.glyphs import ELLIPSIS
from tui.kit.drawing.rows import Item, Row, fold, paragraph, put, width

if TYPE_CHECKING:
    from launcher.record.fix import Offer
    from launcher.runs.watch.run_diagnosis import Explanation

INDENT = 14  # cells before the texts of a page
_PACKAGES = re.compile(r'^(File ").*-packages/')  # where a library is installed says nothing
_LEAST = 16  # cells of a text, however narrow the screen is


def name_of_line(line: int) -> str:
    """The name of the entry of a line of the log."""
    return f"line {line}"


def name_of_fix(index: int) -> str:
    """The name of the entry of a fix."""
    return f"fix {index}"


def title_rows(explanation: Explanation, columns: int) -> list[Row]:
    """What went wrong."""
    return paragraph(explanation.diagnosis.title, "critical", columns, least=_LEAST)


def meaning_rows(explanation: Explanation, columns: int, most: int | None = None) -> list[Row]:
    """The meaning of the cause, in at most so many rows."""
    return paragraph(explanation.diagnosis.meaning, "text", columns, most=most, least=_LEAST)


def entries(
    explanation: Explanation, columns: int, most: int | None = None, *, quoted: int | None = None
) -> list[Item]:
    """The lines of the log and the fixes, each in as many rows as it needs, or `most`; `quoted` are those of a line."""
    items: list[Item] = []
    room = max(columns - INDENT - 1, _LEAST)
    place = explanation.diagnosis.place
    for label, text in place.rows if place else ():
        items.append(Item(None, _entry([(f" {label}", "dim")], [], clean(text), "text", room, most)))
    for index, quote in enumerate(explanation.diagnosis.evidence):
        head: Row = [(f" line {quote.line}", "dim")]
        text = _PACKAGES.sub(rf"\g<1>{ELLIPSIS}/", clean(quote.text))
        items.append(
            Item(
                name_of_line(quote.line), _entry(head, [], text, "text" if index else "critical", room, quoted or most)
            )
        )
    return items + fix_items(explanation.offers, [each for each in explanation.offers if each.field], columns, most)


def fix_items(offers: Sequence[Offer], marked: Sequence[Offer], columns: int, most: int | None = None) -> list[Item]:
    """What to try, in order; an `e` marks those that the editor opens."""
    room, items = max(columns - INDENT - 1, _LEAST), []
    for index, offer in enumerate(offers):
        head: Row = [(" try " if index == 0 else "     ", "dim"), (f"{index + 1}", "dim")]
        mark: Row = [("e ", "live")] if offer in marked else []
        items.append(Item(name_of_fix(index), _entry(head, mark, clean(offer.text), "text", room, most)))
    return items


def explained(explanation: Explanation, columns: int) -> list[Row]:
    """The whole diagnosis in rows, as on a page."""
    return [
        *title_rows(explanation, columns),
        *meaning_rows(explanation, columns),
        [],
        *(row for item in entries(explanation, columns) for row in item.rows),
    ]


def _entry(head: Row, mark: Row, text: str, role: str, room: int, most: int | None) -> list[Row]:
    """An entry whose mark is in the cells before the text."""
    lines = fold(text, room) if most is None else [text]
    first = put(head, INDENT - width(mark), [*mark, (lines[0], role)], 1)
    return [first, *([(" " * INDENT + line, role)] for line in lines[1:])]

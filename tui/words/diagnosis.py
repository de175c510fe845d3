"""A diagnosis in rows: what went wrong, the lines of the log that show it, what to try."""

from textwrap import wrap

from launcher.run.reading.diagnosis import Explanation
from launcher.text import clean
from tui.drawing.fold import fold
from tui.drawing.rows import Item, Row, put, width

INDENT = 13  # cells before the texts, as on the page of a check
_LEAST = 16  # cells of a text, however narrow the screen is


def name_of_line(line: int) -> str:
    """The name of the entry of a line of the log."""
    return f"line {line}"


def name_of_fix(index: int) -> str:
    """The name of the entry of a fix."""
    return f"fix {index}"


def title_rows(found: Explanation, columns: int) -> list[Row]:
    """What went wrong."""
    return [[(f" {line}", "critical")] for line in wrap(clean(found.diagnosis.title), max(columns - 2, _LEAST))]


def meaning_rows(found: Explanation, columns: int) -> list[Row]:
    """What that means."""
    return [[(f" {line}", "text")] for line in wrap(clean(found.diagnosis.meaning), max(columns - 2, _LEAST))]


def entries(found: Explanation, columns: int, most: int | None = None) -> list[Item]:
    """The lines of the log and the fixes, each in as many rows as it needs, or `most`.

    An `e` stands before a fix that the editor opens.
    """
    items: list[Item] = []
    room = max(columns - INDENT - 1, _LEAST)
    for quote in found.diagnosis.evidence:
        head: Row = [(f" line {quote.line}", "dim")]
        items.append(Item(name_of_line(quote.line), _entry(head, [], clean(quote.text), "critical", room, most)))
    for index, fix in enumerate(found.diagnosis.fixes):
        head = [(" try " if index == 0 else "     ", "dim"), (f"{index + 1}", "dim")]
        mark: Row = [("e ", "live")] if found.remedies[index] else []
        items.append(Item(name_of_fix(index), _entry(head, mark, clean(fix), "text", room, most)))
    return items


def _entry(head: Row, mark: Row, text: str, role: str, room: int, most: int | None) -> list[Row]:
    """The mark stands in the cells before the text."""
    lines = fold(text, room) if most is None else [text]
    first = put(head, INDENT - width(mark), [*mark, (lines[0], role)], 1)
    return [first, *([(" " * INDENT + line, role)] for line in lines[1:])]

"""Rows of text with roles: the output of a widget before styling.

A row is a list of spans; a span is a text and the name of its role (`dim`, `warn`, `curve`, ...). Widths are in
terminal cells, so that wide characters from a log keep their columns.
"""

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from launcher.core.text import clean
from tui.kit.drawing.glyphs import ELLIPSIS

Span = tuple[str, str]
Row = list[Span]
TINTED = "@beyond"  # ends the role of a cell on a tint
HEADING = "#"  # begins the keys of lines of a table that are only read


class Item(NamedTuple):
    """An entry of a list, with the name of its subject; without a name it is a heading, which cannot be chosen.

    The first cell of its first row is for the cursor.
    """

    name: str | None
    rows: Sequence[Row]


def width(row: Row) -> int:
    """The width of a row in cells."""
    return sum(cell_len(text) for text, _ in row)


def crop(row: Row, limit: int) -> Row:
    """The row, cut to at most `limit` cells; a cut ends in an ellipsis."""
    if width(row) <= limit:
        return row
    if limit <= 0:
        return []
    kept: Row = []
    room = limit - 1
    for text, role in row:
        size = cell_len(text)
        if size > room:
            return [*kept, (set_cell_size(text, room).rstrip() + ELLIPSIS, role)]
        kept.append((text, role))
        room -= size
    return kept


def shorten(name: str, room: int) -> str:
    """Shortens a name to `room` characters by omitting its middle."""
    if len(name) <= room:
        return name
    head = max((room - 1) // 3, 0)
    return name[:head] + ELLIPSIS + name[len(name) - max(room - 1 - head, 0) :]


def folded(row: Row, limit: int) -> list[Row]:
    """The row wrapped to rows of at most `limit` cells, at any character."""
    rows: list[Row] = [[]]
    room = limit
    for text, role in row:
        start = 0
        for at, letter in enumerate(text):
            size = cell_len(letter)
            if size > room:
                rows[-1].append((text[start:at], role))
                rows.append([])
                start, room = at, limit
            room -= size
        rows[-1].append((text[start:], role))
    return rows


def fit(row: Row, limit: int) -> Row:
    """The row in exactly `limit` cells."""
    row = crop(row, limit)
    rest = limit - width(row)
    return [*row, (" " * rest, "text")] if rest > 0 else row


def spread(left: Row, right: Row, limit: int) -> Row:
    """`left` and `right` at both ends of `limit` cells with a blank between them; cuts `left` if both do not fit."""
    left = list(left)
    while left and left[-1][0].isspace():  # without blanks at its end, a cut there needs no ellipsis
        left.pop()
    left = [*left[:-1], (left[-1][0].rstrip(" "), left[-1][1])] if left else []
    right = crop(right, limit)
    room = limit - width(right)
    apart = bool(right) and not right[0][0].startswith(" ")
    return [*fit(crop(left, room - apart), room), *right]


def put(row: Row, column: int, spans: Row, least: int = 1) -> Row:
    """Adds `spans` from `column` on, or `least` cells after the end of `row` if that is further right."""
    gap = max(column - width(row), least if row else 0)
    return [*row, (" " * gap, "text"), *spans]


def paragraph(
    text: str, role: str, columns: int, *, indent: int = 1, most: int | None = None, least: int = 8
) -> list[Row]:
    """The text in lines of at most `columns` cells after an indent; the last of `most` may end in an ellipsis."""
    room = max(columns - indent - 1, least)
    lines = wrap(clean(text), room, max_lines=most, placeholder=f" {ELLIPSIS}")
    return [[(" " * indent + line, role)] for line in lines]


def labelled(label: Row, text: str, role: str, column: int, columns: int, *, most: int | None = None) -> list[Row]:
    """A label with the text next to it, in lines that begin at `column`."""
    room = max(columns - column - 1, 16)
    lines = wrap(clean(text), room, max_lines=most, placeholder=f" {ELLIPSIS}") or [""]
    return [put([] if index else label, column, [(line, role)]) for index, line in enumerate(lines)]


def packed(items: Sequence[Row], columns: int, between: str = "  ") -> list[Row]:
    """The items in sequence, in rows of at most `columns` cells."""
    rows: list[Row] = []
    for item in items:
        if rows and width(rows[-1]) + len(between) + width(item) <= columns:
            rows[-1] = [*rows[-1], (between, "dim"), *item]
        else:
            rows.append(item)
    return rows


def cells(row: Row) -> list[Span]:
    """One entry per cell. An empty entry follows a wide character; zero-width marks are added to their letter."""
    found: list[Span] = []
    for text, role in row:
        if text.isascii():
            found.extend((char, role) for char in text)
            continue
        for char in text:
            size = cell_len(char)
            if size:
                found.append((char, role))
                found.extend([("", role)] * (size - 1))
            elif found:
                found[-1] = (found[-1][0] + char, found[-1][1])
    return found


def joined(entries: list[Span]) -> Row:
    """Cells as a row of few spans: blanks take the role of a neighbor with equal tint."""
    row: Row = []
    for text, role in entries:
        alike = row and row[-1][1].endswith(TINTED) == role.endswith(TINTED)
        if alike and (role == row[-1][1] or text.isspace()):
            row[-1] = (row[-1][0] + text, row[-1][1])
        elif alike and row[-1][0].isspace():
            row[-1] = (row[-1][0] + text, role)
        else:
            row.append((text, role))
    return row


def change(old: Row, new: Row) -> tuple[int, int] | None:
    """Start and length of the range from the first to the last different cell; None without one.

    One range per row: Textual paints a widget's row from its beginning to the end of each changed range, so a second
    one would paint the first again.
    """
    if old == new:
        return None
    before, after = cells(old), cells(new)
    longest = max(len(before), len(after))
    before += [("", "")] * (longest - len(before))
    after += [("", "")] * (longest - len(after))
    differing = [column for column in range(longest) if before[column] != after[column]]
    return (differing[0], differing[-1] + 1 - differing[0]) if differing else None


_PARTS = re.compile(r"\s+|\S+")  # blanks and words


def fold(line: str, columns: int) -> list[str]:
    """A line in pieces of at most `columns` cells, broken at blanks, which are dropped.

    A word longer than a line is broken, since some scripts have no blanks. The line's indent is kept.
    """
    found, used = [""], 0
    for part in _PARTS.findall(line.expandtabs(4)):
        size = cell_len(part)
        if used + size <= columns:
            found[-1] += part
            used += size
        elif part.isspace():
            found.append("")
            used = 0
        else:
            if used and size <= columns:
                found.append("")
                used = 0
            first, *more = broken(part, columns, columns - used)
            found[-1] += first
            found += more
            used = cell_len(found[-1])
    if len(found) > 1 and not found[-1]:  # nothing but blanks came behind the last break
        found.pop()
    return [piece.rstrip() for piece in found]


def broken(word: str, columns: int, room: int | None = None) -> Iterator[str]:
    """A word in pieces of at most `columns` cells, the first of at most `room`."""
    piece, left = "", columns if room is None else room
    for char in word:
        if cell_len(piece + char) > left and (piece or left < columns):
            yield piece
            piece, left = "", columns
        piece += char
    yield piece

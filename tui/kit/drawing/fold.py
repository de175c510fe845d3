"""Long lines in pieces that fit, counted in terminal cells: responses may be in any script."""

import re
from collections.abc import Iterator

from rich.cells import cell_len

_PARTS = re.compile(r"\s+|\S+")  # blanks and words


def fold(line: str, columns: int) -> list[str]:
    """A line in pieces of at most `columns` cells, broken at blanks, which a break takes along.

    A word that no line has room for goes on in the line it stands in: some scripts have no blanks. What the
    line is indented by stays.
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
    """A word in pieces of at most `columns` cells, of which the first has `room`."""
    piece, left = "", columns if room is None else room
    for char in word:
        if cell_len(piece + char) > left and (piece or left < columns):
            yield piece
            piece, left = "", columns
        piece += char
    yield piece

"""A grid of dots in braille cells: two dots wide, four dots high each."""

from tui.kit.drawing.glyphs import BRAILLE
from tui.kit.drawing.rows import Span

_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


class Canvas:
    """`columns` × `rows` cells. Dot (0, 0) is the upper left one; dots outside are ignored.

    A cell has one role: that of the last dot set in it.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.width, self.height = columns * 2, rows * 4
        self._dots = [bytearray(columns) for _ in range(rows)]
        self._roles = [[""] * columns for _ in range(rows)]

    def dot(self, x: int, y: int, role: str) -> None:
        if 0 <= x < self.width and 0 <= y < self.height:
            self._dots[y // 4][x // 2] |= _BITS[y % 4][x % 2]
            self._roles[y // 4][x // 2] = role

    def upright(self, x: int, top: int, bottom: int, role: str) -> None:
        """A vertical stroke, both ends included, in either order."""
        if top > bottom:
            top, bottom = bottom, top
        for y in range(max(top, 0), min(bottom, self.height - 1) + 1):
            self.dot(x, y, role)

    def line(self, x0: int, y0: int, x1: int, y1: int, role: str) -> None:
        """A stroke from one dot to another, column by column, without holes. `x1` is not left of `x0`."""
        run = x1 - x0
        if run == 0:
            self.upright(x0, y0, y1, role)
            return
        at = y0
        for x in range(x0, x1 + 1):
            y = y0 + round((y1 - y0) * (x - x0) / run)
            self.upright(x, at + (y > at) - (y < at) if x > x0 else y, y, role)
            at = y

    def row(self, index: int) -> list[Span | None]:
        """One row of cells; None where no dot is set."""
        return [
            (chr(BRAILLE + dots), role) if dots else None
            for dots, role in zip(self._dots[index], self._roles[index], strict=True)
        ]

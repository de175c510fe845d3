"""What the charts show other than usual, and where the cursor is."""

from collections.abc import Sequence

from tui.drawing.rows import Row, crop, spread, width
from tui.widgets.painted import HIDDEN, Painted

_RESET = " 0 resets "


class ViewLine(Painted):
    """One line above the charts; away while they are as usual."""

    words: Sequence[str] = ()
    cursor = ""

    def show(self, words: Sequence[str], cursor: str) -> None:
        """`words` tell the view, `cursor` the step it points at, empty without one."""
        self.words, self.cursor = words, cursor
        self.set_class(not words and not cursor, HIDDEN)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        told: Row = [(f" {self.cursor} ", "live")] if self.cursor else []
        told += [(" view ", "dim"), (" · ".join(self.words), "text")] if self.words else []
        reset: Row = [(_RESET, "dim")]
        return [spread(told, reset, columns) if width(told) + width(reset) <= columns else crop(told, columns)]

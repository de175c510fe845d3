"""What the charts show other than usual, and where the cursor is."""

from collections.abc import Sequence

from tui.kit.drawing.rows import Row, crop, spread, width
from tui.kit.widgets.painted import HIDDEN, Painted

_RESET = " 0 resets "


class ViewLine(Painted):
    """One line above the charts; away while they are as usual."""

    words: Sequence[str] = ()
    cursor = ""

    def show(self, words: Sequence[str], cursor: str) -> None:
        """`words` describe the view, `cursor` the step it points at, empty without one."""
        self.words, self.cursor = words, cursor
        self.set_class(not words and not cursor, HIDDEN)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        left: Row = [(f" {self.cursor} ", "live")] if self.cursor else []
        left += [(" view ", "dim"), (" · ".join(self.words), "text")] if self.words else []
        reset: Row = [(_RESET, "dim")]
        return [spread(left, reset, columns) if width(left) + width(reset) <= columns else crop(left, columns)]

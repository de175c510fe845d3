"""The lines of a form: choose a field, step its value, edit it in place."""

from collections.abc import Sequence

from textual.message import Message

from tui.kit.drawing.rows import Row
from tui.kit.keys import KEYS
from tui.kit.widgets.lists import LineTable
from tui.pages.editor.preset_form import HEADING, NOTE, TEXT


class FormLines(LineTable):
    """Lines of a form; the cursor skips headings and notes."""

    BINDINGS = KEYS["form lines"]

    class Stepped(Message):
        """The value of the chosen field should go a step up or down."""

        def __init__(self, up: bool) -> None:
            super().__init__()
            self.up = up

    def show(self, keys: Sequence[str]) -> None:
        """Replaces the lines. A cursor on a removed line moves to the next or previous line."""
        if self.cursor not in keys and self.cursor in self.keys:
            at = self.keys.index(self.cursor)
            near = (key for key in (*self.keys[at:], *reversed(self.keys[:at])) if key in keys)
            self.cursor = next(filter(self.choosable, near), self.cursor)
        super().show(keys)

    def choosable(self, key: str) -> bool:
        return not key.startswith((HEADING, NOTE, TEXT))

    def action_step(self, up: bool) -> None:
        self.post_message(self.Stepped(up))

    _room = 0

    def make_room(self, rows: int) -> None:
        """Keeps `rows` rows visible, from the chosen line down, for a box over them."""
        self._room = min(rows, self.size.height)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.cursor is None:
            return super().draw(columns, rows)
        at = self.keys.index(self.cursor)
        noted = at + 1 < len(self.keys) and self.keys[at + 1].startswith(NOTE)
        self._top = max(self._top, at + noted - rows + 1)  # scrolls to show errors with their field
        drawn = super().draw(columns, rows)
        lift = min(at - self._top, max(0, at - self._top + self._room - rows))
        end = self._top + rows
        self._top += lift
        return [*drawn[lift:], *(self._line(key, columns - 1) for key in self.keys[end : end + lift])]

    def row_of(self, key: str) -> int:
        """The row of a line on the screen."""
        return self.keys.index(key) - self._top

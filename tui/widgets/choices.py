"""A list to choose from, given as rows of text with roles."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.drawing.rows import Row, crop
from tui.glyphs import to_ascii
from tui.keys import moves
from tui.widgets.painted import ASCII_CLASS

_STYLES = {
    "dim": "$dim", "title": "bold", "live": "$curve bold", "ok": "$success", "notice": "$accent",
    "warn": "$warning bold", "critical": "$error bold",
}  # fmt: skip
Line = tuple[str | None, Row]
"""What is chosen by a line (None: a heading), and what it shows."""


class Choices(OptionList, inherit_bindings=False):
    """Shows lines and keeps the choice; paints nothing when they are the same as before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "open / start", id="runs.open", key_display="enter",
                tooltip="Open the run, or start the preset after a question"),
        *moves(up="cursor_up", down="cursor_down", page_up="page_up", page_down="page_down",
               first="first", last="last"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__(compact=True, markup=False)
        self._shown: tuple[int, list[Line]] | None = None

    @property
    def chosen(self) -> str | None:
        option = self.highlighted_option
        return option.id if option is not None else None

    def show(self, lines: Sequence[Line], columns: int) -> None:
        """Replaces the lines, cut to so many columns."""
        if self._shown == (columns, list(lines)):
            return
        self._shown = (columns, list(lines))
        before = self.chosen
        self.set_options(
            Option(self._content(row, columns), id=identity, disabled=identity is None)
            for identity, row in lines
        )
        self.choose(before)

    def choose(self, identity: str | None) -> None:
        """Moves the choice to this line; to none when it is not there."""
        at = (
            index
            for index, option in enumerate(self.options)
            if option.id == identity and not option.disabled
        )
        self.highlighted = next(at, None)

    def _content(self, row: Row, columns: int) -> Content:
        ascii_only = self.app.has_class(ASCII_CLASS)
        parts = crop(row, columns) or [(" ", "text")]
        return Content.assemble(
            *((to_ascii(text) if ascii_only else text, _STYLES.get(role, "")) for text, role in parts)
        )

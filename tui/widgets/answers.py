"""Answers of the model, a line each."""

from typing import ClassVar

from textual.binding import BindingType

from tui.keys import moves
from tui.widgets.line_table import LineTable


class Answers(LineTable):
    """Has no keys for a page: these read on in the text of the chosen answer, which stands below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *moves(up="move(-1)", down="move(1)", first="move(-100000)", last="move(100000)")
    ]

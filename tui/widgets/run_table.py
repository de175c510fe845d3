"""The runs of this machine and the presets to start from, in one list."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.keys import LIST_MOVES
from tui.widgets.line_table import LineTable

HEADING = "#"  # begins the keys of lines that are only read


class RunTable(LineTable):
    """Lines of runs and presets under headings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter",
            "choose",
            "open",
            id="runs.open",
            key_display="enter",
            tooltip="Open the run, or start the preset after a question",
        ),
        *LIST_MOVES,
    ]

    def choosable(self, key: str) -> bool:
        return not key.startswith(HEADING)

"""The runs of this machine and the presets to start from, in one list."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.keys import moves
from tui.widgets.metric_table import MetricTable

HEADING = "#"  # begins the keys of lines that are only read


class RunTable(MetricTable, inherit_bindings=False):
    """Lines of runs and presets under headings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "open", id="runs.open", key_display="enter",
                tooltip="Open the run, or start the preset after a question"),
        *moves(up="move(-1)", down="move(1)", page_up="move(-8)", page_down="move(8)",
               first="move(-100000)", last="move(100000)"),
    ]  # fmt: skip

    def choosable(self, key: str) -> bool:
        return not key.startswith(HEADING)

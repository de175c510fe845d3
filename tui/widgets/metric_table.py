"""Metrics, a line each."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.keys import LIST_MOVES
from tui.widgets.line_table import LineTable


class MetricTable(LineTable):
    """Enter opens the metric's chart."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter",
            "choose",
            "chart",
            id="metrics.chart",
            key_display="enter",
            tooltip="The metric's chart, full screen",
        ),
        *LIST_MOVES,
    ]

"""The list of metrics."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from tui.widgets.items import Items


class MetricItems(Items):
    """Items that tell where their cursor is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "chart", key_display="enter", tooltip="The metric's chart, full screen"),
    ]

    class Moved(Message):
        """The cursor is on another entry."""

    def action_move(self, distance: int) -> None:
        super().action_move(distance)
        self.post_message(self.Moved())

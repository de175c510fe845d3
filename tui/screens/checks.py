"""Every health check with its figures, the worst first."""

from typing import ClassVar

from textual.binding import BindingType

from tui.drawing.rows import Item
from tui.keys import KEYS
from tui.screens.explained import ExplainedList
from tui.widgets.items import Items
from tui.words.check import check_rows


class ChecksScreen(ExplainedList):
    """The whole checklist of one run; it follows the run. Enter explains a check."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["checks"]]

    def show_items(self) -> None:
        items = [Item(check.rule, check_rows(check, self.size.width - 2)) for check in self.reader.state.checks]
        nothing = Item(None, [[(" no check has been judged yet", "dim")]])
        self.query_one(Items).show(items or [nothing])

"""Every health check with its values, the worst first."""

from typing import ClassVar

from textual.binding import BindingType

from tui.kit.check_list import CheckListScreen
from tui.kit.drawing.rows import Item
from tui.kit.keys import KEYS
from tui.kit.widgets.items import Items
from tui.pages.checks.words import check_rows


class ChecksScreen(CheckListScreen):
    """The whole checklist of one run; it follows the run. Enter explains a check."""

    LEGENDS = ("Checks",)
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["checks"]]

    def show_items(self) -> None:
        items = [Item(check.rule, check_rows(check, self.size.width - 2)) for check in self.reader.state.checks]
        nothing = Item(None, [[(" no check judged yet", "dim")]])
        self.query_one(Items).show(items or [nothing])

    def action_fork(self) -> None:
        from tui.kit.actions.checkpoints import begin_fork

        begin_fork(self, self.reader)

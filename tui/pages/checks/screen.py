"""Every health check of a run, the worst first."""

from tui.kit.drawing.rows import Item
from tui.kit.keys import KEYS
from tui.kit.run_page import ItemsPage
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lists import Items
from tui.pages.checks.inspection import check_rows, inspect_check


class ChecksScreen(ItemsPage):
    """The whole checklist of one run; it follows the run. Enter explains a check."""

    LEGENDS = ("Checks",)
    BINDINGS = KEYS["checks"]
    LIST = Items
    EMPTY = "No check has judged this run yet: the first ones do so with its first step."

    def items(self, columns: int) -> list[Item]:
        rows = slice(1 if self.inspects else None)  # the message is beside the list
        return [Item(check.rule, check_rows(check, columns - 2)[rows]) for check in self.reader.state.checks]

    def inspect(self, key: str | None, columns: int) -> Inspection:
        return inspect_check(self.run, key, columns) if key else Inspection()

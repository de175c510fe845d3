"""Every health check of a run, the worst first."""

from launcher.record.check import Check
from tui.kit.drawing.rows import Item
from tui.kit.keys import KEYS
from tui.kit.run_page import ItemsPage
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lists import Items
from tui.pages.checks.check import FlagPage
from tui.pages.checks.inspection import check_row, find_check, inspect_check


class ChecksScreen(ItemsPage, FlagPage):
    """The whole checklist of one run; it follows the run. Enter explains a check."""

    PAGE_NAME = "Checks"
    LEGENDS = ("Checks",)
    BINDINGS = KEYS["checks"]
    LIST = Items
    EMPTY = "Health checks judge each step; the worst comes first here. None has judged yet: they begin with step 1."

    def items(self, columns: int) -> list[Item]:
        return [Item(check.rule, [check_row(check, columns - 2)]) for check in self.reader.state.checks]

    @property
    def check(self) -> Check:
        return find_check(self.reader.state.checks, self.listed.cursor or "")

    def inspect(self, key: str | None, columns: int) -> Inspection:
        return inspect_check(self.run, self.problem, columns) if key else Inspection()

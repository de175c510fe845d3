"""Every health check of a run, the worst first."""

from launcher.record.check import Check
from tui.kit.drawing.rows import Item, Row
from tui.kit.keys import KEYS
from tui.kit.run_page import ItemsPage
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lists import Items
from tui.pages.checks.check import FlagPage
from tui.pages.checks.inspection import check_line, check_rows, find_check, inspect_check


class ChecksScreen(ItemsPage, FlagPage):
    """The whole checklist of one run; it follows the run. Enter explains a check."""

    PAGE_NAME = "Checks"
    LEGENDS = ("Checks",)
    BINDINGS = KEYS["checks"]
    LIST = Items
    EMPTY = "Health checks judge each step; the worst comes first here. None has judged yet: they begin with step 1."

    def items(self, columns: int) -> list[Item]:
        def rows(check: Check) -> list[Row]:  # the inspector has the whole message
            return [check_line(check, columns - 2)] if self.inspects else check_rows(check, columns - 2)

        return [Item(check.rule, rows(check)) for check in self.reader.state.checks]

    @property
    def check(self) -> Check:
        return find_check(self.reader.state.checks, self.listed.cursor or "")

    def inspect(self, key: str | None, columns: int) -> Inspection:
        return inspect_check(self.run, key, columns, self.proposal_of(self.check)) if key else Inspection()

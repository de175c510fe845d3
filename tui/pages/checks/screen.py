"""Every health check of a run, worst first."""

from collections.abc import Sequence

from launcher.record.check import Check
from tui.kit.drawing.glyphs import DOT
from tui.kit.drawing.rows import Item, Row, crop
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView
from tui.kit.run_page import ItemsPage
from tui.kit.run_words import summary
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lists import Items
from tui.pages.checks.check import FlagPage
from tui.pages.checks.inspection import check_row, find_check, flag_rows, inspect_check

_REST = 2  # rows of the page around the list


class ChecksScreen(ItemsPage, FlagPage):
    """The whole checklist of one run; it follows the run. Enter explains a check."""

    PAGE_NAME = "Rules"
    LEGENDS = ("Rules",)
    BINDINGS = KEYS["checks"]
    LIST = Items
    EMPTY = "Health rules judge each step, the worst first. No rule has judged yet: judging begins at step 1."

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self._unfolded = False

    @property
    def _folded(self) -> Sequence[Check]:
        """The checks without a flag that share a row, named by the first one, if not all have a row."""
        checks = self.reader.state.checks
        beside = self.list_columns < self.size.width
        fits = len(checks) <= self.size.height - _REST
        calm = [check for check in checks if not check.on]
        return [] if self._unfolded or beside or fits or len(calm) == len(checks) else calm

    def items(self, columns: int) -> list[Item]:
        checks, folded = self.reader.state.checks, self._folded
        if not folded:
            return [Item(check.rule, [check_row(check, columns - 2)]) for check in checks]
        shown = [Item(check.rule, flag_rows(check, columns - 2)) for check in checks if check.on]
        rest: Row = [("   ", "text"), (summary(folded), "ok"), (f" {DOT} enter lists them", "dim")]
        return [*shown, Item(None, [[]]), Item(folded[0].rule, [crop(rest, columns)])]

    def open_entry(self, name: str) -> None:
        if any(check.rule == name for check in self._folded[:1]):
            self._unfolded = True
            self.show()
        else:
            super().open_entry(name)

    @property
    def check(self) -> Check:
        return find_check(self.reader.state.checks, self.listed.cursor or "")

    def inspect(self, key: str | None, columns: int) -> Inspection:
        return inspect_check(self.run, self.problem, columns) if key else Inspection()

"""Every health check with its values, the worst first."""

from launcher.core.text import clean
from launcher.record.check import Check
from tui.kit.drawing.rows import Item, Row, paragraph
from tui.kit.keys import KEYS
from tui.kit.run_page import ItemsPage
from tui.kit.run_words import level_sign
from tui.kit.widgets.lists import Items

INDENT = 14  # cells before a name, and before the texts of a page


class ChecksScreen(ItemsPage):
    """The whole checklist of one run; it follows the run. Enter explains a check."""

    LEGENDS = ("Checks",)
    BINDINGS = KEYS["checks"]
    LIST = Items
    EMPTY = " no check judged yet"

    def items(self, columns: int) -> list[Item]:
        return [Item(check.rule, check_rows(check, columns - 2)) for check in self.reader.state.checks]


def level_words(check: Check) -> Row:
    """`▲ WARN`."""
    sign, role = level_sign(check.level)
    return [(f" {sign} {check.level.words:<10} ", "dim" if check.muted else role)]


def check_rows(check: Check, columns: int) -> list[Row]:
    """Level, name and rule in one row, the message below it, and since when."""
    rule = clean(check.rule) + (" · muted" if check.muted else "")
    rows: list[Row] = [[*level_words(check), (f"{clean(check.name)} ", "text"), (rule, "dim")]]
    message = clean(check.message)
    if check.on and check.since is not None:
        message = f"since step {check.since}: {message}"
    elif check.was is not None:
        message = f"{message} ({check.was} until step {check.cleared})"
    return rows + paragraph(message, "text" if check.on else "dim", columns + 1, indent=INDENT, least=16)

"""Every health check with its figures, the worst first."""

from collections.abc import Mapping
from textwrap import wrap
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer

from launcher.run.reader import RunReader
from launcher.text import clean
from tui.drawing.rows import Row
from tui.run_words import LEVELS, ORDER
from tui.widgets.header_line import HeaderLine
from tui.widgets.lines import Lines

POLL = 1.0  # seconds; the dashboard below reads the files
_INDENT = 13  # cells before a question


class ChecksScreen(Screen[None]):
    """The whole checklist of one run; it follows the run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,h,q", "dismiss", "back", tooltip="Back to the dashboard", key_display="h"),
    ]

    def __init__(self, reader: RunReader) -> None:
        super().__init__()
        self.reader = reader

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        with VerticalScroll():
            yield Lines()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._show()
        self.set_interval(POLL, self._show)

    def on_resize(self) -> None:
        self._show()

    def _show(self) -> None:
        reader = self.reader
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        checks = reader.state.get("checks") or []
        rows = [row for check in checks for row in check_rows(check, self.size.width - 2)]
        self.query_one(Lines).show(rows or [[(" no check has been judged yet", "dim")]])


def check_rows(check: Mapping[str, Any], columns: int) -> list[Row]:
    """Level, rule and question in one row, the message below it, and since when."""
    level = str(check.get("level"))
    sign, _, role = LEVELS.get(level, LEVELS["N-A"])
    rows: list[Row] = [
        [
            (f" {sign} {level:<9} ", role),
            (f"{clean(str(check.get('question', '')))} ", "text"),
            (clean(str(check.get("rule", ""))) + (" · muted" if check.get("muted") else ""), "dim"),
        ]
    ]
    message = clean(str(check.get("message") or ""))
    if check.get("since") is not None and ORDER.get(level, 0) >= ORDER["NOTICE"]:
        message = f"since step {check['since']}: {message}"
    elif check.get("was"):
        message = f"{message} ({check['was']} until step {check.get('cleared')})"
    quiet = ORDER.get(level, 0) < ORDER["NOTICE"]
    lines = wrap(message, max(columns - _INDENT, 16))
    return rows + [[(" " * _INDENT + line, "dim" if quiet else "text")] for line in lines]

"""The console of a run, full screen."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Log

from launcher.run.reader import LOG_LINES, RunReader
from tui.widgets.header_line import HeaderLine

POLL = 1.0  # seconds; the dashboard below reads the files


class LogScreen(Screen[None]):
    """The last 2,000 lines. It follows the newest line until one scrolls up; `end` follows again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,l,q", "dismiss", "back", tooltip="Back to the dashboard", key_display="l"),
        Binding(
            "up,down",
            "",
            "scroll",
            key_display="↑↓",
            tooltip="Scroll; page up, page down, home and end work too",
        ),
        Binding("end,f", "follow", "follow", tooltip="Follow the newest line", key_display="f"),
        Binding("p", "path", "where the file is", tooltip="Tell the path of the whole console"),
    ]

    def __init__(self, reader: RunReader) -> None:
        super().__init__()
        self.reader = reader
        self._seen = reader.log_count - len(reader.log)

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Log(max_lines=LOG_LINES)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._show()
        self.query_one(Log).focus()
        self.set_interval(POLL, self._show)

    def _show(self) -> None:
        reader = self.reader
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        new = min(reader.log_count - self._seen, len(reader.log))
        if new > 0:
            self._seen = reader.log_count
            self.query_one(Log).write_lines(line or " " for line in list(reader.log)[-new:])

    def action_follow(self) -> None:
        self.query_one(Log).scroll_end(animate=False)

    def action_path(self) -> None:
        attempt = self.reader.dir.last_attempt()
        if attempt is not None:
            self.notify(str(attempt.console), title="The whole console", markup=False)

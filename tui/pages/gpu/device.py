"""One device on a page of its own: its memory and utilization over the steps, and who holds the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult

from launcher.metrics.store import SeriesStore
from tui.kit.charted import ChartScreen, ViewLine
from tui.kit.entry_page import EntryScreen
from tui.kit.keys import KEYS
from tui.kit.page import HIDDEN

if TYPE_CHECKING:
    from tui.pages.gpu.screen import GpuScreen


class DeviceScreen(EntryScreen, ChartScreen, inherit_bindings=False):
    """The device that is selected on the page below; brackets show the other devices."""

    LEGENDS = ("Memory", "Charts")
    BINDINGS = KEYS["device"]
    source: GpuScreen

    def __init__(self, source: GpuScreen) -> None:
        super().__init__(source)
        self.lens = source.lens

    def body(self) -> ComposeResult:
        yield ViewLine(classes=HIDDEN)
        yield from super().body()

    def charted(self) -> tuple[SeriesStore, int | None]:
        return self.source.charted()

    def show_charts(self) -> None:
        super().show()

    def show(self) -> None:
        super().show()
        self.show_view()

"""A list next to the details of its selected entry, or above them, if there is room."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.timer import Timer
from textual.widget import Widget

from tui.kit.drawing.plot import Plot
from tui.kit.drawing.rows import Row
from tui.kit.page import HIDDEN, Page, ResultT, is_open
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import Listing

SPLIT_FROM = 110  # columns from which a page has an inspector
_BELOW = 10  # rows that a list must leave for an inspector below it
_SHARE = 0.45  # share of the columns for the inspector
CHARTS = 4  # maximum number in an inspector
_TWO_FROM = 64  # columns from which two charts fit next to each other
_LOW, _TALL = 18, 34  # rows below which charts are small, and from which they grow
_SMALL, _USUAL = 5, 8  # rows of charts
_CHART = 10  # minimum rows of a growing chart
_PAUSE = 0.06  # seconds without a move of the cursor, after which the entry is read


def inspector_columns(columns: int) -> int:
    """The width of the inspector on a page of `columns` cells; 0 below `SPLIT_FROM`."""
    return int(columns * _SHARE) if columns >= SPLIT_FROM else 0


FoundT = TypeVar("FoundT")
_UNREAD = object()  # the stamp of an entry that was not read


@dataclass(frozen=True)
class Inspection:
    """Everything about one entry: rows, charts below, and scrolling rows."""

    head: Sequence[Row] = ()
    charts: Sequence[Plot] = ()
    rows: Sequence[Row] = ()


class Inspector(Vertical, can_focus=False):
    """Shows an `Inspection` next to a list, or as the body of the entry's own page."""

    def compose(self) -> ComposeResult:
        yield Lines(id="inspected-head")
        with Container(id="inspected-charts"):
            for _ in range(CHARTS):
                yield MetricChart()
        with VerticalScroll(can_focus=False):
            yield Lines(id="inspected-rows")

    _shown = Inspection()

    def on_resize(self) -> None:
        self._arrange(len(self._shown.charts[:CHARTS]), len(self._shown.rows))

    def show(self, inspection: Inspection) -> None:
        """Replaces the content."""
        self._shown = inspection
        plots = inspection.charts[:CHARTS]
        self.query_one("#inspected-head", Lines).show(inspection.head)
        self.query_one("#inspected-rows", Lines).show(inspection.rows)
        self._arrange(len(plots), len(inspection.rows))
        for chart, plot in zip(self.query(MetricChart), plots, strict=False):
            chart.show(plot)

    def scroll_to_start(self) -> None:
        """Shows the first rows again, for another entry."""
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def _arrange(self, count: int, rows: int) -> None:
        """Puts charts into two columns if there is room, in the space left by the rows."""
        charts, (columns, height) = self.query_one("#inspected-charts", Container), self.size
        charts.set_class(not count, HIDDEN)
        across = 2 if columns >= _TWO_FROM and count > 1 else 1
        down = -(-count // across)
        if height < _LOW:
            down, wanted = 1, _SMALL
        elif height < _TALL:
            down, wanted = 1, max(_USUAL, height - rows - 6)
        else:
            wanted = max(_CHART * down, height - rows - 6)
        charts.styles.grid_size_columns, charts.styles.grid_size_rows = across, max(down, 1)
        charts.styles.height = min(wanted, max(height * 2 // 3, _SMALL))
        for index, chart in enumerate(self.query(MetricChart)):
            chart.display = index < min(count, across * down)


class Split(Horizontal):
    """Shows its children on the left and the inspector on the right, or below them."""

    rows = 1 << 16  # of the list, where the inspector may be below it
    below = False

    def compose(self) -> ComposeResult:
        yield Inspector()

    def on_resize(self) -> None:
        columns, inspector = inspector_columns(self.size.width), self.query_one(Inspector)
        self.below = not columns and self.size.height - self.rows > _BELOW
        inspector.display = self.below or bool(columns)
        inspector.styles.width = columns or "1fr"
        self.styles.layout = "vertical" if self.below else "horizontal"
        self.children[0].styles.height = self.rows + 1 if self.below else "1fr"


class Inspected(Page[ResultT]):
    """A page with a list. `inspect` returns the details of an entry for the page's `Split`."""

    STACKS: ClassVar[bool] = False  # whether the details may be below the list
    KEPT: ClassVar[int] = 50  # maximum number of cached entries

    _pending_inspection: Timer | None = None
    _reading = False  # an entry, in a thread; one at a time

    @cached_property
    def _entries_read(self) -> dict[str, tuple[object, Any]]:
        """Stamp and result of each entry read, newest last."""
        return {}

    def inspect(self, key: str | None, columns: int) -> Inspection:
        """The details of an entry in `columns` cells; without an entry, the page's. `read_once` reads files."""
        raise NotImplementedError

    def selected(self) -> str | None:
        """The entry under the cursor of the page's list."""
        return self.query_one(Listing).cursor

    def split(self, *left: Widget) -> ComposeResult:
        """The list with its widgets, and the inspector."""
        with Split(), Vertical():
            yield from left

    @property
    def list_columns(self) -> int:
        """The width of the list."""
        return self.size.width - inspector_columns(self.size.width)

    @property
    def inspects(self) -> bool:
        """Whether there is room for an inspector."""
        return bool(inspector_columns(self.size.width)) or any(split.below for split in self.query(Split))

    @property
    def scrolled(self) -> VerticalScroll:
        return self.query_one(Inspector).query_one(VerticalScroll) if self.inspects else super().scrolled

    def read_once(self, entry: str, read: Callable[[], FoundT], stamp: object = None) -> FoundT | None:
        """The result of `read`, run in a thread once per entry and stamp, with its errors caught.

        Until it ends, returns the result of an older stamp, or None; afterwards the page shows the entry again.
        """
        known, _ = self._entries_read.get(entry, (_UNREAD, None))
        if known != stamp and not self._reading:
            self._reading = True
            self.in_worker(partial(self._read_entry, entry, read, stamp), "inspect", exclusive=False)
        found: FoundT | None = self.found(entry)
        return found

    def found(self, entry: str) -> Any:
        """The latest result read for an entry, or None."""
        return self._entries_read.get(entry, (_UNREAD, None))[1]

    async def _read_entry(self, entry: str, read: Callable[[], Any], stamp: object) -> None:
        try:
            found = await asyncio.to_thread(read)
        finally:
            self._reading = False
        self._entries_read.pop(entry, None)
        self._entries_read[entry] = stamp, found
        while len(self._entries_read) > self.KEPT:
            del self._entries_read[next(iter(self._entries_read))]
        self.show_inspection()

    def show_inspection(self) -> None:
        """Shows the current entry under the cursor."""
        if self.left or not is_open(self):  # its widgets are removed one by one
            return
        for split in self.query(Split):
            if self.STACKS:
                split.rows = self.query_one(Listing).length
                split.on_resize()
            if self.inspects:
                columns = inspector_columns(self.size.width) or self.size.width
                found = self.inspect(self.selected(), columns - 1)  # the list above has its head
                split.query_one(Inspector).show(replace(found, head=()) if split.below else found)

    def inspect_soon(self) -> None:
        """Shows the entry once the cursor rests, so that a held key does not read every entry on its way."""
        if self._pending_inspection is not None:
            self._pending_inspection.stop()
        self._pending_inspection = self.set_timer(_PAUSE, self._inspect_other)

    def _inspect_other(self) -> None:
        if self.inspects and is_open(self):
            self.scrolled.scroll_home(animate=False)
        self.show_inspection()

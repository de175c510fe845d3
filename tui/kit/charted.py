"""The base of screens with charts, which share one view that keys move."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from launcher.core.format import duration, number
from launcher.metrics.store import SeriesStore
from tui.kit.charts.axes import TOKENS_KEY
from tui.kit.charts.figures import legend as marks_legend
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import ACROSS, SMOOTHINGS, STEP, TIME, TOKENS, View, Whole
from tui.kit.drawing.line_chart import GUTTER
from tui.kit.drawing.rows import Row, crop, spread, width
from tui.kit.page import HIDDEN, Page
from tui.kit.widgets.chart_widgets import TALL, MetricChart
from tui.kit.widgets.painted import Painted

_RESET = " * resets "
_ROOMY = 24  # rows from which the legend of the marks has one


class ViewLine(Painted):
    """One line above the charts; hidden for the default view."""

    words: Sequence[str] = ()
    cursor = ""
    legend: Row = []  # noqa: RUF012 (replaced, never changed)

    def show(self, words: Sequence[str], cursor: str, legend: Row) -> None:
        """`words` describe the view, `legend` the marks; `cursor` is the step under the cursor, empty without one."""
        self.words, self.cursor, self.legend = words, cursor, legend
        self.set_class(not words and not cursor and not legend, HIDDEN)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        left: Row = [(f" {self.cursor} ", "live")] if self.cursor else []
        left += [(" view ", "dim"), (" · ".join(self.words), "text")] if self.words else []
        right: Row = [(_RESET, "dim")] if left else []
        for more in ([*self.legend, *right], right):
            if width(left) + width(more) <= columns:
                return [spread(left, more, columns)]
        return [crop(left, columns)]


_PAN = 0.5  # share of the window
HEIGHTS: list[tuple[int, str]] = [
    (0, "-sliver"),
    (5, "-tiny"),
    (9, "-low"),
    (18, "-short"),
    (24, "-home"),
    (TALL, "-tall"),
]


class ChartScreen(Page[None]):
    """Has a `ViewLine` and `MetricChart`s, whose plots it shows through `lens`; screens of a run share it."""

    lens: Lens

    def charted(self) -> tuple[SeriesStore, Any] | None:
        """The metrics to move over, and the planned number of steps; None without metrics."""
        raise NotImplementedError

    def show_charts(self) -> None:
        """Shows all charts through the lens."""
        raise NotImplementedError

    def called_for(self) -> Mapping[str, str]:
        return {"point(-1)": "move", "back": "close cursor"} if self.lens.view.cursor is not None else {}

    def drop_cursor(self) -> bool:
        """Removes the cursor. Returns whether there was one."""
        if self.lens.view.cursor is None:
            return False
        self._look(replace(self.lens.view, cursor=None))
        return True

    def action_back(self) -> None:
        """Removes the cursor; without one, leaves the page."""
        if not self.drop_cursor():
            self.dismiss()

    def show_view(self) -> None:
        """Shows how the view differs from the default."""
        found = self.charted()
        view = self.lens.view
        words, cursor = [], ""
        if found is not None:
            words = view.words(self.lens.whole(*found))
            cursor = self._cursor_words(found[0]) if view.cursor is not None else ""
        roomy = self.app.size.height >= _ROOMY
        legend = marks_legend(mark for chart in self.query(MetricChart) if chart.display for mark in chart.plot.seen)
        legend = legend if roomy else []
        self.query_one(ViewLine).show(words, cursor, legend)
        self.update_footer()

    def action_zoom(self, factor: float) -> None:
        if found := self._moving():
            self._look(self.lens.view.zoomed(factor, found[1]))

    def action_pan(self, direction: int) -> None:
        if found := self._moving():
            self._look(self.lens.view.panned(_PAN * direction, found[1]))

    def action_point(self, direction: int) -> None:
        """Moves the cursor by one column, to a trained step."""
        found = self._moving()
        if not found:
            return
        store, whole = found
        view, steps = self.lens.view, store.steps
        first, last = view.shown(whole)
        if view.cursor is None:
            at = bisect_right(steps, last) - 1
        else:
            # columns of curve of the charts
            widths = [chart.size.width for chart in self.query(MetricChart) if chart.size.width]
            stride = max((last - first) // max(min(widths, default=0) - GUTTER, 1), 1)
            if direction > 0:
                at = bisect_left(steps, view.cursor + stride)
            else:
                at = bisect_right(steps, view.cursor - stride) - 1
        self._point(at, found)

    def action_stride(self, distance: int) -> None:
        """Moves the cursor by `distance` steps, from the newest one without a cursor."""
        if found := self._moving():
            steps, cursor = found[0].steps, self.lens.view.cursor
            self._point(bisect_left(steps, steps[-1] if cursor is None else cursor) + distance, found)

    def action_go(self) -> None:
        """Asks for a step and puts the cursor there."""
        if self._moving():
            self.in_worker(self._ask_step, "go")

    async def _ask_step(self) -> None:
        from tui.kit.dialogs.ask import AskScreen

        ask = AskScreen("Go to step", "", lambda text: None if text.isdecimal() else "type a number")
        reply = await self.app.push_screen_wait(ask)
        if reply is not None and (found := self._moving()):
            steps, step = found[0].steps, int(reply)
            at = min(bisect_left(steps, step), len(steps) - 1)
            nearest = min(steps[max(at - 1, 0)], steps[at], key=lambda each: abs(each - step))
            self._look(self.lens.view.pointing(nearest, found[1]))

    def _point(self, at: int, found: tuple[SeriesStore, Whole]) -> None:
        """The view with the cursor at the step of this index, or at the nearer end of the run."""
        steps = found[0].steps
        self._look(self.lens.view.pointing(steps[min(max(at, 0), len(steps) - 1)], found[1]))

    def action_fit(self) -> None:
        view = self.lens.view
        self._look(replace(view, window=None, follows=False, fitted=not view.fitted or view.window is not None))

    def action_usual_view(self) -> None:
        self._look(View())

    def action_log_scale(self) -> None:
        self._look(replace(self.lens.view, log=not self.lens.view.log))

    def action_smooth(self) -> None:
        view = self.lens.view
        at = SMOOTHINGS.index(view.smoothing)
        self._look(replace(view, smoothing=SMOOTHINGS[(at + 1) % len(SMOOTHINGS)]))

    def action_across(self) -> None:
        """Changes to the next x axis with values."""
        found = self.charted()
        if found is None:
            return
        at = ACROSS.index(self.lens.view.across)
        for across in (*ACROSS[at + 1 :], *ACROSS[:at]):
            if across == STEP or self.lens.axis(found[0], across) is not None:
                self._look(replace(self.lens.view, across=across))
                return
            self.notify(
                "No time axis: this log has no times"
                if across == TIME
                else f"No token axis: this run logs no {TOKENS_KEY}"
            )

    def _moving(self) -> tuple[SeriesStore, Whole] | None:
        """The metrics and range of the view; None without steps to move over."""
        found = self.charted()
        if found is None or not found[0].steps:
            return None
        return found[0], self.lens.whole(*found)

    def _look(self, view: View) -> None:
        self.lens.view = view
        self.show_charts()
        self.show_view()

    def _cursor_words(self, store: SeriesStore) -> str:
        """`step 120 · 2h 05m · 1.2M tokens`."""
        step = self.lens.view.cursor
        assert step is not None
        found = [f"{store.unit} {step}"]
        for across, words in ((TIME, duration), (TOKENS, lambda count: f"{number(count)} tokens")):
            axis = self.lens.axis(store, across)
            found += [words(axis.place(step))] if axis else []
        return " · ".join(found)

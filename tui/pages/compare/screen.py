"""Two to eight runs in the same charts, the better one, and their differing settings."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textual import work
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll

from launcher.compare.comparison import Compared, groups, notes
from launcher.compare.contrast import Contrast, assumptions, contrasts
from launcher.metrics.names import FEW, charts
from launcher.metrics.store import SeriesStore
from launcher.record.layout import RunDir
from launcher.record.state import ALIVE
from launcher.runs.watch.run_settings import differences
from tui.kit.charted import HEIGHTS, ChartScreen, ViewLine
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import STEP
from tui.kit.keys import KEYS
from tui.kit.navigation import navigation
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lines import Lines
from tui.pages.compare.compare_rows import contrast_lines, difference_lines, fact_lines, overlay

POLL = 2.0  # seconds


class CompareScreen(ChartScreen):
    """Follows the runs. If charts and tables do not fit together, `tab` switches between them."""

    VERTICAL_BREAKPOINTS = HEIGHTS
    LEGENDS = ("Runs", "Rules", "Charts")
    BINDINGS = KEYS["compare"]

    def __init__(self, runs: Sequence[Path]) -> None:
        super().__init__()
        self.lens = Lens()
        self.directories = runs
        self.runs: list[Compared] = []
        self.contrasts: list[Contrast] = []
        self._live = False

    def compose(self) -> ComposeResult:
        yield Lines(id="compared")
        yield ViewLine()
        with Container(id="charts"):
            for index in range(FEW):
                yield MetricChart(id=f"chart-{index}")
        with VerticalScroll(id="settings", can_focus=False):
            yield Lines(id="differences")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one("#compared", Lines).show([[(" Reading the runs …", "dim")]])
        self._open()

    @work(exclusive=True)
    async def _open(self) -> None:
        """Reads the runs in a thread (ten thousand steps take half a second), then follows them."""
        self.runs = await asyncio.to_thread(_read, self.directories)
        self._show()
        await self._judge()
        self.set_interval(POLL, self._poll)

    def _poll(self) -> None:
        changed = [run.poll() for run in self.runs]
        self._show_facts()
        if any(changed):
            self.show_charts()
            self.show_view()
            self.in_worker(self._judge, "judge")

    async def _judge(self) -> None:
        """Compares the metrics in a thread: thousands of steps of eight runs take a second."""
        self.contrasts = await asyncio.to_thread(contrasts, self.runs)
        self._show_tables()

    def on_resize(self) -> None:
        if self.runs:
            self._show()

    def charted(self) -> tuple[SeriesStore, Any] | None:
        return (self._longest.store, self._end) if self.runs else None

    @property
    def _end(self) -> int | None:
        """The last step, once all runs have ended."""
        return None if self._live else self._longest.store.last_step

    @property
    def _longest(self) -> Compared:
        """The run with the largest x."""

        def reach(run: Compared) -> float:
            if self.lens.view.across == STEP:
                return run.store.last_step or 0
            axis = self.lens.axis(run.store, self.lens.view.across)
            return axis.end if axis else 0.0

        return max(self.runs, key=reach)

    def show_charts(self) -> None:
        if not self.runs:  # not read yet
            return
        figures = charts(*(run.store for run in self.runs))
        for index, figure in enumerate(figures[:FEW]):
            chart = overlay(figure, self.runs, self.lens, self._longest, self._end)
            self.query_one(f"#chart-{index}", MetricChart).show(chart)

    def _show(self) -> None:
        self._show_facts()
        self.show_charts()
        self.show_view()
        self._show_tables()

    def _show_tables(self) -> None:
        found, columns = differences([run.info for run in self.runs]), self.size.width - 1
        rows = contrast_lines(self.contrasts, assumptions(self.runs, self.contrasts), columns)
        rows += difference_lines(self.runs, found, notes(self.runs), columns)
        self.query_one("#differences", Lines).show(rows)

    def _show_facts(self) -> None:
        infos = [run.info for run in self.runs]
        facts = [run.facts() for run in self.runs]
        self._live = any(fact.state in ALIVE for fact in facts)
        lines = fact_lines(facts, groups(infos), self.size.width)
        self.query_one("#compared", Lines).show(lines)

    def refusal(self, action: str) -> str | None:
        return "both are on the screen" if action == "page" and self.has_class("-tall") else None

    def called_for(self) -> Mapping[str, str]:
        pages = {"page": "charts" if self.has_class("-settings") else "results"}
        return pages if self.lens.view.cursor is None else {**pages, "point(-1)": "move", "leave": "close cursor"}

    def action_page(self) -> None:
        self.toggle_class("-settings")
        self.update_footer()

    def action_leave(self) -> None:
        if self.drop_cursor():
            return
        if len(self.app.screen_stack) > 2:  # the app's own is the first
            self.dismiss()
        else:  # opened by `ppo-tui compare`
            navigation(self.app).show_runs(self, read_only=False)


def _read(directories: Sequence[Path]) -> list[Compared]:
    runs = [Compared(RunDir(directory)) for directory in directories]
    for run in runs:
        run.poll()
    return runs

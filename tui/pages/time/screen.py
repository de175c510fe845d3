"""Step time: lanes, stages, the limits of the GPU, and the setting that would save most."""

import asyncio

from textual import work
from textual.app import ComposeResult

from launcher.record.fix import Offer
from launcher.timing.report import Report, Timing
from launcher.timing.words import problems
from tui.kit.actions.editing import edit_offer
from tui.kit.actions.run_actions import begin_faster
from tui.kit.drawing.rows import Row, paragraph
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView, navigation
from tui.kit.run_page import RunPage
from tui.kit.widgets.painted import Painted
from tui.pages.time.rows import advice_block, lane_rows, limit_rows, rough_rows, stage_rows, start_rows, title_row

NOTHING = "No step has ended yet. This page shows where the time of a step goes, on each rank and replica."
STEPLESS, TIMELESS = "The run ended before its first step.", "The run logs no times of its steps."
_LANES = 0.4  # share of the height for the lanes
_TALL = 30  # rows with room for the start


class TimeView(Painted):
    """One step, or the reason why there is none."""

    report: Report | str = NOTHING

    def show(self, report: Report | str) -> None:
        self.report = report
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        report = self.report
        if isinstance(report, str):
            return paragraph(report, "dim", columns)
        gap: list[Row] = [[]] if rows >= 18 else []
        lanes = max(round(rows * _LANES), 3)
        top = [title_row(report, columns), *gap]
        top += lane_rows(report.time, columns, lanes) if report.time else [*rough_rows(report, columns)]
        top += start_rows(report, columns) if rows >= _TALL else []
        end = [*gap, *limit_rows(report, columns), *advice_block(report, columns, 8 if rows >= _TALL else 4)]
        room = rows - len(top) - len(end) - len(gap)
        if room < 3:  # the advice matters more than a list of two stages
            return [*top, *end][:rows]
        return [*top, *gap, *stage_rows(report, columns, room), *end][:rows]


class TimeScreen(RunPage):
    """Follows the newest step; the arrows show another one."""

    PAGE_NAME = "Time"
    LEGENDS = ("Stages",)
    BINDINGS = KEYS["time"]

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self.timing = Timing(self.reader.dir)
        self.step: int | None = None  # None: the newest
        self._reading = False

    def body(self) -> ComposeResult:
        yield TimeView()

    def poll(self) -> None:
        self.show()
        if not self._reading:
            self._reading = True
            self.read_spans()

    @work(group="spans")
    async def read_spans(self) -> None:
        """Reads in a thread, one look after another: the first may have some megabytes."""
        try:
            fresh = await asyncio.to_thread(self.timing.poll, self.reader.state.going)
        finally:
            self._reading = False
        if fresh:
            self.show_body()

    def show_body(self) -> None:
        series, ended = self.reader.series, self.reader.state.has_ended
        nothing = TIMELESS if series.last_step is not None else STEPLESS if ended else NOTHING
        self.query_one(TimeView).show(self.timing.report(series, self.step, self.reader.machine.gpu) or nothing)

    def action_step(self, distance: int) -> None:
        known = self.timing.steps(self.reader.series)
        if not known:
            return
        now = self.step if self.step in known else known[-1]
        at = min(max(known.index(now) + distance, 0), len(known) - 1)
        self.step = None if at == len(known) - 1 else known[at]
        self.show_body()

    def action_newest(self) -> None:
        self.step = None
        self.show_body()

    @property
    def _offer(self) -> Offer | None:
        """The first fix with a setting."""
        report = self.query_one(TimeView).report if self.is_mounted else ""
        found = problems(report) if isinstance(report, Report) else ()
        offers = (offer for problem in found for offer in problem.offers)
        return next((offer for offer in offers if offer.field), None)

    def action_edit(self) -> None:
        edit_offer(self.app, self.run, self._offer)

    @work(group="try", exclusive=True)
    async def action_try_fix(self) -> None:
        if await begin_faster(self.app, self.reader.dir):
            navigation(self.app).show("trials", self.run)

    def refusal(self, action: str) -> str | None:
        if action == "try_fix" and self._offer is None:
            return "no setting to try"
        if action in ("step", "newest") and not self.timing.steps(self.reader.series):
            return "no step has times"
        return super().refusal(action)

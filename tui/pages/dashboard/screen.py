"""One run on one page: state, verdict, charts, checks, memory, log."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.screen import ModalScreen

from launcher.metrics.names import pinned
from launcher.record.state import RunState
from launcher.runs.watch.history import Missed
from launcher.runs.watch.reader import RunReader
from tui.kit.charted import HEIGHTS, ViewLine
from tui.kit.charts.run_charts import RunCharts
from tui.kit.keys import KEYS
from tui.kit.navigation import navigation
from tui.kit.page import HIDDEN
from tui.kit.widgets.chart_widgets import WIDE, Figures, MemoryChart, PinnedCharts
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.log_tail import LogTail
from tui.kit.widgets.painted import Grown
from tui.pages.dashboard.attention import Attention
from tui.pages.dashboard.checklist import Checklist
from tui.pages.dashboard.diagnosis_panel import DiagnosisPanel
from tui.pages.dashboard.head_lines import MOST, AwayPanel, Banner, DemoLine, ProgressLine, TrackerLine
from tui.pages.dashboard.memory_line import Memory
from tui.pages.dashboard.room import DIAGNOSED, SHARES, Share, share
from tui.pages.dashboard.run_pages import RunPages
from tui.pages.dashboard.startup import StartupList
from tui.pages.dashboard.timing_split import TimingSplit

POLL = 1.0  # seconds
AT_ONCE = 0.5  # seconds that the first frame waits for the run to be read
CALM = 10.0  # seconds after which the changing machine numbers are painted without a step
STARTING = 2.0  # seconds before the first step, while stage times advance
_LINES = 3  # rows of header, progress and keys
PACE = 2.9  # seconds between steps that are shown: three at once cost the bytes of one
EVERYTHING = frozenset({"state", "steps", "events", "machine", "log"})
WIDTHS: list[tuple[int, str]] = [(0, "-strip"), (30, "-narrow"), (64, "-normal"), (WIDE, "-wide")]


class DashboardScreen(RunPages):
    """Follows one run directory. Leaving it changes nothing for the run."""

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    LEGENDS = ("Rules", "Charts")
    BINDINGS = KEYS["dashboard"]
    PARTS = (
        *(HeaderLine, ProgressLine, Banner, TrackerLine, AwayPanel, ViewLine, Figures, PinnedCharts, StartupList),
        *(DiagnosisPanel, Checklist, MemoryChart, TimingSplit, Memory, LogTail, DemoLine),
    )

    def __init__(self, directory: Path, *, read_only: bool) -> None:
        super().__init__(directory, read_only=read_only)
        self.attention: Attention | None = None
        self._missed: Missed | None = None  # missed events, until closed
        self.charts: RunCharts | None = None
        self._was_roomy = False
        self._refused: object = None  # refused keys
        self._adopting = False
        self._charted: object = None
        self._charted_size: Size | None = None  # size of the first frame, whose charts Textual's first resizes repeat
        self._unshown: set[str] = set()
        self._machine_shown = self._steps_shown = 0.0  # monotonic clock
        self._pins = pinned()
        self._read = asyncio.Event()
        self._shared: Share | None = None  # how the rows are shared now

    def compose(self) -> ComposeResult:
        for length, steps in zip(self.app.size, (WIDTHS, HEIGHTS), strict=True):
            # as Textual does after the first layout: then all widgets would take their styles again
            self.add_class(max(step for step in steps if step[0] <= length)[1])
        yield HeaderLine()
        yield ProgressLine()
        yield Banner()
        yield TrackerLine(classes=HIDDEN)
        yield AwayPanel(classes=HIDDEN)
        yield ViewLine(classes=HIDDEN)
        yield Figures(id="charts")
        yield PinnedCharts(classes=HIDDEN)
        yield DiagnosisPanel(classes=HIDDEN)
        yield StartupList()
        with Horizontal(id="beside"):
            yield Checklist()
            yield MemoryChart()
        yield TimingSplit(classes=HIDDEN)
        yield Memory()
        yield LogTail()
        yield DemoLine(classes=HIDDEN)
        yield KeyBar()

    async def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self._open()
        # Until this ends nothing is laid out: one frame with figures in place of an empty one and three of parts.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._read.wait(), AT_ONCE)

    @work(exclusive=True)
    async def _open(self) -> None:
        """Reads the run in a thread (a long one takes a second), then follows it."""
        reader = await asyncio.to_thread(RunReader, self.directory)
        await asyncio.to_thread(reader.poll)
        if not self.whole:  # closing: its handlers would not find their widgets
            return
        self.reader = reader
        self.attention, self.charts = Attention(self.app, reader), RunCharts(reader, self.lens)
        self._show(EVERYTHING)
        self._show_missed(self.attention.missed)
        self.attention.update()
        self._read.set()
        self.set_interval(POLL, self._poll)
        await self._explain()

    def _show_missed(self, missed: Missed | None) -> None:
        self._missed = missed
        self.query_one(AwayPanel).show(missed, time.time())
        checklist = self.query_one(Checklist)
        checklist.hints = missed is None
        checklist.redraw()
        self._share_rows()
        self.update_footer()

    def called_for(self) -> Mapping[str, str]:
        if self._missed is not None:
            return {"explain": "list events", "back": "close"}
        return super().called_for() or ({"diagnosis": "diagnosis"} if self.has_class("-diagnosed") else {})

    def _poll(self) -> None:
        assert self.reader is not None and self.attention is not None
        if not self.whole:
            return
        self._unshown |= self.reader.poll()
        if self.reader.state.driver_alive is not None and not self._adopting:  # its supervisor was killed
            self._adopting = True
            self._adopt()
        # Below a page that covers it, each change would make Textual paint that page's cells again.
        if self._unshown and (self.is_active or isinstance(self.app.screen, ModalScreen)):
            now = time.monotonic()
            pause = STARTING if self.has_class("-starting") else CALM
            calm = "steps" not in self._unshown and now - self._machine_shown < pause
            later = self._unshown & {"machine"} if calm else set()
            if "steps" not in self._unshown or not self.live or now - self._steps_shown >= PACE:
                self._show(self._unshown - later)
                self._unshown = later
        self.attention.update()
        if self.reader.unexplained and self.reader.state.failed:
            self.in_worker(self._explain, "explain", exclusive=False)

    @work(group="adopt")
    async def _adopt(self) -> None:
        from launcher.runs.supervise.spawn import adopt

        assert self.reader is not None
        await asyncio.to_thread(adopt, [(self.reader.dir, self.reader.state)])
        self._adopting = False

    async def _explain(self) -> None:
        """Finds in a thread why a run failed; explains errors of a live run only on request."""
        assert self.reader is not None
        if self.reader.state.failed:
            await asyncio.to_thread(self.reader.explain)
        self._show_diagnosis()
        self._share_rows()

    def _show_diagnosis(self) -> None:
        reader = self.reader
        assert reader is not None
        found = reader.problem if reader.state.failed or reader.state.standstill is not None else None
        self.set_class(found is not None, "-diagnosed")
        self.query_one(DiagnosisPanel).show(found, reader.state.error or reader.state.stall)
        refused = reader.refusals, reader.trouble is not None
        if refused != self._refused:  # the footer paints itself whole
            self._refused = refused
            self.refresh_bindings()
        self.update_footer()

    def on_resize(self) -> None:
        if self.app.size != self._charted_size:
            self.show_charts()
        else:  # the class of the new size, which Textual sets after the first of two resizes, may show it
            self._show_memory_chart()
        self.show_view()
        if self.roomy != self._was_roomy:
            self._was_roomy = self.roomy
            self.refresh_bindings()

    def on_screen_resume(self) -> None:
        if not self.whole:  # the program ends
            return
        self._pins = pinned()
        if self.reader is not None and self._unshown:
            self._show(self._unshown)
            self._unshown = set()
        self.show_charts()  # a page of the run may have changed the view
        self.show_view()

    def show_charts(self) -> None:
        """Shows the pinned charts below the others if there is room; otherwise `tab` shows them instead."""
        if self.charts is None:
            return
        self._charted_size = self.app.size
        self.query_one(Figures).show(self.charts)
        self._show_memory_chart()
        self.query_one(PinnedCharts).show(self._pins, self.charts)
        if not self._pins:
            self.remove_class("-pins")

    def show_view(self) -> None:
        super().show_view()
        self.query_one(ProgressLine).set_class(not self.query_one(ViewLine).has_class(HIDDEN), "-viewed")
        self._share_rows()

    def _share_rows(self) -> None:
        """Gives the charts the rows left by the other parts."""
        shared = self._sharing()
        tall = shared if self.has_class("-tall") else None
        # one change for both, and none that does nothing: all widgets take their styles again
        self.update_classes({"-airless": bool(tall and not tall.air), "-timeless": bool(tall and not tall.timing)})
        if shared == self._shared:
            return
        self._shared = shared
        for part in (self.query_one(Checklist), self.query_one(MemoryChart)):
            part.styles.height = shared.checks if shared else None
        self.query_one(LogTail).styles.height = shared.log if shared else None

    def _sharing(self) -> Share | None:
        """The share of rows; None if only the style sheet sets the heights."""
        height = next((name for name in SHARES if self.has_class(name)), None)
        charts, pins = self.query_one(Figures), self.query_one(PinnedCharts)
        if height is None or self.has_class("-starting") or not (charts.display or pins.display):
            return None
        grid, diagnosed = charts.styles.grid_size_rows or 1, self.has_class("-diagnosed")
        if height == "-tall" and pins.display:
            grid += 2 if pins.has_class("-two-rows") else 1
        away, columns = self.query_one(AwayPanel), self.size.width
        own = away.get_content_height(self.size, self.size, columns) if away.display else 0
        for part in self.query(Grown):
            most = part.styles.max_height
            if part.display:
                own += min(part.wanted(columns), (most and most.cells) or MOST)
        return share(
            [
                each._replace(checks=min(each.checks, DIAGNOSED[height])) if diagnosed else each
                for each in SHARES[height]
            ],
            self.size.height - _LINES - self.query_one(ViewLine).display - own,
            grid,
            lines=self.query_one(LogTail).count(SHARES[height][0].log),
            timed=not diagnosed and self.query_one(TimingSplit).last is not None,
        )

    def _show_memory_chart(self) -> None:
        chart = self.query_one(MemoryChart)
        if self.reader is not None and chart.display:
            chart.show(self.reader, self.lens)

    def on_unmount(self) -> None:
        if self.attention is not None:
            self.attention.note()

    def _show(self, changed: set[str] | frozenset[str]) -> None:
        """Passes the changes to the widgets, which paint the different cells."""
        reader = self.reader
        assert reader is not None
        state = reader.state
        self.set_class(reader.series.last_step is None, "-stepless")
        # the latest time that the supervisor recorded, in a sample (every second) or in the state (at changes)
        now = max([*reader.machine.times[-1:], *([reader.state.updated] if reader.state.updated else [])], default=None)
        self.query_one(HeaderLine).show(reader.name, reader.id, state, now)
        startup = reader.startup(now)
        # of a resumed attempt that failed, the charts of the earlier ones tell more
        self.set_class(startup is not None and (state.live or reader.series.last_step is None), "-starting")
        self.query_one(ProgressLine).show(state, startup)
        self.query_one(StartupList).show(startup, reader)
        if "replay_of" in reader.head.keys:
            from launcher.runs.act.demo import line

            self.query_one(DemoLine).show(line(reader.info, state))
        charted = _charted(state)
        charts = bool(changed & {"steps", "events"}) or charted != self._charted
        if charts:
            self._charted = charted
            self.show_charts()
            self.show_view()
        if "state" in changed:
            self.query_one(Banner).show(state)
            self.query_one(TrackerLine).show(state.trackers)
            self.query_one(Checklist).show(state.checks)
            self._show_diagnosis()
        if "machine" in changed:
            self._machine_shown = time.monotonic()
            self.query_one(Memory).show(reader.machine.latest, on_cpu=reader.head.on_cpu)
            if not charts:
                self._show_memory_chart()
        if "steps" in changed:
            self._steps_shown = time.monotonic()
            self.query_one(TimingSplit).show(reader.series)
        if "log" in changed:
            self.query_one(LogTail).show(reader.log)
        self._share_rows()

    @property
    def live(self) -> bool:
        """Whether the run can still be stopped."""
        return self.reader is not None and self.reader.state.going

    @property
    def live_run(self) -> str:
        """The run that continues after the screen closes; empty without one."""
        return self.directory.name if self.live else ""

    def refusal(self, action: str) -> str | None:
        if action == "page":
            below = "the pinned charts are below the others" if self.has_class("-tall") else None
            return below if self._pins else "no metric is pinned; press p in the metrics (m)"
        return super().refusal(action)

    def action_choose(self, distance: int) -> None:
        """Moves through the diagnosis, then through the checks below, and back."""
        panel, checks = self.query_one(DiagnosisPanel), self.query_one(Checklist)
        if not panel.size or (checks.cursor is not None and (distance > 0 or checks.cursor != checks.first)):
            checks.move(distance)
        elif checks.cursor is not None:
            checks.leave()
            panel.choose(panel.names[-1])
        elif not panel.move(distance) and distance > 0 and checks.size:
            panel.choose(None)
            checks.move(distance)

    def action_back(self) -> None:
        """Goes one step back: closes the missed events, otherwise removes the cursor or choice, otherwise leaves."""
        checklist = self.query_one(Checklist)
        if self._missed is not None:
            self._show_missed(None)
        elif not self.drop_cursor() and not checklist.leave():
            diagnosis = self.query_one(DiagnosisPanel)
            if diagnosis.cursor is None:
                self.action_runs()
            diagnosis.choose(None)

    @property
    def topic(self) -> str | None:
        checks, found = self.query_one(Checklist), self.query_one(DiagnosisPanel).found
        return found.topic if found is not None and checks.cursor is None else checks.chosen

    def action_explain(self) -> None:
        checks, panel = self.query_one(Checklist), self.query_one(DiagnosisPanel)
        if self._missed is not None:
            self.action_back()
            self.action_show("events")
        elif panel.found is not None and checks.cursor is None:
            self._open_diagnosis(panel.cursor)
        elif self.reader is not None and (rule := checks.chosen) is not None:
            navigation(self.app).show("check", self.view, rule)

    def _open_diagnosis(self, entry: str | None) -> None:
        from tui.kit.actions.editing import open_entry

        if entry is not None:
            open_entry(self.app, self.view, entry)
        else:
            self.action_show("diagnosis")

    def action_diagnosis(self) -> None:
        self._open_diagnosis(None)

    def action_edit(self) -> None:
        """Opens the editor with the run's settings, at the chosen fix's value."""
        from tui.kit.actions.editing import edit_entry

        entry = self.query_one(DiagnosisPanel).cursor
        if entry is not None and self.reader is not None:
            edit_entry(self.app, self.view, entry)
        else:
            super().action_edit()

    def action_page(self) -> None:
        self.toggle_class("-pins")


class OpenedDashboard(DashboardScreen):
    """The dashboard opened by a command, without the list: q quits."""

    BINDINGS = KEYS["opened dashboard"]


def _charted(state: RunState) -> object:
    """The part of the state in the charts. The other part changes every second, and drawing six charts takes 10 ms."""
    return state.state, state.total, [(check.rule, check.level) for check in state.checks]

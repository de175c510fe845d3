"""One health check: what it means, its figures with their limits, since when, and what to try."""

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll

from launcher.core.errors import UserError
from launcher.record.check import Check
from launcher.record.events import LevelChange
from launcher.runs.watch.history import stall_report
from launcher.runs.watch.reader import ERRORS, RunReader
from tui.kit.actions.editing import edit_run, field_of
from tui.kit.charts.check import check_plot
from tui.kit.diagnosis_words import explained
from tui.kit.keys import KEYS
from tui.kit.navigation import navigation
from tui.kit.offers import READ_ONLY, run_refusal
from tui.kit.page import Page
from tui.kit.widgets.charts import MetricChart
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.painted import HIDDEN
from tui.pages.checks.words import head, page, stalled

POLL = 1.0  # seconds; the dashboard below reads the files
CHARTS = 4
STALL = "STALL-1"
WIDTHS: list[tuple[int, str]] | None = [(0, "-narrow"), (64, "-normal")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (18, "-home"), (36, "-tall")]


class CheckDetailScreen(Page[None]):
    """Follows the run; left and right show its other checks."""

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    LEGENDS = ("Checks", "Charts")
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["check"]]

    def __init__(self, reader: RunReader, rule: str, *, read_only: bool) -> None:
        super().__init__()
        self.reader, self.rule, self.read_only = reader, rule, read_only

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Lines(id="head")
        with Container(id="check-charts"):
            for index in range(CHARTS):
                yield MetricChart(id=f"check-{index}")
        with VerticalScroll(can_focus=False):
            yield Lines(id="page")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self._poll()
        self.set_interval(POLL, self._poll)

    def on_resize(self) -> None:
        self._show()

    @property
    def check(self) -> Check:
        """The row of the checklist that is shown."""
        return next((check for check in self.reader.state.checks if check.rule == self.rule), Check(self.rule))

    def refusal(self, action: str) -> str | None:
        if action == "diagnosis" and self.rule != ERRORS:
            return f"only of the check {ERRORS}"
        if action == "edit" and self.read_only:
            return READ_ONLY
        return run_refusal(action, self.reader, read_only=self.read_only)

    def _poll(self) -> None:
        self._show()
        if self.rule == ERRORS and self.reader.unexplained:
            self.run_worker(self._explain(), group="explain")

    async def _explain(self) -> None:
        """What the errors so far mean."""
        await asyncio.to_thread(self.reader.explain)
        self._show()

    def _show(self) -> None:
        reader, check, columns = self.reader, self.check, self.size.width
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        rules = [each.rule for each in reader.state.checks]
        place = f"{rules.index(self.rule) + 1}/{len(rules)}" if self.rule in rules else ""
        levels = [event.what for event in reader.events if isinstance(event.what, LevelChange)]
        changes = [change for change in levels if change.rule == self.rule]
        self.query_one("#head", Lines).show(head(check, place, columns))
        editable = field_of(check.fixes)[0] if check.on and reader.info.preset and not self.read_only else None
        rows = page(check, changes, editable, columns - 1)
        if self.rule == ERRORS and (found := reader.explanation) is not None:
            rows = [*explained(found, columns - 1), [], *rows]
        if self.rule == STALL and (report := stall_report(reader.dir)) is not None:
            rows = [*rows, [], *stalled(report, columns - 1)]
        self.query_one("#page", Lines).show(rows)
        keys = check.keys[:CHARTS]
        self.set_class(not keys, "-chartless")
        self.query_one("#check-charts").set_class(len(keys) == 1, "-single")
        for index in range(CHARTS):
            chart = self.query_one(f"#check-{index}", MetricChart)
            chart.set_class(index >= len(keys), HIDDEN)
            if index < len(keys):
                bounds = [bound for bound in check.bounds if bound.series == index]
                chart.show(check_plot(keys[index], reader.series, reader.state.total, bounds, changes))

    def action_neighbour(self, distance: int) -> None:
        rules = [check.rule for check in self.reader.state.checks]
        if self.rule in rules:
            self.rule = rules[(rules.index(self.rule) + distance) % len(rules)]
            self.query_one(VerticalScroll).scroll_home(animate=False)
            self.refresh_bindings()
            self._poll()

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_diagnosis(self) -> None:
        navigation(self.app).show_diagnosis(self.reader, read_only=self.read_only)

    def action_edit(self) -> None:
        if self.rule == ERRORS and self.reader.explanation is not None:
            from tui.kit.actions.diagnosis import edit_entry

            edit_entry(self, self.reader, "", read_only=False)
        else:
            edit_run(self.app, self.reader.info, field_of(self.check.fixes if self.check.on else ())[1])

    def action_mute(self) -> None:
        from launcher.record.control import request

        muted = self.check.muted
        try:
            request(self.reader.dir, "unmute" if muted else "mute", by="screen", rule=self.rule)
        except (OSError, UserError) as error:  # a full disk, a run of a later ppo-tui
            self.notify(f"Cannot send the request: {error}", severity="error", markup=False)
            return
        self.notify(
            f"{self.rule} is unmuted"
            if muted
            else f"{self.rule} is muted for this run; it is still judged but does not count in the verdict"
        )

    def action_fork(self) -> None:
        from tui.kit.actions.checkpoints import begin_fork

        begin_fork(self, self.reader)

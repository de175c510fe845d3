"""One health check: what it means, its figures with their limits, since when, and what to try."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer

from launcher.health.explain import Explanation
from launcher.run.explain import Explainer
from launcher.run.reader import RunReader
from tui.actions.editing import edit_run, field_of
from tui.charts.check import check_plot
from tui.keys import KEYS
from tui.widgets.charts import MetricChart
from tui.widgets.header_line import HeaderLine
from tui.widgets.lines import Lines
from tui.widgets.painted import HIDDEN
from tui.words.check import head, page
from tui.words.run import is_live

POLL = 1.0  # seconds; the dashboard below reads the files
CHARTS = 4
WIDTHS: list[tuple[int, str]] | None = [(0, "-narrow"), (64, "-normal")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (18, "-home"), (36, "-tall")]


class CheckDetailScreen(Screen[None]):
    """Follows the run; left and right show its other checks."""

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["check"]]

    def __init__(self, reader: RunReader, explainer: Explainer, rule: str, *, read_only: bool) -> None:
        super().__init__()
        self.reader, self.explainer, self.rule, self.read_only = reader, explainer, rule, read_only
        self._found: Explanation | None = None
        self._fix: tuple[str | None, str | None] = (None, None)  # what `e` opens: the fix and its field
        self._judged = -1  # steps that the explanation stands on
        self._judging = False
        self._left = False

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Lines(id="head")
        with Container(id="check-charts"):
            for index in range(CHARTS):
                yield MetricChart(id=f"check-{index}")
        with VerticalScroll(can_focus=False):
            yield Lines(id="page")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self._show()
        self._poll()
        self.set_interval(POLL, self._poll)

    def on_unmount(self) -> None:
        self._left = True

    def on_resize(self) -> None:
        self._show()

    def _poll(self) -> None:
        if not self._judging and self._judged != len(self.reader.series.steps):
            self._judging = True
            self.run_worker(self._explain())
        self._show()

    async def _explain(self) -> None:
        """Judges the run as far as it is read, beside the event loop: thousands of steps take seconds."""
        steps = len(self.reader.series.steps)
        await asyncio.to_thread(self.explainer.follow, lambda: not self._left)
        self._judging = False
        if not self._left:
            self._judged = steps
            self._look_up()
            self._show()

    def _look_up(self) -> None:
        self._found = self.explainer.explain(self.rule)
        self._fix = field_of(self._found.fixes)

    def _show(self) -> None:
        reader, columns = self.reader, self.size.width
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        checks = self._checks()
        check = checks.get(self.rule, {"rule": self.rule})
        place = f"{list(checks).index(self.rule) + 1}/{len(checks)}" if self.rule in checks else ""
        events = [e for e in reader.events if e.get("kind") == "health" and e.get("rule") == self.rule]
        self.query_one("#head", Lines).show(head(check, place, columns))
        editable = self._fix[0] if self.reader.info.get("preset") and not self.read_only else None
        self.query_one("#page", Lines).show(page(check, self._found, events, editable, columns - 1))
        keys = self._found.keys[:CHARTS] if self._found else []
        self.query_one("#check-charts").set_class(not keys, HIDDEN)
        self.query_one("#check-charts").set_class(len(keys) == 1, "-single")
        for index in range(CHARTS):
            chart = self.query_one(f"#check-{index}", MetricChart)
            chart.set_class(index >= len(keys), HIDDEN)
            if self._found and index < len(keys):
                bounds = [] if index else self._found.lines
                chart.show(check_plot(keys[index], reader.series, reader.state.get("total"), bounds, events))

    def _checks(self) -> dict[str, Mapping[str, Any]]:
        return {str(check.get("rule")): check for check in self.reader.state.get("checks") or []}

    def action_neighbour(self, distance: int) -> None:
        rules = list(self._checks())
        if self.rule in rules:
            self.rule = rules[(rules.index(self.rule) + distance) % len(rules)]
            self._found, self._fix = None, (None, None)
            if self._judged >= 0 and not self._judging:
                self._look_up()
            self.query_one(VerticalScroll).scroll_home(animate=False)
            self._show()

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_edit(self) -> None:
        if self.read_only:
            self.notify("Watching only: this screen changes no preset.", severity="warning")
        else:
            edit_run(self.app, self.reader.info, self._fix[1])

    def action_mute(self) -> None:
        from launcher.run.control import request

        muted = bool(self._checks().get(self.rule, {}).get("muted"))
        if self.read_only:
            self.notify("Watching only: this screen mutes nothing.", severity="warning")
        elif not is_live(self.reader.state):
            self.notify("This run has ended: nothing judges it any more.", severity="warning")
        else:
            try:
                request(self.reader.dir, "unmute" if muted else "mute", by="screen", rule=self.rule)
            except OSError as error:  # a full disk
                self.notify(f"not told to the run: {error}", severity="error", markup=False)
                return
            self.notify(
                f"{self.rule} counts again."
                if muted
                else f"{self.rule} is muted for this run: still judged, but it does not count."
            )

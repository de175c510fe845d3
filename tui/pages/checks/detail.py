"""One health check: what it means, its figures with their limits, since when, and what to try."""

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll

from launcher.core.errors import UserError
from launcher.core.text import clean
from launcher.health.catalogue import families
from launcher.health.verdict import CROSSED, bound_words, debounce_words, limits_by_figure
from launcher.record.check import Check, Suggestion
from launcher.record.events import LevelChange
from launcher.runs.watch.history import stall_report
from launcher.runs.watch.reader import ERRORS
from tui.kit.actions.editing import edit_entry, edit_run, field_of
from tui.kit.charts.axes import plan
from tui.kit.charts.run_charts import check_plot
from tui.kit.diagnosis_rows import explained
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, labelled, paragraph, put, spread, width
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView, navigation
from tui.kit.page import HIDDEN, READ_ONLY
from tui.kit.run_page import RunPage
from tui.kit.run_words import level_sign
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.lines import Lines
from tui.pages.checks.screen import INDENT, level_words

_MOST_HISTORY = 6
_MOST_STALLED = 200  # lines of the report of a stall; the file has all
CHARTS = 4
STALL = "STALL-1"
WIDTHS: list[tuple[int, str]] | None = [(0, "-narrow"), (64, "-normal")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (18, "-home"), (36, "-tall")]


class CheckDetailScreen(RunPage):
    """Follows the run; left and right show its other checks."""

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    LEGENDS = ("Checks", "Charts")
    BINDINGS = KEYS["check"]

    def __init__(self, run: RunView, rule: str) -> None:
        super().__init__(run)
        self.rule = rule

    def body(self) -> ComposeResult:
        yield Lines(id="head")
        with Container(id="check-charts"):
            for index in range(CHARTS):
                yield MetricChart(id=f"check-{index}")
        with VerticalScroll(can_focus=False):
            yield Lines(id="page")

    @property
    def check(self) -> Check:
        """The row of the checklist that is shown."""
        return next((check for check in self.reader.state.checks if check.rule == self.rule), Check(self.rule))

    def refusal(self, action: str) -> str | None:
        if action == "diagnosis" and self.rule != ERRORS:
            return f"only of the check {ERRORS}"
        if action == "edit" and self.read_only:
            return READ_ONLY
        return super().refusal(action)

    def poll(self) -> None:
        self.show()
        if self.rule == ERRORS and self.reader.unexplained:
            self.explain()

    def show_body(self) -> None:
        reader, check, columns = self.reader, self.check, self.size.width
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
        keys, end = check.keys[:CHARTS], plan(reader.state, reader.series.last_step)
        self.set_class(not keys, "-chartless")
        self.query_one("#check-charts").set_class(len(keys) == 1, "-single")
        for index in range(CHARTS):
            chart = self.query_one(f"#check-{index}", MetricChart)
            chart.set_class(index >= len(keys), HIDDEN)
            if index < len(keys):
                bounds = [bound for bound in check.bounds if bound.series == index]
                chart.show(check_plot(keys[index], reader.series, end, bounds, changes))

    def action_neighbour(self, distance: int) -> None:
        rules = [check.rule for check in self.reader.state.checks]
        if self.rule in rules:
            self.rule = rules[(rules.index(self.rule) + distance) % len(rules)]
            self.query_one(VerticalScroll).scroll_home(animate=False)
            self.refresh_bindings()
            self.poll()

    def action_diagnosis(self) -> None:
        navigation(self.app).show("diagnosis", self.run)

    def action_edit(self) -> None:
        if self.rule == ERRORS and self.reader.explanation is not None:
            edit_entry(self.app, self.run, "")
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


def head(check: Check, place: str, columns: int) -> list[Row]:
    """The name with level and rule, then the message; `place` tells which of how many checks it is."""
    rule, when = clean(check.rule), ""
    if check.on and check.since is not None:
        when = f"since step {check.since} · "
    elif check.was is not None:
        when = f"{check.was} until step {check.cleared} · "
    if check.muted:
        when = f"muted · {when}"
    left: Row = [*level_words(check), (clean(check.name), "title")]
    right: Row = [(f"{when}{rule} · {place} ", "dim")]
    if width(left) + width(right) + 2 > columns:
        right = [(f"{rule} ", "dim")]
    message = clean(check.message)
    if right[0][0].startswith(rule) and when:
        message = f"{when.removesuffix(' · ')}: {message}"
    return [spread(left, right, columns), *paragraph(message, "text", columns, indent=INDENT, most=3, least=16)]


def stalled(report: tuple[Path, Sequence[str]], columns: int) -> list[Row]:
    """What was collected when the run stalled, and the file that has it."""
    file, lines = report
    rows: list[Row] = [[(f" collected     {clean(str(file))}", "dim")]]
    for line in lines[:_MOST_STALLED]:
        rows += paragraph(line, "dim" if line.startswith("    ") else "text", columns, least=16) or [[]]
    return rows


def page(check: Check, changes: Sequence[LevelChange], editable: Suggestion | None, columns: int) -> list[Row]:
    """What the check means, its limits, what to try while it is on, and what was.

    `editable` is the suggestion that the preset editor opens on.
    """
    family = families().get(check.family)
    rows: list[Row] = []
    rows += _limits(check, columns)
    for index, fix in enumerate(check.fixes if check.on else ()):
        rows += _fix(("Try first", "then")[index] if index < 2 else "", fix, fix == editable, columns)
    if family is not None:
        rows += labelled([(" Meaning", "dim")], family.meaning, "text", INDENT, columns)
        rows += labelled([(" Healthy", "dim")], family.healthy, "text", INDENT, columns)
        rows += labelled([(" Bad", "dim")], family.bad, "text", INDENT, columns)
    for index, change in enumerate(list(reversed(changes))[:_MOST_HISTORY]):
        rows.append(_happened("History" if index == 0 else "", change))
    return rows


def _limits(check: Check, columns: int) -> list[Row]:
    """Each figure with its limits, and which of them are crossed; as many in a row as fit."""
    rows: list[Row] = []
    for figure, bounds in limits_by_figure(check):
        items: list[Row] = [[(f"{clean(figure)}:", "dim")]] if figure else []
        for bound in bounds:
            sign, role = level_sign(bound.level)
            words = bound_words(bound)
            items.append(
                [(f"{sign} {words}{CROSSED}", role)] if bound.crossed else [(sign, role), (f" {words}", "text")]
            )
        rows += _packed(items, columns - INDENT - 1)
    if rows and (slow := debounce_words(check)):
        rows += paragraph(slow, "dim", columns - INDENT, indent=0, least=16)
    return [put([(" Limits now", "dim")] if not index else [], INDENT, row, 0) for index, row in enumerate(rows)]


def _packed(items: Sequence[Row], columns: int) -> list[Row]:
    """The items one after the other, in rows of so many cells."""
    rows: list[Row] = []
    for item in items:
        if rows and width(rows[-1]) + 2 + width(item) <= columns:
            rows[-1] = [*rows[-1], ("  ", "text"), *item]
        else:
            rows.append(item)
    return rows


def _fix(label: str, fix: Suggestion, editable: bool, columns: int) -> list[Row]:
    """One thing to try; a veRL key stands out, and `e` is before the one that it opens."""
    key = clean(fix.key or "")
    (first, *others) = labelled([(f" {label}", "dim")], fix.text, "text", INDENT, columns)
    text, role = first[-1]
    rest: Row = [(text[: len(key)], "title"), (text[len(key) :], role)]
    mark: Row = [("e ", "live")] if editable else []
    return [put([(f" {label}", "dim")], INDENT - width(mark), [*mark, *rest], 0), *others]


def _happened(label: str, change: LevelChange) -> Row:
    sign, role = level_sign(change.after)
    row: Row = put([(f" {label}", "dim")], INDENT, [(f"step {change.step}", "text")])
    row = put(row, INDENT + 12, [(f"{sign} {change.after!s:<9} ", role)])
    return [*row, (clean(change.message), "dim"), (f" {glyphs.DOT} was {change.before}", "dim")]

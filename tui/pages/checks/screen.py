"""Every health check with its values, the worst first."""

from textual.app import ComposeResult

from launcher.core.errors import UserError
from launcher.record.check import Check
from launcher.runs.watch.reader import ERRORS
from tui.kit.actions.editing import edit_entry, edit_run, field_of
from tui.kit.drawing.rows import Item
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView, navigation
from tui.kit.page import READ_ONLY
from tui.kit.run_page import ItemsPage, RunPage
from tui.kit.widgets.inspector import Inspection, Inspector
from tui.kit.widgets.lists import Items
from tui.pages.checks.inspection import check_rows, inspect_check


class ChecksScreen(ItemsPage):
    """The whole checklist of one run; it follows the run. Enter explains a check."""

    LEGENDS = ("Checks",)
    BINDINGS = KEYS["checks"]
    LIST = Items
    EMPTY = "No check has judged this run yet: the first ones do so with its first step."

    def items(self, columns: int) -> list[Item]:
        rows = slice(1 if self.inspects else None)  # the message is beside the list
        return [Item(check.rule, check_rows(check, columns - 2)[rows]) for check in self.reader.state.checks]

    def inspect(self, key: str | None, columns: int) -> Inspection:
        return inspect_check(self.run, key, columns) if key else Inspection()


class CheckDetailScreen(RunPage):
    """Follows the run; left and right show its other checks."""

    LEGENDS = ("Checks", "Charts")
    BINDINGS = KEYS["check"]

    def __init__(self, run: RunView, rule: str) -> None:
        super().__init__(run)
        self.rule = rule

    def body(self) -> ComposeResult:
        yield Inspector()

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
        self.query_one(Inspector).show(inspect_check(self.run, self.rule, self.size.width - 1))

    def action_neighbour(self, distance: int) -> None:
        rules = [check.rule for check in self.reader.state.checks]
        if self.rule in rules:
            self.rule = rules[(rules.index(self.rule) + distance) % len(rules)]
            self.query_one(Inspector).scroll_to_start()
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

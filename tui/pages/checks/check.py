"""One health check as a page, with what can be done about it."""

from textual.app import ComposeResult

from launcher.core.errors import UserError
from launcher.record.check import Check
from launcher.runs.watch.reader import ERRORS
from tui.kit.actions.editing import edit_entry, edit_run, field_of
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView, navigation
from tui.kit.page import READ_ONLY
from tui.kit.run_page import RunPage
from tui.kit.widgets.inspector import Inspector
from tui.pages.checks.inspection import inspect_check


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

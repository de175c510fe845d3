"""A page about one health check, and the actions of pages with a flag."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult

from launcher.core.errors import UserError
from launcher.metrics.store import SeriesStore
from launcher.record.check import Check
from launcher.record.levels import Level
from launcher.record.problem import Problem
from launcher.runs.watch.problems import flag
from launcher.runs.watch.reader import ERRORS
from tui.kit.actions.editing import edit_entry, edit_offer
from tui.kit.actions.run_actions import begin_trials
from tui.kit.charted import ChartScreen, ViewLine
from tui.kit.charts.axes import plan
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView, navigation
from tui.kit.page import HIDDEN, READ_ONLY
from tui.kit.run_page import RunPage
from tui.kit.widgets.inspector import Inspector
from tui.pages.checks.inspection import find_check, inspect_check

if TYPE_CHECKING:
    from launcher.runs.watch.proposals import Proposal


class FlagPage(RunPage):
    """Shows one rule. While it flags the run, keys start trials or open the editor at the first value to try."""

    ASKS = "health"

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self._proposals: dict[tuple[str, Level], Proposal | None] = {}
        self._asked = set[tuple[str, Level]]()
        self._made: tuple[object, Problem] | None = None

    @property
    def check(self) -> Check:
        """The displayed row of the checklist."""
        raise NotImplementedError

    def refusal(self, action: str) -> str | None:
        return READ_ONLY if action == "edit" and self.read_only else super().refusal(action)

    @property
    def topic(self) -> str:
        return self.check.rule

    @property
    def problem(self) -> Problem:
        """The check with its fixes, beginning with a trial's first change; cached until one of them changes."""
        check = self.check
        proposal, config = self.proposal_of(check), self.reader.config
        made_of = check, proposal, config
        if self._made is None or self._made[0] != made_of:
            found = flag(check, config, imported=self.reader.state.state == "imported")
            self._made = made_of, found.first(proposal.offer if proposal else None)
        return self._made[1]

    def proposal_of(self, check: Check) -> Proposal | None:
        """The first change of a trial; None until found."""
        key = check.rule, check.level
        if check.on and key not in self._asked:
            self._asked.add(key)
            self._propose(check)
        return self._proposals.get(key)

    @work(group="propose")
    async def _propose(self, check: Check) -> None:
        await self._proposed(check)
        self.show()

    async def _proposed(self, check: Check) -> Proposal | None:
        """Finds the first change of a trial, in a thread, once per level of the check."""
        key = check.rule, check.level
        if check.on and key not in self._proposals:
            from launcher.runs.watch.parent import Parent
            from launcher.runs.watch.proposals import first_proposal

            found = await asyncio.to_thread(first_proposal, Parent(self.reader.dir), check.rule)
            self._proposals[key] = found
        return self._proposals.get(key)

    @work(group="try", exclusive=True)
    async def action_try(self) -> None:
        if await begin_trials(self.app, self.reader.dir, self.check.rule):
            navigation(self.app).show("trials", self.run)

    @work(group="edit", exclusive=True)
    async def action_edit(self) -> None:
        check = self.check
        if check.rule == ERRORS and self.reader.explanation is not None:
            edit_entry(self.app, self.run, "")
        else:
            await self._proposed(check)
            edit_offer(self.app, self.run, next((offer for offer in self.problem.offers if offer.field), None))


class CheckDetailScreen(FlagPage, ChartScreen):
    """Follows the run; brackets show its other checks."""

    PAGE_NAME = "Rule"
    LEGENDS = ("Rules", "Charts")
    BINDINGS = KEYS["check"]

    def __init__(self, run: RunView, rule: str) -> None:
        super().__init__(run)
        self.rule = rule

    def body(self) -> ComposeResult:
        yield ViewLine(classes=HIDDEN)
        yield Inspector()

    @property
    def check(self) -> Check:
        return find_check(self.reader.state.checks, self.rule)

    def refusal(self, action: str) -> str | None:
        if action == "diagnosis" and self.rule != ERRORS:
            return f"only of the rule {ERRORS}"
        return super().refusal(action)

    def poll(self) -> None:
        self.show()
        if self.rule == ERRORS and self.reader.unexplained:
            self.explain()

    def charted(self) -> tuple[SeriesStore, int | None]:
        series = self.reader.series
        return series, plan(self.reader.state, series.last_step)

    def show_charts(self) -> None:
        self.query_one(Inspector).show(inspect_check(self.run, self.problem, self.size.width - 1))

    def show_body(self) -> None:
        self.show_charts()
        self.show_view()

    def action_neighbour(self, distance: int) -> None:
        rules = [check.rule for check in self.reader.state.checks]
        if self.rule in rules:
            self.rule = rules[(rules.index(self.rule) + distance) % len(rules)]
            self.query_one(Inspector).scroll_to_start()
            self.refresh_bindings()
            self.poll()

    def action_diagnosis(self) -> None:
        navigation(self.app).show("diagnosis", self.run)

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
            else f"{self.rule} is muted for this run; it is still judged but does not count for the verdict"
        )

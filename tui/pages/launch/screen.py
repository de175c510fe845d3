"""The page before a start: plan, exact command, and findings of the preflight."""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textual import work
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll

from launcher.check.finding import LEVELS, REHEARSAL, Finding, in_order
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.core.text import clean
from launcher.preset.files import LoadedPreset
from launcher.record.layout import RunDir
from tui.kit.actions.background import reported
from tui.kit.actions.editing import edit_preset
from tui.kit.dialogs.choose import ChooseScreen, confirmed
from tui.kit.drawing.glyphs import CRITICAL, OK, WAITING, WARN
from tui.kit.drawing.rows import Row, Span, spread
from tui.kit.keys import KEYS
from tui.kit.page import is_open
from tui.kit.plan_rows import laid, phase_rows
from tui.kit.run_words import reference
from tui.kit.terminal import copied
from tui.kit.widgets.findings import Findings, fix_rows, message_rows
from tui.kit.widgets.inspector import Inspected, Inspection
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lines import CommandText, Lines
from tui.pages.launch.launch_plan import LaunchPlan, examine, plan, ready_rows, setting_rows, settings_with, without

_ROOMY = 30  # rows of a page with room for the memory of each phase
HEIGHTS: list[tuple[int, str]] | None = [(0, "-tiny"), (9, "-low"), (20, "-home")]


class LaunchScreen(Inspected[Path | list[str]]):
    """Returns the started run's directory; without a start, the fixes with which the editor continues.

    Errors refuse the start; a second key forces it after a question, and the run records that.
    """

    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS = KEYS["launch"]

    def __init__(
        self, preset: str | LoadedPreset, settings: Sequence[str] = (), *, after: RunDir | None = None
    ) -> None:
        """`preset`: name, path or draft. `settings`: KEY=VALUE over it. `after`: the run whose settings were edited."""
        super().__init__()
        self.preset, self.after = preset, after
        self.given, self.fixes = list(settings), list[str]()
        self.name_of_preset = preset if isinstance(preset, str) else preset.name
        self.plan = LaunchPlan([], "")
        self.findings: list[Finding] = []
        self.doing = "reading the preset"  # empty when nothing is under way
        self.starting = self._left = False
        self.rehearsing = False
        self._round = 0  # results of earlier rounds are outdated
        self._edited = False
        self._started: Path | None = None
        self._refused: list[str | None] = []  # why keys do not work

    @property
    def settings(self) -> list[str]:
        """KEY=VALUE over the preset: given settings, and fixes made here."""
        return [*self.given, *self.fixes]

    def compose(self) -> ComposeResult:
        yield Lines(id="launch-title")
        yield Lines(id="essentials")
        yield from self.split(
            VerticalScroll(Findings(), id="launch-findings", can_focus=False),
            Lines([[(" Command", "title"), ("  tab opens it, y copies it", "dim")]], id="launch-command-head"),
            VerticalScroll(CommandText(id="command"), id="launch-command"),
        )
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(Findings).focus()
        self._begin()

    def on_unmount(self) -> None:
        self._round += 1

    def on_resize(self) -> None:
        self._show()

    def on_screen_resume(self) -> None:
        if self._edited:
            self._edited = False
            self._begin()

    def on_listing_moved(self) -> None:
        self.inspect_soon()

    @property
    def topic(self) -> str | None:
        finding = self.query_one(Findings).chosen
        return finding.id if finding else None

    def inspect(self, key: str | None, columns: int) -> Inspection:
        """The chosen finding: its complete text, its fix, and the places of its values."""
        finding = self.query_one(Findings).chosen
        if finding is None:
            return Inspection(rows=[] if self.doing else ready_rows(columns))
        rows = message_rows(finding, columns)
        if finding.fix:
            rows += [[], *fix_rows(finding, columns)]
        rows += [*setting_rows(finding, self.plan.subject, columns), [], *reference(finding.id)]
        return Inspection(rows=rows)

    def on_findings_fix_wanted(self, event: Findings.FixWanted) -> None:
        """Makes the finding's change a setting of this launch; `edit` carries it into the preset."""
        if event.finding.change and not self.starting:
            change = dict(event.finding.change)
            self.given = without(self.given, change)
            self.fixes = settings_with(self.fixes, change)
            self._begin()
        elif event.finding.rename and not self.starting:
            # renames a misspelled key of the preset in the editor; the checks then follow the file
            if isinstance(self.preset, str):
                self._edited = edit_preset(self.app, self.preset, settings=self.fixes, rename=event.finding.rename)
            else:
                self.notify("Press esc, then F on the findings page of the editor")

    def refusal(self, action: str) -> str | None:
        if self.starting and action in ("start", "force", "queue", "edit", "rehearse"):
            return "the run is starting"
        if action == "start" and self.errors:
            force = ", or ! to start anyway" if self.forceable else ""
            return f"the preflight found errors; press F to apply a fix{force}"
        if action == "force" and not self.forceable:
            return "the preset cannot be read" if self.errors else "the preflight found no errors"
        if action == "rehearse" and self.plan.subject is None:
            return "the preflight found errors; a rehearsal would stop at them"
        return f"wait for: {self.doing}" if action == "rehearse" and self.doing else None

    @property
    def errors(self) -> int:
        return sum(finding.level == "error" for finding in self.findings)

    @property
    def forceable(self) -> bool:
        """Whether only the preflight prevents a start."""
        return self.errors > 0 and self.plan.subject is not None

    def action_start(self) -> None:
        self._start(force=False)

    @work(exclusive=True, group="start")
    async def action_force(self) -> None:
        wrong = [f"{finding.id}: {finding.message}" for finding in self.findings if finding.level == "error"]
        details = "\n\n".join([*map(clean, wrong), "The run's record will show that it was forced."])
        if await confirmed(self.app, f"Start {self.name_of_preset} despite the errors?", details, "start"):
            self._start(force=True)

    @work(exclusive=True, group="start")
    async def action_queue(self) -> None:
        """Adds the run to the queue, which rechecks it at its turn."""
        from launcher.runs.act.queue_runner import add
        from launcher.runs.act.start import Plan

        with reported(self.app, "Not queued"):
            entry = await asyncio.to_thread(lambda: add(Plan.of(self.preset, self.settings, after=self.after)))
            self.notify(f"Queued {entry.id}; press Q in the list to see what it waits for", markup=False)
            self.dismiss([])

    def action_rehearse(self) -> None:
        """Adds a rehearsal's result to the findings; leaving, or any change, cancels it."""
        self.findings = [finding for finding in self.findings if finding.id != REHEARSAL]
        self.rehearsing, self.doing = True, "rehearsal"
        threading.Thread(target=self._rehearse, args=(self._round,), daemon=True).start()
        self._show()

    def _rehearse(self, began: int) -> None:
        """Runs two small steps of veRL, in a thread."""
        from launcher.runs.act.rehearse import rehearse

        assert self.plan.subject is not None
        report = partial(self._from_thread, began)
        found = rehearse(self.plan.subject.loaded, lambda text: report(text, None), lambda: began != self._round)
        report("", found)

    def action_edit(self) -> None:
        if isinstance(self.preset, str):
            self._edited = edit_preset(self.app, self.preset, settings=self.fixes)
            self.fixes = [] if self._edited else self.fixes
        else:
            self.dismiss(self.fixes)  # the editor below continues with them

    def action_copy(self) -> None:
        copied(self.app, "command", self.plan.command)

    def action_cancel(self) -> None:
        if self.starting:
            self._left = True  # cancels the start
            self.dismiss([])
        elif self.rehearsing:
            self._round += 1  # ends the round
            self.rehearsing, self.doing = False, ""
            self._show()
        elif self.fixes:
            self._cancel()
        else:
            self.dismiss([])

    @work(exclusive=True, group="start")
    async def _cancel(self) -> None:
        """Asks before dropping fixes of this page, which no file has."""
        fixes = f"{len(self.fixes)} fix" + ("es" if len(self.fixes) > 1 else "")
        choices = [("d", "discard"), ("e", "edit preset"), ("c", "cancel")]
        question = f"Discard the {fixes} applied to this launch?"
        choice = await self.app.push_screen_wait(ChooseScreen(question, clean("\n".join(self.fixes)), choices))
        if choice == "d":
            self.dismiss([])
        elif choice == "e":
            self.action_edit()

    def _begin(self) -> None:
        """Rereads and checks the preset."""
        self._round += 1
        self.rehearsing = False
        self.doing = "reading the preset"
        self._show()
        self._read(self._round)

    @work(exclusive=True, group="plan")
    async def _read(self, began: int) -> None:
        found = await asyncio.to_thread(plan, self.preset, self.settings)
        if began != self._round:
            return
        self.plan, self.findings, self.doing = found, list(found.findings), ""
        if found.subject is not None:
            self.doing = "checking"
            # a thread of its own, so that nobody who closes the screen has to wait for it
            threading.Thread(target=self._examine, args=(began,), daemon=True).start()
        self._show()

    def _examine(self, began: int) -> None:
        """Runs the checks that take seconds, in a thread."""
        assert self.plan.subject is not None
        report = partial(self._from_thread, began)
        for finding in examine(self.plan.subject, lambda text: report(text, None), lambda: began != self._round):
            report(None, finding)
        report("", None)

    def _from_thread(self, began: int, doing: str | None, finding: Finding | None) -> None:
        if began == self._round and self.app.is_running:
            self.app.call_from_thread(self._apply, began, doing, finding)

    def _apply(self, began: int, doing: str | None, finding: Finding | None) -> None:
        if began != self._round or not is_open(self):
            return
        if doing is not None:
            self.doing = doing
            self.rehearsing = self.rehearsing and bool(doing)
        if finding is not None:
            self.findings = in_order([*self.findings, finding])
        self._show()

    def _start(self, *, force: bool) -> None:
        if not self.starting:
            self._round += 1  # the start checks everything itself
            self.starting, self.doing = True, "starting"
            self._show()
            self._launch(force)

    @work(group="launch")
    async def _launch(self, force: bool) -> None:
        from launcher.check.gate import Refused

        try:
            run = await asyncio.to_thread(self._start_run, self.app, force)
        except (UserError, OSError) as error:
            if isinstance(error, Refused):
                self.findings = error.findings
            self.notify(str(error), title="Not started", severity="error", markup=False)
            self.starting, self.doing = False, ""
            self._show()
        else:
            self.dismiss(run.path)

    def _start_run(self, app: App[Any], force: bool) -> RunDir:
        """Starts the run, in a thread, unless the user leaves before its directory exists."""
        from launcher.runs.act.start import Plan, start

        def narrate(text: str) -> None:
            if self._left:
                raise UserError("the start was cancelled")
            app.call_from_thread(self._narrate, text)

        run = start(Plan.of(self.preset, self.settings, after=self.after), narrate, force=force)
        if self._left and app.is_running:
            app.call_from_thread(app.notify, f"{run.id} had already started; it is in the list", markup=False)
        return run

    def _narrate(self, text: str) -> None:
        if is_open(self):
            self.doing = text
            self._show()

    def _show(self) -> None:
        columns = self.size.width
        name = [(f" Start {clean(self.name_of_preset)}", "title")]
        self.query_one("#launch-title", Lines).show([spread(name, [self._verdict(), (" ", "text")], columns)])
        essentials: list[Row] = [line for row in self.plan.essentials for line in laid(row, columns)]
        if (needed := self.plan.memory) and self.size.height >= _ROOMY:
            essentials += phase_rows([phase.as_json() for phase in needed.phases], needed.gpu_total, columns)
        if self.settings:
            essentials.append([(f" with {clean(' '.join(self.settings))}", "notice")])
        if self.fixes:
            essentials.append([(" fixes apply only to this run; press e to edit the preset with these fixes", "dim")])
        self.query_one("#essentials", Lines).show(essentials)
        quiet = "" if self.doing else "no problems found"
        self.query_one(Findings).show(self.findings, quiet, beside=self.inspects)
        self.show_inspection()
        self.query_one(CommandText).show(self.plan.command)
        refused = [self.refusal(action) for action in ("start", "force", "queue", "rehearse")]
        if refused != self._refused:  # the footer paints itself whole
            self._refused = refused
            self.refresh_bindings()

    def _verdict(self) -> Span:
        counts = Counter(finding.level for finding in self.findings)
        found = ", ".join(counted(counts[level], level) for level in LEVELS[:2] if counts[level])
        if self.doing:
            return f"{WAITING} {clean(self.doing)} …", "live"
        if self.errors:
            return f"{CRITICAL} {found}", "critical"
        return (f"{WARN} {found}", "warn") if found else (f"{OK} ready to start", "ok")

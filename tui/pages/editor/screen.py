"""A preset as a form, next to its plan: batches, memory, findings, changes, command."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from textual import work
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.text import clean
from launcher.preset.draft import Draft
from launcher.preset.drafts import forget_unsaved, keep_unsaved, restore_unsaved
from launcher.preset.field_values import where_of
from launcher.preset.schema import SETTINGS
from launcher.record.layout import RunDir
from tui.kit.actions.background import in_background, reported
from tui.kit.actions.preset_saving import edit_outside, may_leave, save, save_as
from tui.kit.dialogs.choose import ChooseScreen
from tui.kit.drawing.glyphs import CRITICAL, CURSOR, ELLIPSIS, NOTICE, WARN
from tui.kit.drawing.rows import Row
from tui.kit.keys import KEYS
from tui.kit.navigation import navigation
from tui.kit.page import HIDDEN, READ_ONLY, Page
from tui.kit.widgets.findings import Findings
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lines import Lines
from tui.pages.editor.form_area import FormArea
from tui.pages.editor.preset_form import Form, best
from tui.pages.editor.side import PAGES, EditorSide


async def launch_draft(page: Page[Any], draft: Draft) -> None:
    """Opens a draft's launch page, then the dashboard if a run started; fixes made there return to the draft."""
    app = page.app
    try:
        loaded = draft.loaded()
        if draft.changed or (draft.is_new and draft.run):
            choice = await app.push_screen_wait(
                ChooseScreen(
                    f"{draft.name} has unsaved changes",
                    "The run records its settings either way.",
                    [("w", "save and start"), ("n", "cancel"), ("y", "start without saving")],
                )
            )
            if choice not in ("w", "y") or (choice == "w" and not await save(app, draft)):
                return
            loaded = draft.loaded()
    except UserError as error:
        app.notify(str(error), title="Not started", severity="error", markup=False)
        return
    earlier = RunDir(paths.runs_dir() / draft.run) if draft.run else None
    outcome = await navigation(app).launch(loaded, earlier)
    if isinstance(outcome, Path):
        navigation(app).show_run(outcome, page, read_only=False)
    else:
        apply(app, draft, outcome)


def apply(app: App[Any], draft: Draft, settings: Sequence[str]) -> None:
    """Applies settings to a draft; shows a message for refused ones."""
    with reported(app):
        draft.take(settings)


POLL = 2.0  # seconds between looks at the file
FORM = "form"
_ACTING = ("undo", "redo", "recipe", "outside", "save", "save_as", "launch", "test_alerts")  # unavailable if read-only
ABOUT = {"-low": 0, "-home": 6, "-tall": 8}  # rows about the chosen field
WIDTHS: list[tuple[int, str]] | None = [(0, "-narrow"), (120, "-wide")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (14, "-home"), (36, "-tall")]


class EditorScreen(Page[None]):
    """Edits a draft. On a narrow screen tab switches the pages, on a wide one they are next to the form."""

    AUTO_FOCUS = "FormLines"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS = KEYS["editor"]

    def __init__(
        self, draft: Draft, *, field: str | None = None, read_only: bool = False, settings: Sequence[str] = ()
    ) -> None:
        """`field`: the field or veRL key to start at. `settings`: KEY=VALUE, the first changes."""
        super().__init__()
        self.draft, self.read_only = draft, read_only
        self.page = FORM
        self._first, self._settings = field, settings
        self._stale = ""  # another program's change to the file

    def compose(self) -> ComposeResult:
        yield Lines(id="editor-head")
        yield Input(placeholder="name, veRL key or meaning", compact=True, id="editor-find", classes=HIDDEN)
        with Horizontal(id="editor-body"):
            yield FormArea(self.draft, read_only=self.read_only)
            yield EditorSide()
        yield Lines(id="editor-about")
        yield KeyBar()

    def on_mount(self) -> None:
        self.app.title = f"{self.draft.name} - ppo-tui"
        with reported(self.app, "Unsaved changes not restored", "warning"):
            if not self.read_only and restore_unsaved(self.draft):
                self.notify("Unsaved changes restored; press u to undo them", timeout=10)
        if self._settings and not self.read_only:
            apply(self.app, self.draft, self._settings)
            keep_unsaved(self.draft)
        self._show()
        self._show_page()
        if self._first:
            self._area.go_to(self._first)
        self.set_interval(POLL, self._check_file)

    @property
    def _area(self) -> FormArea:
        return self.query_one(FormArea)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_page)
        self.call_after_refresh(self._show_about)

    def on_form_area_edited(self, event: FormArea.Edited | None = None) -> None:
        keep_unsaved(self.draft)
        self._show()
        if event is not None and event.where == ("recipe",):
            self.page = "changes"
            self._show_page()

    def on_listing_moved(self) -> None:
        self._show_about()

    def on_editor_side_checked(self) -> None:
        if (verl := self.query_one(EditorSide).verl) and verl != self._area.verl:
            self._area.verl = verl
            self._show()
        self._head()

    def _show(self) -> None:
        """Redraws the draft; unchanged parts cost nothing."""
        form = Form(self.draft, *self._area.verl)
        self._area.show(form)
        self.query_one(EditorSide).show(form)
        self._show_about()
        self._head()

    def _show_about(self) -> None:
        """Shows the description of the chosen field."""
        name, columns = self._area.lines.cursor, max(self.size.width - 2, 8)
        rows = next((count for name_of, count in ABOUT.items() if self.has_class(name_of)), 0)
        rows_about = self._area.form.about(name, columns, rows) if name else []
        self.query_one("#editor-about", Lines).show([*rows_about, *([] for _ in range(rows - len(rows_about)))])

    def _head(self) -> None:
        """The preset and its state, then the pages."""
        draft, side, reading = self.draft, self.query_one(EditorSide), self.draft.reading
        state: Row = [("   saved", "dim")]
        if draft.changed or (draft.is_new and draft.run):
            new = f"new preset from run {draft.run}, " if draft.run else "new, "
            state = [(f"   {NOTICE} {new if draft.is_new else ''}not saved", "notice")]
        elif draft.is_new:
            state = [("   shipped; changes are saved under a new name", "dim")]
        if self._stale:
            state.append((f"   {WARN} {self._stale} on disk", "warn"))
        if reading.errors or reading.problem:
            state.append((f"   {CRITICAL} has errors", "critical"))
        counts = {"findings": len(side.findings), "changes": side.differing}
        stops = any(each.level == "error" for each in side.findings)
        pages: Row = []
        for page in self._pages():
            count = f" {counts[page]}" if counts.get(page) else ""
            if page == "findings" and not side.checked:
                count = f" {ELLIPSIS}"
            role = "critical" if page == "findings" and stops else "dim"
            here = page == self.page
            pages += [(f" {CURSOR if here else ' '}{page}{count}", "title" if here else role)]
        if self._area.query_text:
            pages.append((f"   /{clean(self._area.query_text)}; esc shows all", "live"))
        self.query_one("#editor-head", Lines).show([[(f" Edit {draft.name}", "title"), *state], pages])

    def _pages(self) -> list[str]:
        return [FORM, *(page for page in PAGES if page != "plan" or not self.has_class("-wide"))]

    def _show_page(self) -> None:
        """Shows the page and focuses it."""
        wide, side = self.has_class("-wide"), self.query_one(EditorSide)
        if self.page not in self._pages():
            self.page = FORM
        self._area.set_class(not wide and self.page != FORM, HIDDEN)
        side.set_class(not wide and self.page == FORM, HIDDEN)
        side.turn_to("findings" if self.page == FORM else self.page, plan=wide)
        self.query_one("#editor-about").set_class(not wide and self.page != FORM, HIDDEN)
        if not self._area.box.is_open and self.focused is not self.query_one("#editor-find"):
            self.set_focus(
                {FORM: self._area.lines, "findings": side.query_one(Findings)}.get(
                    self.page, side.query_one(f"#page-{self.page}") if self.page != FORM else None
                )
            )
        self._head()

    def action_page(self, distance: int) -> None:
        pages = self._pages()
        self.page = pages[(pages.index(self.page) + distance) % len(pages)]
        self._show_page()

    def refusal(self, action: str) -> str | None:
        if self.read_only and action in _ACTING:
            return READ_ONLY
        if action in ("undo", "redo") and not (self.draft.undoable if action == "undo" else self.draft.redoable):
            return f"nothing to {action}"
        return "on the findings page (tab)" if action == "to_field" and self.page != "findings" else None

    # ---- finding a field

    def action_find(self) -> None:
        self.page = FORM
        self._show_page()
        self.open_field(self.query_one("#editor-find", Input))

    def on_input_changed(self, event: Input.Changed) -> None:
        chosen = self._area.lines.cursor
        self._area.query_text = event.value
        if not event.value and chosen is not None:
            self._area.go_to(chosen)
        else:
            self._area.show()
            if (name := best(self._area.lines.keys, event.value)) is not None:
                self._area.lines.move_to(name)
        self._head()

    def on_input_submitted(self) -> None:
        self.query_one("#editor-find").add_class(HIDDEN)
        self._area.lines.focus()

    @property
    def topic(self) -> str | None:
        """The finding on the page of findings, otherwise the chosen field."""
        if self.page == "findings":
            finding = self.query_one(Findings).chosen
            return finding.id if finding else None
        return name if (name := self._area.lines.cursor) in SETTINGS else None

    def action_to_field(self) -> None:
        """Goes to the first field of the chosen finding."""
        finding = self.query_one(Findings).chosen
        if finding is not None:
            self.page = FORM
            self._show_page()
            self._area.go_to(next(iter([*(finding.change or ()), *finding.keys]), ""))

    def on_findings_fix_wanted(self, event: Findings.FixWanted) -> None:
        def fix() -> None:
            for name, value in (event.finding.change or {}).items():
                self.draft.set(where_of(name), value)
            if event.finding.rename:
                self.draft.rename(*event.finding.rename)

        self._area.edit(fix)

    def action_recipe(self) -> None:
        """Asks for a recipe; then shows its changes."""
        self.page = FORM
        self._show_page()
        self._area.open_at("recipe")

    @work(exclusive=True, group="against")
    async def action_against(self) -> None:
        from launcher.runs.act.start import last_run

        side = self.query_one(EditorSide)
        found = None if side.compares else await asyncio.to_thread(last_run, self.draft.name)
        if found is None and not side.compares:
            self.notify(f"No run of {self.draft.name} yet", markup=False)
            return
        self.page = "changes"
        self._show_page()
        side.compare(*found) if found else side.compare(None)
        self._head()

    @work(exclusive=True, group="alerts")
    async def action_test_alerts(self) -> None:
        from launcher.preset.alerting import AlertSettings
        from launcher.runs.supervise.alerts import send_test

        def send() -> str:
            alerts = AlertSettings.read(self.draft.loaded().preset.health)
            return clean("\n\n".join(send_test(alerts, self.draft.name)))

        with reported(self.app, "No test was sent"):
            said = await in_background(send)
            nobody = f"Set health.on_alert, or add a target under alerts: in {paths.settings_file()}."
            await self.app.push_screen_wait(ChooseScreen("Test of the alerts", said or nobody, [("c", "close")]))

    # ---- the draft

    def action_undo(self) -> None:
        self.draft.undo()
        self.on_form_area_edited()

    def action_redo(self) -> None:
        self.draft.redo()
        self.on_form_area_edited()

    def action_outside(self) -> None:
        name = self._area.lines.cursor
        edit_outside(self.app, self.draft, self._area.form.where(name) if name else ())
        self.on_form_area_edited()

    def action_save(self) -> None:
        self._save(save)

    def action_save_as(self) -> None:
        self._save(save_as)

    @work(exclusive=True, group="save")
    async def _save(self, act: Callable[..., Awaitable[bool]]) -> None:
        forget_unsaved(self.draft)  # under its name; it may get another one
        with reported(self.app, "Not saved"):
            await act(self.app, self.draft)
        keep_unsaved(self.draft)
        self._check_file()
        self._show()

    def _check_file(self) -> None:
        """Shows whether another program changed or removed the file."""
        try:
            stale = self.draft.stale()
        except UserError:
            stale = "changed"
        if stale and not self._stale:
            self.notify(f"Another program {stale} the file; saving asks first", severity="warning")
        if stale != self._stale:
            self._stale = stale
            self._head()

    def action_leave(self) -> None:
        """Leaves with `esc`: first the search, then the other pages, then the screen."""
        field = self.query_one("#editor-find", Input)
        if field.value or self.focused is field:
            field.value = ""
            self.on_input_submitted()
        elif self.page != FORM:
            self.page = FORM
            self._show_page()
        else:
            self._leave()

    @work(exclusive=True, group="save")
    async def _leave(self, *, quits: bool = False) -> None:
        if not await may_leave(self.app, self.draft):
            return
        forget_unsaved(self.draft)
        if quits or len(self.app.screen_stack) <= 2:
            self.app.exit()
        else:
            self.dismiss()

    def asks_to_quit(self) -> bool:
        """Whether there are unsaved changes; if so, asks about them."""
        if self.draft.changed and self.is_current:
            self._leave(quits=True)
        return self.draft.changed

    @work(exclusive=True, group="save")
    async def action_launch(self) -> None:
        if not self._area.refused():
            await launch_draft(self, self.draft)
            if self.is_current:  # no run was started
                self.on_form_area_edited()

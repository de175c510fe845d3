"""Why a run failed, or what the errors of one that lives mean: all of it, full screen."""

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll

from launcher.runs.watch.reader import RunReader
from tui.kit.actions.editing import edit_entry, open_entry
from tui.kit.diagnosis_rows import entries, meaning_rows, title_rows
from tui.kit.drawing.glyphs import FINISHED
from tui.kit.drawing.rows import Item, Row
from tui.kit.keys import KEYS
from tui.kit.navigation import navigation
from tui.kit.page import Page, run_refusal
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.items import Items
from tui.kit.widgets.key_bar import KeyBar


class DiagnosisList(Items, inherit_bindings=False):
    """Lines of the log, then fixes."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["diagnosis list"]]


LEGEND = f" e  open the preset editor at the fix · {FINISHED}  already set in this run"
POLL = 1.0  # seconds; the dashboard below reads the files


class DiagnosisScreen(Page[None]):
    """Follows the run. Enter on a line goes to it in the log; on a fix it opens the editor, as `e` does."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["diagnosis"]]

    def __init__(self, reader: RunReader, *, read_only: bool) -> None:
        super().__init__()
        self.reader, self.read_only = reader, read_only

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        with VerticalScroll(can_focus=False):
            yield DiagnosisList()
        yield KeyBar()

    def refusal(self, action: str) -> str | None:
        return run_refusal(action, self.reader, read_only=self.read_only)

    def on_mount(self) -> None:
        self.query_one(HeaderLine).read_only = self.read_only
        self.query_one(DiagnosisList).focus()
        self._poll()
        self.set_interval(POLL, self._poll)

    def on_resize(self) -> None:
        self._show()

    def _poll(self) -> None:
        self._show()
        if self.reader.unexplained:
            self.run_worker(self._explain(), group="explain")

    async def _explain(self) -> None:
        await asyncio.to_thread(self.reader.explain)
        self._show()

    def _show(self) -> None:
        reader, columns = self.reader, self.size.width - 1
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        found = reader.explanation
        if found is None:
            said = "reading the log" if reader.unexplained or reader.explaining else "no error in the log"
            self.query_one(DiagnosisList).show([Item(None, [[(f" {said}", "dim")]])])
            return
        gap: list[Row] = [[]]
        head = [*title_rows(found, columns), *meaning_rows(found, columns), *gap]
        shown = [Item(None, head)]
        for item in entries(found, columns):
            if item.name == "fix 0" and len(shown) > 1:
                shown.append(Item(None, gap))
            shown.append(item)
        if any(found.remedies):
            shown.append(Item(None, [[], [(LEGEND, "dim")]]))
        self.query_one(DiagnosisList).show(shown)

    def on_items_chosen(self, event: DiagnosisList.Chosen) -> None:
        open_entry(self, self.reader, event.name, read_only=self.read_only)

    def action_edit(self) -> None:
        chosen = self.query_one(DiagnosisList).cursor or ""
        edit_entry(self, self.reader, chosen, read_only=self.read_only)

    def action_log(self) -> None:
        navigation(self.app).show_log(self.reader)

    def action_fork(self) -> None:
        from tui.kit.actions.checkpoints import begin_fork

        begin_fork(self, self.reader)

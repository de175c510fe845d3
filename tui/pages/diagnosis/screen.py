"""The diagnosis of a run that failed or hangs, or of a live run's errors."""

from tui.kit.actions.checkpoints import try_entry
from tui.kit.actions.editing import edit_entry, open_entry
from tui.kit.drawing.rows import Item, Row, paragraph
from tui.kit.keys import KEYS
from tui.kit.navigation import navigation
from tui.kit.problem_rows import entries, meaning_rows, title_rows
from tui.kit.run_page import ItemsPage
from tui.kit.run_words import reference
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lists import Items
from tui.pages.diagnosis.inspection import inspect_entry


class DiagnosisList(Items, inherit_bindings=False):
    """Fixes, then lines of the log."""

    BINDINGS = KEYS["diagnosis list"]


_QUOTED = 2  # rows of a line of the log
_REST = 6  # rows of the page without its entries
_READING = "Reading the log …"
_NO_ERROR = "No error in the log. This page explains why a run failed or hangs, with what to try."
LEGEND, TRY = " e  open the preset editor at the fix", "    T  try it"


class DiagnosisScreen(ItemsPage):
    """Follows the run. Enter on a line goes to it in the log; on a fix it opens the editor, as `e` does."""

    PAGE_NAME = "Diagnosis"
    BINDINGS = KEYS["diagnosis"]
    LIST = DiagnosisList

    def poll(self) -> None:
        self.show()
        if self.reader.unexplained:
            self.explain()

    def items(self, columns: int) -> list[Item]:
        reader = self.reader
        problem = reader.problem
        if problem is None:
            reading = reader.unexplained or reader.explaining
            return [Item(None, paragraph(_READING if reading else _NO_ERROR, "dim", columns))]
        gap: list[Row] = [[]]
        head = [*title_rows(problem, columns - 1), *meaning_rows(problem, columns - 1), *gap]
        shown = [Item(None, head)]
        found = entries(problem, columns - 1, quoted=_QUOTED)
        if self.list_columns < self.size.width:  # the inspector shows a fix completely; fixes are first if not all fit
            for most in (None, 1):
                if len(head) + sum(len(item.rows) for item in found) > self.size.height - _REST:
                    found = entries(problem, columns - 1, most, quoted=1)
        for item in found:
            if len(shown) == len(problem.offers) + 1 > 1:
                shown.append(Item(None, gap))
            shown.append(item)
        keys = LEGEND if self.refusal("try_fix") else LEGEND + TRY
        legend: list[Row] = [[(keys, "dim")]] if any(offer.field for offer in problem.offers) else []
        return [*shown, Item(None, [*gap, *legend, *(reference(self.topic) if self.topic else [])])]

    def inspect(self, key: str | None, columns: int) -> Inspection:
        problem = self.reader.problem
        return inspect_entry(self, self.run, problem, key, columns) if problem and key else Inspection()

    @property
    def topic(self) -> str | None:
        problem = self.reader.problem
        return problem.topic if problem else None

    def open_entry(self, name: str) -> None:
        open_entry(self.app, self.run, name)

    def action_edit(self) -> None:
        edit_entry(self.app, self.run, self.listed.cursor or "")

    def action_try_fix(self) -> None:
        try_entry(self, self.run, self.listed.cursor or "")

    def action_log(self) -> None:
        navigation(self.app).show("log", self.run)

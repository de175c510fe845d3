"""Why a run failed or hangs, on its dashboard: meaning, evidence, fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.kit.drawing.glyphs import CURSOR
from tui.kit.drawing.rows import Row, spread
from tui.kit.page import HIDDEN
from tui.kit.problem_rows import entries, meaning_rows, title_rows
from tui.kit.widgets.painted import Grown

if TYPE_CHECKING:
    from launcher.record.problem import Problem

_MEANING = 2  # rows of the meaning if not all entries fit
_HINT = "d show all "


class DiagnosisPanel(Grown):
    """The diagnosis: as many entries as fit, around the cursor. Hidden without a problem."""

    found: Problem | None = None
    titled = False
    cursor: str | None = None

    def show(self, found: Problem | None, said: str | None) -> None:
        """`said`: the text above the charts, which is not repeated."""
        if found == self.found:
            return
        if found is None or self.found is None or found.id != self.found.id:
            self.cursor = None
        self.found = found
        self.titled = found is not None and not (said or "").startswith(found.title)
        self.set_class(found is None, HIDDEN)
        self.redraw()

    @property
    def names(self) -> list[str]:
        """The entries that can be chosen."""
        return [item.name for item in entries(self.found, 80, 1) if item.name] if self.found else []

    def move(self, distance: int) -> bool:
        """Chooses the entry `distance` rows further, at first the top one. Returns whether there is one."""
        names = self.names
        at = names.index(self.cursor) + distance if self.cursor in names else 0
        if not 0 <= at < len(names):
            return False
        self.choose(names[at])
        return True

    def choose(self, name: str | None) -> None:
        """Puts the cursor on an entry; None removes it."""
        self.cursor = name
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.found is None:
            return []
        items = entries(self.found, columns, 1)
        title = title_rows(self.found, columns) if self.titled else []
        meaning = meaning_rows(self.found, columns)
        if len(title) + len(meaning) + len(items) > rows:
            title = title[:1]
            meaning = meaning_rows(self.found, columns, _MEANING) if rows > 2 * _MEANING + 2 else []
        room = max(rows - len(title) - len(meaning), 1)
        at = next((index for index, item in enumerate(items) if item.name == self.cursor), 0)
        first = max(at - room + 1, 0)
        drawn = [*title, *meaning]
        for item in items[first : first + room]:
            ((text, role), *rest) = item.rows[0]
            drawn.append(
                [(CURSOR, "live"), (text[1:], role), *rest] if item.name and item.name == self.cursor else item.rows[0]
            )
        left = len(items) - len(items[first : first + room])
        if left:
            drawn[-1] = spread(drawn[-1], [(f" {left} more · {_HINT}", "dim")], columns)
        return drawn

"""The last line: the available keys."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.widgets import Input

from tui.kit.drawing.rows import Row
from tui.kit.page import Page
from tui.kit.widgets.painted import Painted

_HELP = "question_mark"


class _Key(NamedTuple):
    key: str  # Textual's name
    sign: str  # the displayed name
    label: str


class KeyBar(Painted):
    """` q quit ? help`: the available visible bindings, as many as fit; first enter in a field, and those suggested by
    the page's state. A click presses one. The help key always fits, as the help lists all others. Textual's Footer
    mounts a widget per key, which took a sixth of the time to open a page.
    """

    _keys: tuple[_Key, ...] = ()

    def on_mount(self) -> None:
        super().on_mount()
        self.screen.bindings_updated_signal.subscribe(self, lambda screen: self._update())

    def _update(self) -> None:
        shown: dict[str, _Key] = {}  # by action: the first of several keys
        called = {"submit": "accept"} if isinstance(self.screen.focused, Input) else {}  # Textual does not show it
        called |= self.screen.called_for() if isinstance(self.screen, Page) else {}
        for _, binding, works, _ in self.screen.active_bindings.values():
            label = called.get(binding.action, binding.description if binding.show else "")
            if label and works:
                shown.setdefault(binding.action, _Key(binding.key, self.app.get_key_display(binding), label))
        self._keys = (*(shown.pop(action) for action in called if action in shown), *shown.values())
        self.redraw()

    @property
    def labels(self) -> list[str]:
        return [key.label for key in self._keys]

    def draw(self, columns: int, rows: int) -> list[Row]:
        row: Row = []
        for key, _ in self._ends(columns):
            row += [(f"{' ' if row else ''} {key.sign} ", "key"), (key.label, "key-label")]
        return [row]

    def on_click(self, event: events.Click) -> None:
        for key, end in self._ends(self.size.width):
            if event.x <= end:
                self.app.simulate_key(key.key)
                return

    def _ends(self, columns: int) -> Iterator[tuple[_Key, int]]:
        """Each key that fits, with the column after its label."""
        end = -1
        kept = sum(_cells(key) for key in self._keys if key.key == _HELP)
        for key in self._keys:
            kept -= _cells(key) if key.key == _HELP else 0
            if end + _cells(key) + kept <= columns:
                end += _cells(key)
                yield key, end


def _cells(key: _Key) -> int:
    return 3 + cell_len(key.sign) + cell_len(key.label)

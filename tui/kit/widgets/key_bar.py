"""The last line: the keys that work here."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.cells import cell_len
from textual import events

from tui.kit.drawing.rows import Row
from tui.kit.widgets.painted import Painted


class _Key(NamedTuple):
    key: str  # as Textual names it
    sign: str  # as a person reads it
    label: str


class KeyBar(Painted):
    """` q quit  ? help`: every binding that is shown and works now, as many as fit; a click presses it.

    One painted line instead of Textual's Footer, which mounts, styles and lays out a widget for each key: that was
    a sixth of what a page cost to open.
    """

    _keys: tuple[_Key, ...] = ()

    def on_mount(self) -> None:
        super().on_mount()
        self.screen.bindings_updated_signal.subscribe(self, lambda screen: self._update())

    def _update(self) -> None:
        shown: dict[str, _Key] = {}  # by action: of several keys the first
        for _, binding, works, _ in self.screen.active_bindings.values():
            if binding.show and works:
                key = _Key(binding.key, self.app.get_key_display(binding), binding.description)
                shown.setdefault(binding.action, key)
        self._keys = tuple(shown.values())
        self.redraw()

    @property
    def labels(self) -> list[str]:
        return [key.label for key in self._keys]

    def draw(self, columns: int, rows: int) -> list[Row]:
        row: Row = []
        for key, end in self._ends():
            if end > columns:
                break
            row += [(f"{' ' if row else ''} {key.sign} ", "key"), (key.label, "key-label")]
        return [row]

    def on_click(self, event: events.Click) -> None:
        for key, end in self._ends():
            if event.x <= end <= self.size.width:
                self.app.simulate_key(key.key)
                return

    def _ends(self) -> Iterator[tuple[_Key, int]]:
        """Each key with the column that its label ends before."""
        end = -1
        for key in self._keys:
            end += 3 + cell_len(key.sign) + cell_len(key.label)
            yield key, end

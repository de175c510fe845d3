"""Keys and signs, made from the bindings of the screen below and the tables of signs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll

from tui.drawing import glyphs
from tui.drawing.rows import Row
from tui.keys import KEYS
from tui.pages import Dialog
from tui.widgets.lines import Lines
from tui.words.run import LEVELS, STATES

_LEVELS = {
    "not judged": "not applicable, or its metrics are not logged",
    "warming up": "collecting a baseline",
    "OK": "within limits",
    "NOTICE": "worth a look, often harmless",
    "WARN": "likely a problem; training continues",
    "CRITICAL": "training has very likely gone wrong",
}


class HelpScreen(Dialog[None]):
    """Every key that works on the screen below, then what the signs mean."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["help"]]

    def __init__(self, bindings: Sequence[ActiveBinding]) -> None:
        super().__init__()
        self._keys = bindings

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Lines([*self._key_rows(), [], *_signs()])

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def _key_rows(self) -> list[Row]:
        """A row for what a key does, with all keys that do it: those of a pair say the same."""
        groups: dict[str, list[Binding]] = {}
        for _, binding, enabled, tooltip in self._keys:
            if enabled and tooltip and not binding.system and binding.id:
                groups.setdefault(tooltip, []).append(binding)
        rows: list[Row] = [[("Keys", "title")]]
        rows += [[(f"  {self._display(group):<12} ", "live"), (words, "text")] for words, group in groups.items()]
        return rows

    def _display(self, group: Sequence[Binding]) -> str:
        """Their keys; a key of the user's own has no display of ours, and then none of the pair has."""
        own = [binding.key_display for binding in group if binding.key_display]
        if len(own) == len(group):
            return " ".join(dict.fromkeys(own))
        keys = [self.app.get_key_display(replace(binding, key_display=None)) for binding in group]
        return " ".join(dict.fromkeys(keys))


def _signs() -> list[Row]:
    rows: list[Row] = [[("Checks", "title")]]
    rows += [
        [(f"  {LEVELS[level][0]} {level:<10}", LEVELS[level][1]), (words, "text")] for level, words in _LEVELS.items()
    ]
    rows += [[], [("Runs", "title")]]
    rows += [[(f"  {sign} {state}", role)] for state, (sign, role) in STATES.items()]
    rows += [[], [("Charts", "title")]]
    rows.append([(f"  {glyphs.SEAM} ", "text"), (" on the axis: start of an attempt (resume)", "text")])
    rows.append(
        [
            (f"  {glyphs.WARN} ", "warn"),
            (" on the axis: a flag of this metric rose (reward: also flags without a chart)", "text"),
        ]
    )
    rows.append([(f"  {glyphs.UP}{glyphs.DOWN}", "text"), (" last ten steps compared with the ten before", "text")])
    return rows

"""Help: keys and signs of the screen below, from its bindings and the tables of signs; and about one topic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import VerticalScroll

from launcher.core.text import clean
from launcher.timing.stages import STAGES
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, labelled, paragraph
from tui.kit.keys import KEYS
from tui.kit.metric_rows import legend
from tui.kit.page import Dialog, Offers
from tui.kit.run_words import LEVELS, STATES, reference
from tui.kit.widgets.painted import Grown

LegendEntry = tuple[str, str, str]
"""A sign or word, its role, its meaning."""
_LEGEND = glyphs.SIGNS["legend"]
LEGENDS: Mapping[str, Sequence[LegendEntry]] = {
    "Rules": [(f"{LEVELS[level][0]} {level}", LEVELS[level][1], words) for level, words in _LEGEND["Rules"].items()],
    "Runs": [(f"{sign} {state}", role, "") for state, (sign, role) in STATES.items()],
    "Samples": [(word, "text", meaning) for word, meaning in legend()],
    "Stages": [(f"{sign} {name}", role, STAGES[name].words) for name, (sign, role) in glyphs.signs("stage").items()],
    **{title: [(sign, *entry) for sign, entry in _LEGEND[title].items()] for title in ("Charts", "Memory", "Scores")},
}
_KEYS, _SIGNS = 15, 18  # columns in which the words of the two parts begin
_ITEM = 3  # columns before the words of an item


class HelpScreen(Dialog[None]):
    """Every key of the screen below, then unavailable ones with the reason, then the meaning of its signs."""

    BINDINGS = KEYS["help"]

    def __init__(self, bindings: Sequence[ActiveBinding], legends: Sequence[str] = ()) -> None:
        super().__init__()
        self._keys, self._legends = bindings, legends

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield HelpText(self._rows)

    def _rows(self, columns: int) -> list[Row]:
        rows = self._key_rows(columns)
        for title in self._legends:
            rows += [[], [(title, "title")]]
            for sign, role, words in LEGENDS[title]:
                rows += labelled([(f"  {sign}", role)], words, "text", _SIGNS, columns + 1)
        return rows

    def _key_rows(self, columns: int) -> list[Row]:
        """An action with all its keys; the two keys of a pair share one row."""
        groups: dict[str, list[Binding]] = {}
        reasons: dict[str, str] = {}
        for node, binding, enabled, tooltip in self._keys:
            if tooltip and not binding.system and binding.id:
                groups.setdefault(tooltip, []).append(binding)
                if not enabled and isinstance(node, Offers):
                    name = binding.action.partition("(")[0]
                    reasons[tooltip] = node.refusal(name) or ""
        rows: list[Row] = [[("Keys of this page", "title"), ("   esc closes, ↓ shows more", "dim")]]
        for words, group in groups.items():
            if words not in reasons:
                rows += labelled([(f"  {self._display(group)}", "live")], words, "text", _KEYS, columns + 1)
        rows += [[], [("Not now", "title")]] if reasons else []
        for words, reason in reasons.items():
            rows += labelled([(f"  {self._display(groups[words])}", "dim")], words, "dim", _KEYS, columns + 1)
            rows += labelled([], reason, "notice", _KEYS, columns + 1)
        return rows

    def _display(self, group: Sequence[Binding]) -> str:
        """The names of the keys; if the user changed one of a pair, both have plain names."""
        own = [binding.key_display for binding in group if binding.key_display]
        if len(own) == len(group):
            return " ".join(dict.fromkeys(own))
        keys = [self.app.get_key_display(replace(binding, key_display=None)) for binding in group]
        return " ".join(dict.fromkeys(keys))


class HelpText(Grown):
    """As high as its rows at its width."""

    DEFAULT_CSS = "HelpText { height: auto; }"

    def __init__(self, rows: Callable[[int], list[Row]]) -> None:
        super().__init__()
        self._rows_at = rows

    def draw(self, columns: int, rows: int) -> list[Row]:
        return self._rows_at(columns)


class ReferenceScreen(Dialog[None]):
    """The text of `ppo-tui help TOPIC` about a check, finding, cause, preset field, metric or recipe."""

    BINDINGS = KEYS["reference"]

    def __init__(self, text: str, topic: str) -> None:
        super().__init__()
        self._text, self._topic = text, topic

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield ReferenceText(self._text, self._topic)


class ReferenceText(Grown):
    """Paragraphs and items, then the command that prints the same text."""

    DEFAULT_CSS = "ReferenceText { height: auto; }"

    def __init__(self, text: str, topic: str) -> None:
        super().__init__()
        self._lines, self._topic = text.splitlines(), topic

    def draw(self, columns: int, rows: int) -> list[Row]:
        title, *lines = self._lines
        found = paragraph(title, "title", columns)
        for line in lines:
            if line.startswith("* "):
                found += labelled([(" *", "dim")], line[2:], "text", _ITEM, columns)
            else:
                found += paragraph(clean(line), "text", columns) or [[]]
        return [*found, [], *reference(self._topic)]

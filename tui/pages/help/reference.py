"""The reference text about one topic, as `ppo-tui help TOPIC` prints it."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from launcher.core.text import clean
from tui.kit.drawing.rows import Row, labelled, paragraph
from tui.kit.keys import KEYS
from tui.kit.page import Dialog
from tui.kit.run_words import reference
from tui.kit.widgets.painted import Grown

_ITEM = 3  # columns before the words of an item


class ReferenceScreen(Dialog[None]):
    """What a check, finding, cause, preset field, metric or recipe is; it works offline."""

    BINDINGS = KEYS["reference"]

    def __init__(self, text: str, topic: str) -> None:
        super().__init__()
        self._text, self._topic = text, topic

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield ReferenceText(self._text, self._topic)


class ReferenceText(Grown):
    """Paragraphs and items, then the command that prints the same."""

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

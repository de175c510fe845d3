"""A question answered with a text of many lines."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.widgets import Static, TextArea

from launcher.core.text import clean
from tui.kit.keys import KEYS
from tui.kit.page import Dialog


class _Area(TextArea):
    """Passes `enter` after a whole text to the dialog; Textual's own widget keeps every `enter`."""

    def __init__(self, text: str, whole: Callable[[str], bool]) -> None:
        super().__init__(text, compact=True, soft_wrap=False)
        self._whole = whole

    def on_key(self, event: Key) -> None:
        if event.key == "enter" and self._whole(self.text):
            event.prevent_default()


class PasteScreen(Dialog[str | None]):
    """Returns the text, or None; shows the objection of `wrong`. `enter` ends a `whole` text, else starts a line."""

    HINTS = "f2  continue    enter  continue, after a path    esc  cancel"
    BINDINGS = KEYS["paste"]

    def __init__(
        self,
        question: str,
        details: str,
        wrong: Callable[[str], str | None],
        whole: Callable[[str], bool] = lambda text: False,
        text: str = "",
    ) -> None:
        super().__init__()
        self._question, self._details, self._wrong, self._whole, self._text = question, details, wrong, whole, text
        self._refused: str | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Content(self._question), id="question")
            yield Static(Content(self._details), id="details")
            yield _Area(self._text, self._whole)
            yield Static("", id="wrong")
            yield from self.hints()

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        area.focus()
        area.move_cursor(area.document.end)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area.text != self._refused:  # news of a change may come after the reply to it
            self.query_one("#wrong", Static).update("")

    def action_submit(self) -> None:
        text = self.query_one(TextArea).text
        if wrong := self.objection(self._wrong, text):
            self._refused = text
            self.query_one("#wrong", Static).update(Content(clean(wrong)))
        else:
            self.dismiss(text)

"""A question that is answered with a text of many lines."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from launcher.text import clean
from tui.keys import KEYS
from tui.pages import Dialog

_KEYS = "f2  continue    esc  cancel"


class PasteScreen(Dialog[str | None]):
    """Returns the text, None when it was left. What `wrong` says about a text stands below it."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["paste"]]

    def __init__(self, question: str, details: str, wrong: Callable[[str], str | None]) -> None:
        super().__init__()
        self._question, self._details, self._wrong = question, details, wrong
        self._refused: str | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Content(self._question), id="question")
            yield Static(Content(self._details), id="details")
            yield TextArea(compact=True, soft_wrap=False)
            yield Static(Content(_KEYS), id="wrong")

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area.text != self._refused:  # news of a change may come after the reply to it
            self.query_one("#wrong", Static).update(Content(_KEYS))

    def action_submit(self) -> None:
        self.query_one(TextArea).call_later(self._take)  # behind the keys that it has not seen yet

    def _take(self) -> None:
        text = self.query_one(TextArea).text
        if wrong := self._wrong(text):
            self._refused = text
            self.query_one("#wrong", Static).update(Content(clean(wrong)))
        else:
            self.dismiss(text)

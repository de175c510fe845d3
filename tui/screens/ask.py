"""A question that is answered by typing."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from launcher.text import clean


class AskScreen(ModalScreen[str | None]):
    """Answers with the text, None when it was left. What `wrong` says about a text stands below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave it", id="ask.leave-it", tooltip="Answer nothing"),
    ]

    def __init__(self, question: str, text: str, wrong: Callable[[str], str | None]) -> None:
        super().__init__()
        self._question, self._text, self._wrong = question, text, wrong

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Content(self._question), id="question")
            yield Input(self._text, compact=True)
            yield Static(Content("enter  do it    esc  leave it"), id="wrong")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        wrong = self._wrong(event.value)
        self.query_one("#wrong", Static).update(Content(clean(wrong or "enter  do it    esc  leave it")))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if not self._wrong(event.value):
            self.dismiss(event.value)

"""Questions with choices, and the question before a start or stop."""

from collections.abc import Sequence
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.widgets import Button, Static

from tui.kit.keys import KEYS
from tui.kit.page import Dialog, ResultT


class _Question(Dialog[ResultT]):
    """A button per choice; one has the focus. Long `details` scroll."""

    HINTS = "tab  next    enter  choose    esc  cancel"
    FOCUSED = -1  # index of the button

    def __init__(self, question: str, details: str, choices: Sequence[tuple[str, str]]) -> None:
        """`choices`: button ids with their words. All texts are drawn without markup."""
        super().__init__()
        self._question, self._details, self._choices = question, details, choices

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Content(self._question), id="question")
            with VerticalScroll(id="details", can_focus=False):
                yield Static(Content(self._details))
            with Horizontal(id="choices"):
                for id, words in self._choices:
                    yield Button(Content(words), id=id)
            yield from self.hints()

    def on_mount(self) -> None:
        self.query(Button)[self.FOCUSED].focus()


class ChooseScreen(_Question[str | None]):
    """Returns the key of the choice, or None. The last choice has the focus."""

    BINDINGS = KEYS["choose"]

    def __init__(self, question: str, details: str, choices: Sequence[tuple[str, str]]) -> None:
        """`choices`: keys, one letter each, with their words."""
        super().__init__(question, details, [(key, f"{key}  {words}") for key, words in choices])

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id)

    def on_key(self, event: Key) -> None:
        if event.character in dict(self._choices):
            event.stop()
            self.dismiss(event.character)


class ConfirmScreen(_Question[bool]):
    """Returns True only for `y` or its button. The safe button has the focus."""

    BINDINGS = KEYS["confirm"]
    FOCUSED = 0

    def __init__(self, question: str, details: str, yes: str, no: str = "n  cancel") -> None:
        super().__init__(question, details, [("no", no), ("yes", yes)])

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_close(self, confirmed: bool) -> None:
        self.dismiss(confirmed)


async def confirmed(app: App[Any], question: str, details: str, yes: str) -> bool:
    """Asks for consent to an action, in a worker; `yes`: the word on its button."""
    reply: bool = await app.push_screen_wait(ConfirmScreen(question, details, f"y  {yes}"))
    return reply

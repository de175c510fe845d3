"""A question with several choices."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.widgets import Button, Static

from tui.kit.keys import KEYS
from tui.kit.page import Dialog


class ChooseScreen(Dialog[str | None]):
    """Returns the key of what was chosen, None when nothing was. The last choice has the focus."""

    HINTS = "tab  next    enter  choose    esc  cancel"
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["choose"]]

    def __init__(self, question: str, details: str, choices: Sequence[tuple[str, str]]) -> None:
        """`choices` are keys, one letter each, with their words. Texts are drawn without markup."""
        super().__init__()
        self._question, self._details, self._choices = question, details, choices

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Content(self._question), id="question")
            with VerticalScroll(id="details", can_focus=False):
                yield Static(Content(self._details))
            with Horizontal(id="choices"):
                for key, words in self._choices:
                    yield Button(Content(f"{key}  {words}"), name=key)
            yield from self.hints()

    def on_mount(self) -> None:
        self.query(Button).last().focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.name)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#details").scroll_relative(y=lines, animate=False)

    def on_key(self, event: Key) -> None:
        if event.character in [key for key, _ in self._choices]:
            event.stop()
            self.dismiss(event.character)


class ConfirmScreen(Dialog[bool]):
    """Asks; returns True only for `y` or the button that says so. The safe button has the focus."""

    HINTS = "tab  next    enter  choose    esc  cancel"
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["confirm"]]

    def __init__(self, question: str, details: str, yes: str, no: str = "n  cancel") -> None:
        """`details` may be long: it scrolls. All texts are drawn as they are, without markup."""
        super().__init__()
        self._question, self._details, self._yes, self._no = question, details, yes, no

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Content(self._question), id="question")
            with VerticalScroll(id="details", can_focus=False):
                yield Static(Content(self._details))
            with Horizontal(id="choices"):
                yield Button(Content(self._no), id="no")
                yield Button(Content(self._yes), id="yes")
            yield from self.hints()

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_scroll(self, lines: int) -> None:
        self.query_one("#details").scroll_relative(y=lines, animate=False)

    def action_close(self, confirmed: bool) -> None:
        self.dismiss(confirmed)

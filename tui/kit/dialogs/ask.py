"""A question answered by typing."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from launcher.core.errors import UserError
from launcher.core.text import clean
from tui.kit.keys import KEYS
from tui.kit.page import Dialog

T = TypeVar("T")


class AskScreen(Dialog[str | None]):
    """Returns the text, or None if cancelled. Below it is the objection of `wrong`, otherwise `note`."""

    HINTS = "enter  confirm    esc  cancel"
    BINDINGS = KEYS["ask"]

    def __init__(self, question: str, text: str, wrong: Callable[[str], str | None], note: str = "") -> None:
        super().__init__()
        self._question, self._text, self._wrong, self._note = question, text, wrong, note

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Content(self._question), id="question")
            yield Input(self._text, compact=True)
            yield Static(Content(self._note), id="wrong")
            yield from self.hints()

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        wrong = self.objection(self._wrong, event.value)
        self.query_one("#wrong", Static).update(Content(clean(wrong or self._note)))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        wrong = self.objection(self._wrong, event.value)
        if not wrong:
            self.dismiss(event.value)
        else:
            self.query_one("#wrong", Static).update(Content.styled(clean(wrong), "bold"))


async def ask_and_do(
    app: App[Any], question: str, text: str, act: Callable[[str], T], wrong: Callable[[str], str | None], note: str = ""
) -> T | None:
    """Asks for a text and passes it to `act` in a thread; if `act` refuses it, asks again with the text. None if
    cancelled. Runs in a worker.
    """
    while (reply := await app.push_screen_wait(AskScreen(question, text, wrong, note))) is not None:
        text = reply.strip()
        try:
            return await asyncio.to_thread(act, text)
        except (UserError, OSError, ValueError) as error:  # a path that no file system takes
            app.notify(str(error), severity="error", markup=False)
    return None

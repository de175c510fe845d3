"""An input field over a form line, with the choices below."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from launcher.core.text import clean
from tui.kit.drawing.glyphs import CRITICAL, CURSOR
from tui.kit.drawing.rows import Row, crop, paragraph
from tui.kit.keys import KEYS
from tui.kit.page import HIDDEN
from tui.kit.widgets.lines import Lines

MOST = 6  # choices in sight
ROWS = MOST + 4  # rows of the box, with the old value and a note of two lines
Offer = Callable[[str, bool], list[str]]
"""The choices for a text; True for the initial text."""
Check = Callable[[str, bool], str | None]
"""What is wrong with a text; True when entered, False while typed."""


class ValueBox(Vertical):
    """`enter` takes the selected choice or the text; a chosen folder opens its files; an invalid value stays."""

    BINDINGS = KEYS["value box"]

    class Done(Message):
        """The entered text; None if unchanged."""

        def __init__(self, text: str | None) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(classes=HIDDEN)
        self.choices: list[str] = []
        self.chosen: int | None = None
        self._offer: Offer | None = None
        self._check: Check | None = None
        self._first = self._note = self._was = ""

    def compose(self) -> ComposeResult:
        yield Input(compact=True)
        yield Lines(id="value-note")
        yield Lines(id="value-choices")

    def open(self, text: str, offer: Offer, check: Check, *, hint: str = "", note: str = "", was: str = "") -> None:
        """Starts with a selected text, which the first letter replaces.

        `hint`: shown in the empty field. `note`: below a valid one. `was`: the old value, shown until the box closes.
        """
        self._offer, self._check, self._first, self.chosen = offer, check, text, None
        self._note, self._was = note, f"was {clean(was)}" if was else ""
        field = self.query_one(Input)
        with self.prevent(Input.Changed):
            field.value, field.placeholder = text, hint
        self.remove_class(HIDDEN)
        field.focus()
        self._offer_choices()
        self.call_after_refresh(self._show_note, "")  # its width is known then

    def _show_note(self, wrong: str) -> None:
        """Shows the old value and a sentence below the text: its error, otherwise the allowed input."""
        text = f"{CRITICAL} {wrong}" if wrong else self._note
        rows = paragraph(text, "critical" if wrong else "dim", self.size.width, least=12)[:3]
        was: list[Row] = [crop([(f" {self._was}", "dim")], self.size.width)] if self._was else []
        self.query_one("#value-note", Lines).show([*was, *rows])

    def _wrong(self, text: str, *, entered: bool) -> str:
        return (self._check(text, entered) if self._check and text != self._first else None) or ""

    @property
    def is_open(self) -> bool:
        return not self.has_class(HIDDEN)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.chosen = None
        self._offer_choices()
        self._show_note(self._wrong(event.value, entered=False))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = self.choices[self.chosen] if self.chosen is not None else event.value
        if self.chosen is not None and text.endswith("/"):
            self.action_complete()
        elif wrong := self._wrong(text, entered=True):
            self._show_note(wrong)
        else:
            self._close(text)

    async def action_take(self) -> None:
        await self.query_one(Input).action_submit()

    def action_close(self) -> None:
        self._close(None)

    def action_complete(self) -> None:
        """Completes with the selected choice, the only choice, or the common beginning of all."""
        if not self.choices:
            return
        field = self.query_one(Input)
        text = self.choices[self.chosen or 0] if self.chosen is not None else _common(self.choices)
        if len(text) <= len(field.value) and self.chosen is None and not text.startswith(field.value):
            text = self.choices[0]
        field.value = text
        field.cursor_position = len(text)

    def action_choose(self, distance: int) -> None:
        if self.choices:
            at = -1 if self.chosen is None and distance > 0 else self.chosen or 0
            self.chosen = (at + distance) % len(self.choices)
            self._draw()

    def _offer_choices(self) -> None:
        text = self.query_one(Input).value
        self.choices = self._offer(text, text == self._first) if self._offer else []
        if text == self._first and text in self.choices:
            self.chosen = self.choices.index(text)
        self._draw()

    def _draw(self) -> None:
        top = max(0, min((self.chosen or 0) - MOST // 2, len(self.choices) - MOST))
        rows: list[Row] = []
        for index, name in enumerate(self.choices[top : top + MOST], top):
            chosen = index == self.chosen
            rows.append([(CURSOR if chosen else " ", "live"), (clean(name), "title" if chosen else "text")])
        self.query_one("#value-choices", Lines).show(rows)

    def _close(self, text: str | None) -> None:
        self.add_class(HIDDEN)
        self.post_message(self.Done(text))


def _common(names: list[str]) -> str:
    """The longest common beginning of all names."""
    first, last = min(names), max(names)
    at = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:at]

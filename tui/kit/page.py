"""What all pages and dialogs have in common: each is left once, and nothing is left in its place."""

from collections.abc import Callable
from typing import TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tui.kit.navigation import is_open
from tui.kit.offers import Offers

ResultT = TypeVar("ResultT")


class Page(Offers, Screen[ResultT]):
    """Textual's `dismiss` closes whatever lies on top, as often as it is called: a second key would close the page
    below, work that ends late a page that was opened meanwhile.
    """

    left = False
    """Whether it is closed or closing: keys that were pressed on it are dropped."""
    _pending: tuple[ResultT | None] | None = None  # the result of a page that another one still covers

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Closes this page, once. One that is covered closes as soon as it is on top again."""
        if self.left:
            return AwaitComplete()
        if self.is_active:
            self.left = True
            self.workers.cancel_node(self)  # its widgets go one by one: nothing may still be shown in them
            return super().dismiss(result)
        if is_open(self) and self._pending is None:
            self._pending = (result,)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        if self._pending is not None:
            self.dismiss(*self._pending)


class Dialog(ModalScreen[ResultT], Page[ResultT]):  # Textual takes styles from the first base
    """A question over a page. Its last line has its keys."""

    HINTS = ""

    @staticmethod
    def objection(wrong: Callable[[str], str | None], text: str) -> str | None:
        """What `wrong` says about a text, or why it cannot: a name of 5,000 letters, `~nobody`."""
        try:
            return wrong(text)
        except (OSError, RuntimeError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)

    def hints(self) -> ComposeResult:
        """The line with the keys."""
        yield Static(self.HINTS, id="keys", markup=False)

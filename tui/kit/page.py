"""What all pages and dialogs have in common: each is left once, and nothing is left in its place."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

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
    _pending: Callable[[], AwaitComplete] | None = None  # how it closes once no other page covers it

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Closes this page, once. One that is covered closes as soon as it is on top again."""
        return self._close(partial(super().dismiss, result), forward=False)

    def give_way(self, to: Screen[Any], *, forward: bool) -> None:
        """Closes this page as `dismiss` does, with another one in its place.

        Keys that were pressed on this page go to a page that lies `forward`. The way back ends where it ends.
        """
        self._close(partial(self.app.switch_screen, to), forward=forward)

    def _close(self, close: Callable[[], AwaitComplete], *, forward: bool) -> AwaitComplete:
        if self.left or not is_open(self):
            return AwaitComplete()
        if self.is_active:
            self.left = not forward
            self.workers.cancel_node(self)  # its widgets go one by one: nothing may still be shown in them
            return close()
        if self._pending is None:
            self._pending = partial(self._close, close, forward=forward)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        if self._pending is not None:
            self._pending()


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

"""Handles keys in order, each completely before the next one.

Textual forwards all keys of one read to the currently focused widget. A binding's key returns to the application
through every parent, so that later letters would overtake it: in `ctrl+u 5 1 2` the letters came first, and in `# 7
enter` they went to the page below the dialog.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from textual.app import App
from textual.events import Key, Paste
from textual.screen import Screen
from textual.widgets import Input, TextArea

from tui.kit.page import Page

if TYPE_CHECKING:
    from textual.worker import WorkType

_QUIET = 2  # rounds in which nothing happens: work that a key began has then taken its first step
_MOST = 40  # rounds; a page that is painted all the time is never quiet
_STUCK = 5.0  # seconds after which a widget that does not answer is left alone


class KeyOrder:
    """Keys and pasted texts waiting to be handled."""

    def __init__(self, app: App[Any], give: Callable[[Key | Paste], Awaitable[None]]) -> None:
        """`give` forwards an event to the focused widget."""
        self._app, self._give = app, give
        self._waiting = deque[tuple[Key | Paste, Screen[object]]]()
        self._passing = False
        self._last: tuple[str, Screen[object] | None] = "", None  # a key, and the page that got it
        self._typed: Input | TextArea | None = None  # the field that got the last event, if that was text

    async def take(self, event: Key | Paste) -> None:
        """Forwards an event now, or in a worker after the previous ones are handled."""
        if not self._waiting and self._is_more_text(event):
            await self._give(event)
            return
        self._waiting.append((event, self._app.screen))
        if not self._passing:
            self._passing = True
            self._app.run_worker(cast("WorkType[None]", self._pass_on), group="keys")

    def _is_more_text(self, event: Key | Paste) -> bool:
        """Whether an event is text for the field that received the last text: the field's queue keeps their order."""
        return self._typed is not None and self._app.focused is self._typed and _is_text(event)

    async def _pass_on(self) -> None:
        try:
            while self._waiting:
                event, screen = self._waiting[0]
                if not self._is_more_text(event):
                    await self._settle()
                key = event.key if isinstance(event, Key) else ""
                if isinstance(self._app.screen, Page) and not _is_text(event):
                    await self._app.screen.ready(key)
                # the second press of the key that closed a page was meant for that page
                if not (isinstance(screen, Page) and screen.left and self._last == (key, screen)):
                    field = self._app.focused
                    self._typed = field if isinstance(field, Input | TextArea) and _is_text(event) else None
                    self._last = key, self._app.screen
                    await self._give(event)
                self._waiting.popleft()
        finally:
            self._passing = False

    async def _settle(self) -> None:
        """Waits until all effects of the keys so far are done, on the page that is then on top."""
        quiet = 0
        for _ in range(_MOST):
            before = self._app.screen, self._app.focused
            for pump in (self._app.focused or self._app.screen).ancestors_with_self:
                handled = asyncio.Event()
                if pump.call_later(handled.set):
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(handled.wait(), _STUCK)
            pumps = [self._app, *self._app.screen.walk_children(with_self=True)]
            same = before == (self._app.screen, self._app.focused)
            quiet = quiet + 1 if same and not any(pump.message_queue_size for pump in pumps) else 0
            if quiet == _QUIET:
                break


def _is_text(event: Key | Paste) -> bool:
    return isinstance(event, Paste) or event.is_printable

"""Shared behavior of pages and dialogs: each closes only itself, and only once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import VerticalScroll
from textual.css.query import NoMatches
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from launcher.core.errors import UserError
from launcher.runs.watch.possible import Verb

if TYPE_CHECKING:
    from textual.worker import Worker, WorkType

    from launcher.runs.watch.reader import RunReader


HIDDEN = "-hidden"  # class of a widget without content
READ_ONLY = "Read-only: use `ppo-tui` or `ppo-tui attach` to change it"
_VERBS = {  # action -> its effect on a run
    "stop": Verb.STOP,
    "resume": Verb.RESUME,
    "fork": Verb.FORK,
    "again": Verb.FORK,
    "evaluate": Verb.EVALUATE,
    "merge": Verb.MERGE,
    "edit": Verb.EDIT,
    "mute": Verb.MUTE,
    "try": Verb.TRY,
    "try_fix": Verb.FORK,
}
_CHANGES = frozenset({*_VERBS, "note", "send"}) - {"edit"}
_NO_TROUBLE = "the run has not failed, does not hang, and printed no errors"


class Offers:
    """A screen or widget with actions that may be refused: `refusal` is the reason.

    Footer and palette omit such an action, the help dims it, and its key shows the reason.
    """

    LEGENDS: ClassVar[tuple[str, ...]] = ()  # the signs that the help explains, by `tui.pages.help.screen.LEGENDS`

    def refusal(self, action: str) -> str | None:
        """Why the action is unavailable now; None if it is available."""
        return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tells Textual whether an action is available; None: listed, but unavailable."""
        return None if self.refusal(action) is not None else True


def is_open(screen: Screen[Any]) -> bool:
    """Whether a screen still has its widgets. Work in a thread checks this before showing its result."""
    return screen.app.is_running and screen in screen.app.screen_stack


def run_refusal(action: str, reader: RunReader | None, *, read_only: bool) -> str | None:
    """Why an action on a run's page is unavailable now."""
    if reader is None:
        return "reading the run" if action in _VERBS or action == "diagnosis" else None
    if action == "diagnosis":
        return _NO_TROUBLE if reader.trouble is None and reader.problem is None else None
    if read_only and action in _CHANGES:
        return READ_ONLY
    return reader.refusals.get(_VERBS[action]) if action in _VERBS else None


ResultT = TypeVar("ResultT")
WorkT = TypeVar("WorkT")


class Page(Offers, Screen[ResultT]):
    """A page that closes only itself. Textual's `dismiss` closes the top page: a second key press would close the page
    below, and late work would close a page opened meanwhile.
    """

    PAGE_NAME: ClassVar[str] = ""  # begins the header, where there is one
    ENTRY_NAME: ClassVar[str] = ""  # ENTRY_NAME on the page of one entry
    FIELD_ACTIONS: ClassVar[tuple[str, ...]] = ("find", "filter", "ask")  # open a field, in which their key is a letter

    left = False
    """Whether the page is closed or closing, so that its pending keys are dropped."""
    _pending: Callable[[], AwaitComplete] | None = None  # how it closes once no other page covers it

    PARTS: ClassVar[tuple[type[Widget] | str, ...]] = ()  # widgets, or selectors, in which late work shows something
    _called: Mapping[str, str] = MappingProxyType({})  # as shown in the footer

    def pressed(self) -> None:
        """Takes in that a key was pressed here."""

    def called_for(self) -> Mapping[str, str]:
        """Actions suggested by the state, with labels: the footer begins with them."""
        return {}

    def update_footer(self) -> None:
        """Repaints the keys if the state suggests others; the footer paints itself whole."""
        if (called := self.called_for()) != self._called:
            self._called = called
            self.refresh_bindings()

    @property
    def whole(self) -> bool:
        """False while the page closes: its widgets are removed one by one, and late work may miss some."""
        return all(self.query(part) for part in self.PARTS)

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Closes this page once. A covered page closes when it is on top again."""
        return self._close(partial(super().dismiss, result), forward=False)

    def give_way(self, to: Screen[Any], *, forward: bool) -> None:
        """Closes this page as `dismiss` does, and opens another one instead.

        Pending keys of this page go to the other one if the way leads `forward`; on the way back they are dropped.
        """
        self._close(partial(self.app.switch_screen, to), forward=forward)

    def _close(self, close: Callable[[], AwaitComplete], *, forward: bool) -> AwaitComplete:
        if self.left or not is_open(self):
            return AwaitComplete()
        if self.is_active:
            self.left = not forward
            self.workers.cancel_node(self)  # no work may show results while its widgets are removed
            return close()
        if self._pending is None:
            self._pending = partial(self._close, close, forward=forward)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        if self._pending is not None:
            self._pending()

    def in_worker(self, act: Callable[[], Coroutine[Any, Any, object]], group: str, *, exclusive: bool = True) -> None:
        """Runs a function in a worker; `exclusive` cancels other workers of the group.

        It takes a function, as `textual.work` does, so that a worker cancelled before its start leaves no coroutine
        unawaited.
        """
        self.run_worker(cast("WorkType[None]", act), group=group, exclusive=exclusive)

    def run_worker(self, work: WorkType[WorkT], *args: Any, **options: Any) -> Worker[WorkT]:
        """Runs asynchronous work like Textual, for `in_worker` and `@work`; it may end while the page closes."""
        return super().run_worker(partial(self._while_open, work), *args, **options)

    async def _while_open(self, work: Any) -> Any:
        try:
            return await work()
        except NoMatches:  # the widgets of a page that closes go one by one
            if is_open(self):
                raise

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in self.FIELD_ACTIONS and isinstance(self.focused, Input):
            return False
        return super().check_action(action, parameters)

    def open_field(self, field: Input) -> None:
        """Shows a field and focuses it at once.

        `Widget.focus` is delayed: over a slow link, letters that arrive together with the opening key would act as keys
        of the screen.
        """
        field.remove_class(HIDDEN)
        self.set_focus(field)

    async def ready(self, key: str) -> None:
        """Waits until the page can handle a key that follows a text."""

    @property
    def topic(self) -> str | None:
        """The `ppo-tui help` topic of the selection; None without one."""
        return None

    @property
    def scrolled(self) -> VerticalScroll:
        """The widget moved by scrolling keys."""
        return self.query_one(VerticalScroll)

    def action_scroll(self, lines: int) -> None:
        self.scrolled.scroll_relative(y=lines, animate=False)

    def action_read(self, direction: int) -> None:
        """Scrolls a page forward or back."""
        self.action_scroll(direction * max(self.scrolled.size.height - 1, 1))


class Dialog(ModalScreen[ResultT], Page[ResultT]):  # Textual takes styles from the first base
    """A question over a page. The last line shows its keys."""

    HINTS = ""

    @staticmethod
    def objection(wrong: Callable[[str], str | None], text: str) -> str | None:
        """The objection of `wrong` to a text, or its error for one that it cannot judge: 5,000 letters, `~nobody`."""
        try:
            return wrong(text)
        except (UserError, OSError, RuntimeError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)

    def hints(self) -> ComposeResult:
        """The line with the keys."""
        yield Static(self.HINTS, id="keys", markup=False)

"""The menu of a page: actions without their own keys."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.containers import Vertical, VerticalScroll
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Static

from tui.kit.drawing.rows import Item, Row, labelled
from tui.kit.keys import KEYS, MENU
from tui.kit.page import Dialog, Offers
from tui.kit.widgets.lists import Items

_COLUMNS, _WORDS = 70, 10  # columns of the list, and before the words


def rare_actions(screen: Screen[object]) -> list[ActiveBinding]:
    """The menu actions of a screen, with their current keys."""
    found = {each.binding.id: each for each in reversed(screen.active_bindings.values()) if each.binding.id in MENU}
    return [*reversed(found.values())]


class ActionList(Items, inherit_bindings=False):
    """The actions by their ids."""

    BINDINGS = KEYS["action list"]


class ActionsScreen(Dialog[str | None]):
    """Returns the id of the action chosen by letter or list, or None; dims unavailable ones, with the reason."""

    HINTS = "enter, letter  choose    esc  cancel"
    BINDINGS = KEYS["actions"]

    def __init__(self, actions: Sequence[ActiveBinding]) -> None:
        super().__init__()
        self._actions = actions

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static("Actions", id="question")
            with VerticalScroll(id="actions", can_focus=False):
                yield ActionList()
            yield from self.hints()

    def on_mount(self) -> None:
        listed = self.query_one(ActionList)
        listed.show([self._item(each) for each in self._actions])
        listed.focus()

    def _item(self, action: ActiveBinding) -> Item:
        """The row of an action: its letter, the user's key, its words, and why it is unavailable."""
        node, binding, enabled, words = action
        letter = MENU[str(binding.id)]
        own = "" if " " in binding.key else self.app.get_key_display(binding)
        label: Row = [(f"  {letter} ", "live" if enabled else "dim"), (own, "dim")]
        rows = labelled(label, words, "text" if enabled else "dim", _WORDS, _COLUMNS)
        reason = node.refusal(binding.action.partition("(")[0]) if isinstance(node, Offers) else None
        return Item(binding.id, [*rows, *(labelled([], reason, "notice", _WORDS, _COLUMNS) if reason else [])])

    def on_key(self, event: Key) -> None:
        for each in self._actions:
            if event.character == MENU[str(each.binding.id)]:
                event.stop()
                self.dismiss(each.binding.id)

    def on_listing_chosen(self, event: Items.Chosen) -> None:
        self.dismiss(event.key)

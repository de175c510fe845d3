"""Which keys of a page work now. An action that cannot work has a reason, which its key and the help say."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from launcher.runs.watch.possible import Verb

if TYPE_CHECKING:
    from launcher.runs.watch.reader import RunReader

READ_ONLY = "Read-only: use `ppo-tui` or `ppo-tui attach` to change it"
_VERBS = {  # action -> what it does to a run
    "stop": Verb.STOP,
    "resume": Verb.RESUME,
    "fork": Verb.FORK,
    "evaluate": Verb.EVALUATE,
    "merge": Verb.MERGE,
    "edit": Verb.EDIT,
    "mute": Verb.MUTE,
}
_CHANGES = frozenset({*_VERBS, "note"}) - {"edit"}
_NO_TROUBLE = "the run has not failed, and printed no errors"


class Offers:
    """Of a screen or widget: `refusal` is why an action cannot work now.

    The footer and the palette leave such an action out, the help dims it, and a press of its key says why.
    """

    LEGENDS: ClassVar[tuple[str, ...]] = ()  # the signs that the help explains, by `tui.pages.help.screen.LEGENDS`

    def refusal(self, action: str) -> str | None:
        """Why the action cannot work now; None when it can."""
        return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """As Textual asks: None is an action that is listed and does not work."""
        return None if self.refusal(action) is not None else True


def run_refusal(action: str, reader: RunReader | None, *, read_only: bool) -> str | None:
    """Why an action of a page about a run cannot work now."""
    if reader is None:
        return "the run is being read" if action in _VERBS or action == "diagnosis" else None
    if action == "diagnosis":
        return _NO_TROUBLE if reader.trouble is None else None
    if read_only and action in _CHANGES:
        return READ_ONLY
    return reader.refusals.get(_VERBS[action]) if action in _VERBS else None

"""Fields that a key opens."""

from textual.widgets import Input

from tui.kit.widgets.painted import HIDDEN


def open_field(field: Input) -> None:
    """Shows a field and gives it the keys at once.

    `Widget.focus` waits for its turn: letters that come together with the key that opened the field, as over
    a slow link, would be taken as keys of the screen.
    """
    field.remove_class(HIDDEN)
    field.screen.set_focus(field)

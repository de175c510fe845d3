"""Which keys are told to people, and the keys that move, the same in every list and page."""

from textual.binding import Binding

_MOVES = {
    "up": ("up,k", "↑↓", "Up, down"),
    "down": ("down,j", "↑↓", "Up, down"),
    "page_up": ("pageup", "pgup pgdn", "A page up, a page down"),
    "page_down": ("pagedown", "pgup pgdn", "A page up, a page down"),
    "first": ("home", "home end", "To the first, to the last"),
    "last": ("end", "home end", "To the first, to the last"),
}


def moves(*, letters: bool = True, **actions: str) -> list[Binding]:
    """The bindings of a list or page: an action each for up, down, page_up, page_down, first, last.

    One id each for all of them, `move.page-up`: a user who moves it moves it everywhere. `letters` are k and
    j, for widgets that stand beside no field to type in.
    """
    found = []
    for name, action in actions.items():
        keys, display, tooltip = _MOVES[name]
        keys = keys if letters else keys.partition(",")[0]
        identity = f"move.{name.replace('_', '-')}"
        found.append(Binding(keys, action, id=identity, show=False, key_display=display, tooltip=tooltip))
    return found


LIST_MOVES = moves(
    up="move(-1)", down="move(1)", page_up="move(-8)", page_down="move(8)", first="move(-100000)", last="move(100000)"
)
"""Of a list with `action_move(distance)`."""


def is_ours(binding: Binding) -> bool:
    """Whether the palette lists a key: it is in the footer, or has a tooltip of its own."""
    return bool(binding.description and (binding.show or binding.tooltip)) and not binding.system

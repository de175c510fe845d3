"""Two themes of our own whose colours stay apart in 256 and in 16 colours.

OpenSSH does not pass COLORTERM on, so most sessions show 256 colours; every colour here is one of those.
In 16 colours ok, warning and critical still fall on green, yellow and red. Curves are blue: red and yellow
are kept for what needs attention.
"""

from textual.theme import BUILTIN_THEMES, Theme

from launcher.errors import UserError
from launcher.text import did_you_mean

DEFAULT = "dark"

_DARK = Theme(
    name="dark", dark=True,
    primary="#5fafff", secondary="#5fafff", accent="#5fd7ff",
    success="#5fd75f", warning="#ffd75f", error="#ff5f5f",
    foreground="#d0d0d0", background="#121212", surface="#1c1c1c", panel="#262626",
    variables={
        "dim": "#8a8a8a", "faint": "#4e4e4e", "curve": "#5fafff",
        "scrollbar": "#4e4e4e", "scrollbar-background": "#1c1c1c", "scrollbar-corner-color": "#121212",
        "footer-background": "#121212", "footer-key-foreground": "#5fafff",
        "footer-description-foreground": "#8a8a8a",
        "block-cursor-background": "#303030", "block-cursor-foreground": "#eeeeee",
        "block-cursor-text-style": "bold", "block-cursor-blurred-background": "#1c1c1c",
    },
)  # fmt: skip

_LIGHT = Theme(
    name="light", dark=False,
    primary="#005faf", secondary="#005faf", accent="#0087af",
    success="#008700", warning="#af5f00", error="#d70000",
    foreground="#303030", background="#ffffff", surface="#eeeeee", panel="#e4e4e4",
    variables={
        "dim": "#6c6c6c", "faint": "#bcbcbc", "curve": "#005faf",
        "scrollbar": "#bcbcbc", "scrollbar-background": "#eeeeee", "scrollbar-corner-color": "#ffffff",
        "footer-background": "#ffffff", "footer-key-foreground": "#005faf",
        "footer-description-foreground": "#6c6c6c",
        "block-cursor-background": "#d0d0d0", "block-cursor-foreground": "#000000",
        "block-cursor-text-style": "bold", "block-cursor-blurred-background": "#eeeeee",
    },
)  # fmt: skip

OWN = (_DARK, _LIGHT)


def theme_name(asked: str | None) -> str:
    """The name of the theme to use. Raises UserError for one that does not exist."""
    known = [*(theme.name for theme in OWN), *BUILTIN_THEMES]
    if asked is not None and asked not in known:
        raise UserError(
            f"--theme {asked}: no such theme{did_you_mean(asked, known)}; try dark, light or ansi-dark"
        )
    return asked or DEFAULT

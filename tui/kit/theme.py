"""Themes of our own whose colours stay apart in 256 and in 16 colours.

OpenSSH does not pass COLORTERM on, so most sessions show 256 colours; every colour here is one of those.
In 16 colours ok, warning and critical still fall on green, yellow and red. The first curve is blue, and no
curve is red or yellow: these are kept for what needs attention. The four curves stay apart for colour-blind
eyes in every theme, the states in `colour-blind` (tests/tui/test_themes.py simulates them).
`terminal` has the 16 colours of the terminal itself and paints no background.
"""

from dataclasses import replace

from textual.theme import BUILTIN_THEMES, Theme

from launcher.core.errors import UserError
from launcher.core.text import clean, near_hint

DEFAULT, TERMINAL = "dark", "terminal"


def foreign_variables(theme: Theme) -> dict[str, str]:
    """Our variables for a theme that is not ours."""
    if theme.ansi:
        dim = faint = "ansi_bright_black"
        others = ("ansi_magenta", "ansi_cyan", "ansi_default")
    elif theme.dark:
        dim, faint, others = "#8a8a8a", "#5f5f5f", ("#d75faf", "#87ff5f", "#eeeeee")
    else:
        dim, faint, others = "#6c6c6c", "#bcbcbc", ("#af5fff", "#008700", "#121212")
    curves = {f"curve-{number}": colour for number, colour in enumerate(others, 2)}
    return {"dim": dim, "faint": faint, "curve": theme.primary, **curves}


def _painted(theme: Theme, *, cursor: str, text: str, scrollbar: str) -> Theme:
    """A theme with the rest of its colours made of its own."""
    dim = foreign_variables(theme)["dim"]
    assert theme.background and theme.surface
    theme.variables = {
        **foreign_variables(theme),
        "faint": scrollbar,
        "scrollbar": scrollbar,
        "scrollbar-background": theme.surface,
        "scrollbar-corner-color": theme.background,
        "footer-background": theme.background,
        "footer-key-foreground": theme.primary,
        "footer-description-foreground": dim,
        "block-cursor-background": cursor,
        "block-cursor-foreground": text,
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": theme.surface,
    }
    return theme


_DARK = _painted(
    Theme(
        name="dark",
        primary="#5fafff",
        secondary="#5fafff",
        accent="#5fd7ff",
        success="#5fd75f",
        warning="#ffd75f",
        error="#ff5f5f",
        foreground="#d0d0d0",
        background="#121212",
        surface="#1c1c1c",
        panel="#262626",
    ),
    cursor="#303030",
    text="#eeeeee",
    scrollbar="#4e4e4e",
)
_COLOUR_BLIND = replace(_DARK, name="colour-blind", accent="#875fff", success="#5fd7ff", warning="#ffd700")
_LIGHT = _painted(
    Theme(
        name="light",
        dark=False,
        primary="#005faf",
        secondary="#005faf",
        accent="#0087af",
        success="#008700",
        warning="#af5f00",
        error="#d70000",
        foreground="#303030",
        background="#ffffff",
        surface="#eeeeee",
        panel="#e4e4e4",
    ),
    cursor="#d0d0d0",
    text="#000000",
    scrollbar="#bcbcbc",
)
_TERMINAL = Theme(
    name=TERMINAL,
    dark=True,
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_blue",
    accent="ansi_cyan",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        "dim": "ansi_bright_black",
        "faint": "ansi_bright_black",
        "curve": "ansi_bright_blue",
        "curve-2": "ansi_magenta",
        "curve-3": "ansi_cyan",
        "curve-4": "ansi_default",
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "footer-key-foreground": "ansi_default",
        "footer-description-foreground": "ansi_default",
        # a cursor is shown without a colour: black on white may be white on white in another terminal
        "block-cursor-background": "ansi_default",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-text-style": "reverse",
        "block-cursor-blurred-background": "ansi_default",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
    },
)

OWN = (_DARK, _LIGHT, _COLOUR_BLIND, _TERMINAL)


def theme_name(asked: str | None, place: str = "--theme") -> str:
    """The name of the theme to use. Raises UserError for one that does not exist; `place` asked for it."""
    known = [*(theme.name for theme in OWN), *BUILTIN_THEMES]
    if asked is not None and asked not in known:
        ours = ", ".join(theme.name for theme in OWN)
        hint = near_hint(asked, known) or f"use {ours}, or a theme of Textual: {', '.join(BUILTIN_THEMES)}"
        raise UserError(f"{place}: unknown theme {clean(asked)!r}", hint)
    return asked or DEFAULT

"""Our themes (theme.toml), with colors that stay distinct in 256 and in 16 colors.

OpenSSH does not pass COLORTERM on, so most sessions show 256 colors; every color here is one of those. In 16 colors ok,
warning and critical still become green, yellow and red. The first curve is blue, and no curve is red or yellow, which
are reserved for flags. The four curves are distinct for color-blind eyes in every theme, the states in `color-blind`
(tests/tui/test_themes.py simulates them). `terminal` has the terminal's own 16 colors and paints no background.
"""

from typing import Any

from textual.theme import BUILTIN_THEMES, Theme

from launcher.core.errors import UserError
from launcher.core.tables import tables_of
from launcher.core.text import clean, near_hint

DEFAULT, TERMINAL = "dark", "terminal"


def foreign_variables(theme: Theme) -> dict[str, str]:
    """Our style variables for a theme that is not ours."""
    if theme.ansi:
        dim = faint = "ansi_bright_black"
        beyond = "ansi_default"
        others = ("ansi_magenta", "ansi_cyan", "ansi_default")
    elif theme.dark:
        dim, faint, others = "#8a8a8a", "#5f5f5f", ("#d75faf", "#87ff5f", "#eeeeee")
        beyond = "#303030"
    else:
        dim, faint, others = "#6c6c6c", "#bcbcbc", ("#af5fff", "#008700", "#121212")
        beyond = "#e4e4e4"
    curves = {f"curve-{number}": colour for number, colour in enumerate(others, 2)}
    return {"dim": dim, "faint": faint, "beyond": beyond, "curve": theme.primary, **curves}


def _theme(name: str, table: dict[str, Any]) -> Theme:
    """A theme whose missing colors are derived from its own; `terminal` has all colors in the table."""
    table = {**_TABLES.get(table.pop("like", ""), {}), **table}
    variables = {variable: table.pop(variable) for variable in [*table] if "-" in variable or variable in _OURS}
    theme = Theme(name=name, **table)
    if not theme.ansi:
        derived = {
            "faint": variables["scrollbar"],
            "scrollbar-background": theme.surface,
            "scrollbar-corner-color": theme.background,
            "footer-background": theme.background,
            "footer-key-foreground": theme.primary,
            "footer-description-foreground": foreign_variables(theme)["dim"],
            "block-cursor-blurred-background": theme.surface,
        }
        variables = {**foreign_variables(theme), **{key: str(color) for key, color in derived.items()}, **variables}
    theme.variables = variables
    return theme


_TABLES = tables_of(__file__, "theme.toml")
_OURS = ("dim", "faint", "beyond", "curve", "scrollbar")  # variables whose names have no hyphen
OWN = tuple(_theme(name, dict(table)) for name, table in _TABLES.items())


def theme_name(asked: str | None, place: str = "--theme") -> str:
    """The name of the theme to use. Raises UserError for an unknown name; `place`: where it was set."""
    known = [*(theme.name for theme in OWN), *BUILTIN_THEMES]
    if asked is not None and asked not in known:
        ours = ", ".join(theme.name for theme in OWN)
        hint = near_hint(asked, known) or f"use {ours}, or the name of a theme of Textual"
        raise UserError(f"{place}: unknown theme {clean(asked)!r}", hint)
    return asked or DEFAULT

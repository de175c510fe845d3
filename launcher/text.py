"""Text that comes from outside: logs, presets, samples."""

import codecs
import difflib
import re
from collections.abc import Iterable

# CSI, OSC/DCS/APC/PM/SOS strings (ended by BEL or ST, cut off by the end of the line), two-character escapes.
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\)?|[ -/]*[0-~]?)"
    r"|\x9b[0-?]*[ -/]*[@-~]?"
)
# C0 but tab and newline, C1, direction marks, other line ends, halves of surrogate pairs (UTF-8 has none).
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

ASCII = {  # signs and their twins where a terminal or a locale has no others; both one cell wide
    "●": "*",
    "◆": "i",
    "▲": "!",
    "✖": "X",
    "·": ".",
    "○": "o",
    "■": "#",
    "✔": "+",
    "◇": "o",
    "↑": "^",
    "↓": "v",
    "…": "~",
    "–": "-",
    "—": "-",
    "❯": ">",
    "→": ">",
    "←": "<",
    "≥": ">",
    "≤": "<",
    "│": "|",
    "─": "-",
    "┊": ":",
    "╌": "-",
    "━": "=",
    "╸": "-",
    "▓": "#",
    "▒": "%",
    "░": ".",
    "×": "x",
    "╭": "+",
    "╮": "+",
    "╰": "+",
    "╯": "+",
    "▌": "|",
    "▐": "|",
    "▊": "|",
    "▎": "|",
    "▔": "-",
    "°": " ",
    "²": "2",
    "▁": "_",
    "▂": "_",
    "▃": ".",
    "▄": "-",
    "▅": "-",
    "▆": "=",
    "▇": "=",
    "█": "#",
    "★": "*",
}

TWINS = "twins"
"""An error handler of codecs: letters that an encoding lacks become their twins, others question marks."""


def _twins(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(ASCII.get(char, "?") for char in error.object[error.start : error.end]), error.end


codecs.register_error(TWINS, _twins)


def clean(text: str) -> str:
    """`text` without terminal escapes, control characters and direction marks; tabs become spaces.

    Newlines stay. What is left can be drawn without acting on the terminal.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("", _ESCAPE.sub("", text)).expandtabs(4)


def without_login(text: str) -> str:
    """`text` without the user and password of the addresses in it."""
    return re.sub(r"//[^/@\s]+@", "//", text)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a mistyped one, or None when nothing is near."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing when no known name is near."""
    return perhaps(nearest(name, known))


def perhaps(near: str | None) -> str:
    """The same for a name that was found in another way."""
    return f" (did you mean '{near}'?)" if near else ""

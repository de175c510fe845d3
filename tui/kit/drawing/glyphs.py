"""Every sign on the screen.

Widgets draw the signs below; `--ascii` translates them by `launcher.core.text.ASCII` when a row is painted. Each sign
and its translation is one cell wide, so that the layout is equal.
"""

from rich.cells import cell_len

from launcher.core.tables import tables_of
from launcher.core.text import ASCII
from launcher.record.levels import Level

OK, NOTICE, WARN, CRITICAL, NONE = (level.sign for level in (*map(Level, range(4)), Level.N_A))
RUNNING, WAITING, STOPPED, FINISHED, FAILED, LOST, IMPORTED = "●", "○", "■", "✔", "✖", "?", "◇"
UP, DOWN, ARROW = "↑", "↓", "→"
DOT = "·"
ELLIPSIS = "…"
DASH = "–"
CURSOR = "❯"
AXIS, BASE, SEAM, LIMIT = "│", "─", "┊", "╌"
BAR, BAR_HALF, BAR_REST = "━", "╸", "─"
FILL, FILL_OTHERS, FILL_REST = "▓", "▒", "░"
SPARK = "▁▂▃▄▅▆▇█"
PIN = "★"

SIGNS = tables_of(__file__, "signs.toml")


def signs(kind: str) -> dict[str, tuple[str, str]]:
    """Sign and role of each value of a kind: `state`, `level`, `queue`, ..."""
    return {name: (sign, role) for name, (sign, role) in SIGNS[kind].items()}


BRAILLE = 0x2800
_ROWS = (0x01 | 0x08, 0x02 | 0x10, 0x04 | 0x20, 0x40 | 0x80)  # dots of each row


def _ascii_braille(dots: int) -> str:
    first, second, third, fourth = (bool(dots & row) for row in _ROWS)
    if (first or second) and (third or fourth):
        return ":"
    return "'" if first or second else "." if third and fourth else "-" if third else "_" if fourth else " "


_TABLE = str.maketrans(ASCII | {chr(BRAILLE + dots): _ascii_braille(dots) for dots in range(256)})


def to_ascii(text: str) -> str:
    """The text in ASCII with equal width: translates our signs, replaces foreign ones by question marks."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else "?" * cell_len(char) for char in text.translate(_TABLE))

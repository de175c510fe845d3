"""The newest message of the screen: over the footer, or in a dashboard's log tail."""

import time
from dataclasses import dataclass, field

from textual.geometry import Size

from launcher.core.text import clean
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, crop, fold
from tui.kit.widgets.painted import Painted

_SIGNS = glyphs.signs("message")
_STATES = frozenset((glyphs.OK, glyphs.FINISHED, glyphs.STOPPED, *(sign for sign, _ in _SIGNS.values())))
MOST = 3  # lines
_SHARE = 5  # rows of a screen that give one to the message
_READ = 1.0  # seconds that a message stays despite typing, so that an unexpected one can be read


@dataclass(frozen=True)
class Said:
    """A message, its severity, and its duration in seconds."""

    text: str
    severity: str
    stays: float
    at: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until it goes."""
        return self.at + self.stays - time.monotonic()

    @property
    def fresh(self) -> bool:
        """Whether it is too new for a key press to remove it."""
        return time.monotonic() - self.at < _READ


class MessageLine(Painted):
    """One line over the footer; up to three for a long message on a high screen."""

    def __init__(self, said: Said) -> None:
        super().__init__()
        self.said = said

    def on_mount(self) -> None:
        super().on_mount()
        self.set_timer(max(self.said.left, 0.01), self.remove)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.draw(width, min(MOST, max(viewport.height // _SHARE, 1))))

    def draw(self, columns: int, rows: int) -> list[Row]:
        return message_rows(self.said, columns, rows)


def message_rows(said: Said, columns: int, rows: int) -> list[Row]:
    """The message with its sign, in at most `rows` rows."""
    text = " · ".join(filter(None, (line.strip() for line in clean(said.text).splitlines())))
    sign, role = _SIGNS[said.severity]
    if text[:1] in _STATES:  # the message has its own sign
        sign, text = text[0], text[1:].lstrip()
    room = max(columns - 4, 1)
    lines = fold(text, room)
    if len(lines) > rows:
        lines = [*lines[: rows - 1], " ".join(lines[rows - 1 :])]
    heads = [(f" {sign} ", role), *[("   ", "text")] * (len(lines) - 1)]
    return [[head, *crop([(line, "text")], room)] for head, line in zip(heads, lines, strict=True)]

"""`--ascii` for what Textual draws: borders, scrollbars, messages, dialogs, the palette."""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tui.glyphs import to_ascii


class AsciiFilter(LineFilter):
    """Sees every line of every widget; our own have translated theirs, to compare what they paint."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.control or segment.text.isascii() else segment._replace(text=to_ascii(segment.text))
            for segment in segments
        ]

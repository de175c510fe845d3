"""The base of widgets that draw themselves cell by cell."""

import re
from pathlib import Path

from rich.segment import Segment
from rich.style import Style
from textual.css.styles import RenderStyles
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.drawing.glyphs import to_ascii
from tui.kit.drawing.rows import TINTED, Row, change, fit, joined

ROLES = ("text", *re.findall(r"(?m)^\.role--([\w-]+)", (Path(__file__).parents[2] / "app.tcss").read_text("utf-8")))
ROLE_CLASSES = {f"role--{role}" for role in ROLES}  # for the app
_ALL = 1000  # rows; more than any terminal has
CURSOR_ROW = "cursor-row"  # the role of the first cell of a row that is highlighted from end to end
ASCII_CLASS = "-ascii"  # class of the app: draw with ASCII characters only


class Painted(Widget):
    """Draws rows of (text, role), and repaints only the changed cells.

    Textual repaints whole regions, which over a slow link is most of the bytes, so `redraw` compares the new rows with
    those on the screen. A row is painted from its start to its last change, and each change of role costs an escape:
    put text that changes often to the left, in few roles. Roles take their colors from the CSS classes `.role--<name>`,
    which are component classes of the app.
    """

    ALLOW_SELECT = False

    _rows: list[Row] = []  # noqa: RUF012 (replaced, never changed)
    _drawn_for: Size | None = None
    _own = Style()  # style at the last paint

    def on_mount(self) -> None:
        # another theme may change the colour of a role and none of the widget's own
        self.app.theme_changed_signal.subscribe(self, lambda theme: self.refresh())

    def get_component_styles(self, *names: str) -> RenderStyles:
        """The app's component styles. Styles per widget would take a quarter of the start."""
        return self.app.get_component_styles(*names)

    @property
    def tinted(self) -> bool:
        """Whether the terminal has colors for tints: roles may end in `TINTED`."""
        coarse = self.app.current_theme.ansi or self.app.console.color_system == "standard"
        return not coarse and not self.app.has_class(ASCII_CLASS)

    def draw(self, columns: int, rows: int) -> list[Row]:
        """Rows to show in `columns` × `rows` cells; missing rows and cells are padded."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Redraws and repaints the differences; cheap without any."""
        if not self.is_mounted or self._drawn_for != self.size:
            # a hidden one forgets what it has painted, but once: each time Textual lays out the screen again
            if self.size or self._drawn_for is not None:
                self.refresh()
            self._drawn_for = None
            return
        before, self._rows = self._rows, self._build()
        regions = [
            Region(found[0], row, found[1], 1)
            for row, (old, new) in enumerate(zip(before, self._rows, strict=True))
            if (found := (0, self.size.width) if _highlit(old) != _highlit(new) else change(old, new))
        ]
        if regions:
            self.refresh(*regions)

    def render_lines(self, crop: Region) -> list[Strip]:
        self._own = self.rich_style  # once: Textual takes as long for it as for a whole line
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        if self._drawn_for != self.size:
            self._rows, self._drawn_for = self._build(), self.size
        if y >= len(self._rows):
            return Strip.blank(self.size.width, self._own)
        own, style = self._own, self.get_component_rich_style
        if _highlit(self._rows[y]):
            own += Style(bgcolor=style(f"role--{CURSOR_ROW}").bgcolor)
        row = []
        for text, role in self._rows[y]:
            color = own + style(f"role--{role.removesuffix(TINTED)}", partial=True)
            if role.endswith(TINTED):
                color += Style(bgcolor=style("role--beyond").bgcolor)
            row.append(Segment(text, color))
        return Strip(row, self.size.width)

    def _build(self) -> list[Row]:
        columns, rows = self.size
        drawn = self.draw(columns, rows)[:rows]
        drawn += [[] for _ in range(rows - len(drawn))]
        fitted = [joined(fit(row, columns)) for row in drawn]
        if self.app.has_class(ASCII_CLASS):
            return [[(to_ascii(text), role) for text, role in row] for row in fitted]
        return fitted


class Grown(Painted):
    """A widget as high as its content, if there is room for it."""

    LEAST = 0  # rows
    _laid_out = -1  # number of rows in the layout

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._laid_out = self.wanted(width)
        return self._laid_out

    def redraw(self) -> None:
        if self.display and self._laid_out not in (-1, self.wanted(self.size.width)):
            self.refresh(layout=True)
        super().redraw()

    def wanted(self, columns: int) -> int:
        """The number of rows of the whole content."""
        return max(len(self.draw(columns, _ALL)), self.LEAST)


def _highlit(row: Row) -> bool:
    return bool(row) and row[0][1] == CURSOR_ROW

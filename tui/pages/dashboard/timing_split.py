"""The parts of a step's time as one bar, and the usual parts as another."""

from launcher.core.format import number
from launcher.metrics.store import SeriesStore
from launcher.metrics.timing import Split, last_split, usual_split
from tui.kit.drawing.glyphs import signs
from tui.kit.drawing.rows import Row, crop, width
from tui.kit.page import HIDDEN
from tui.kit.widgets.painted import Painted

_SIGNS = signs("part")
_LEAST, _MOST = 8, 60  # cells of a bar; nearly all of them change with a step, and each is a byte or three


class TimingSplit(Painted):
    """Three rows: the parts with seconds and shares; the last step; the medians of the recent ones.

    The bars have one scale. Hidden without step times.
    """

    BORDER_TITLE = "time"
    last: Split | None = None
    usual: Split | None = None

    def show(self, series: SeriesStore) -> None:
        """Shows the newest step and earlier ones."""
        self.last, self.usual = last_split(series), usual_split(series)
        self.set_class(self.last is None, HIDDEN)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.last is None:
            return []
        names = ("last step", "usual")
        drawn = [_legend(self.last, columns)]
        longest = max(split.seconds for split in (self.last, self.usual) if split)
        for name, split in zip(names, (self.last, self.usual), strict=True):
            if split is not None:
                drawn.append(_bar_row(name, split, longest, columns))
        return drawn[:rows]


def _legend(split: Split, columns: int) -> Row:
    """`▒ rollout 6.1 s 46 %`, with fewer words if there is less room."""
    parts = [part for part in split.parts if split.parts[part] > 0]
    for seconds, shares in ((True, True), (False, True), (False, False)):
        row: Row = []
        for part in parts:
            sign, role = _SIGNS[part]
            said = f" {part}" + (f" {number(split.parts[part]):>4} s" if seconds else "")
            said += f" {100 * split.share(part):2.0f} %" if shares else ""
            row += [(f" {sign}", role), (f"{said} ", "text")]
        if width(row) <= columns:
            break
    return crop(row, columns)


def _bar_row(name: str, split: Split, longest: float, columns: int) -> Row:
    """`last step   13.3 s r██████ l██ c█ u█`."""
    head = f" {name:<10}{number(split.seconds):>5} s "
    room = min(columns - len(head) - 1, _MOST)
    if room < _LEAST:
        return [(head, "dim")]
    row: Row = [(head, "dim")]
    begun, drawn = 0.0, 0
    for part, seconds in split.parts.items():
        begun += seconds
        cells = round(begun / longest * room) - drawn if longest > 0 else 0
        drawn += cells
        sign, role = _SIGNS[part]
        if cells > 0:  # the initial stands for the name where there is no color; a gap ends all but the shortest
            row.append(((part[0] + sign * (cells - 2) + " ")[:cells], role))
    return row

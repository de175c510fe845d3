"""Everything about one GPU, or the host: whose memory, how warm, which processes."""

from textwrap import wrap

from textual.geometry import Size

from launcher.core.text import clean
from tui.kit.drawing.rows import Row
from tui.kit.memory_rows import Device, detail_rows
from tui.kit.widgets.painted import Painted

_NO_SAMPLES = "no memory samples; ppo-tui records one per second while it supervises a run"


class DeviceDetail(Painted):
    """As high as it has something to say, as far as there is room."""

    device: Device | None = None
    missing: str | None = None
    away: str | None = None

    def show(self, device: Device | None, missing: str | None, away: str | None = None) -> None:
        """`missing` is why there are no GPU figures, None when nobody misses them; `away` why other nodes are not."""
        before = self._wanted(self.size.width)
        self.device, self.missing, self.away = device, missing, away
        if self._wanted(self.size.width) != before:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._wanted(width)

    def _wanted(self, columns: int) -> int:
        return len(self._rows_of(columns, 1000))

    def draw(self, columns: int, rows: int) -> list[Row]:
        return self._rows_of(columns, rows)

    def _rows_of(self, columns: int, rows: int) -> list[Row]:
        if self.device is None:
            return [[(f" {line}", "dim")] for line in wrap(_NO_SAMPLES, max(columns - 2, 8))]
        away: list[Row] = [[(f"  {line}", "dim")] for line in wrap(clean(self.away or ""), max(columns - 3, 8))]
        return detail_rows(self.device, columns, rows - len(away), self.missing) + away

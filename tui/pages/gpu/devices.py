"""The GPUs and the host, a line each, with a cursor."""

from collections.abc import Sequence
from textwrap import wrap
from typing import ClassVar

from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message

from launcher.core.text import clean
from tui.kit.drawing.rows import Row
from tui.kit.keys import KEYS
from tui.kit.memory_rows import Device, detail_rows, device_name, device_row
from tui.kit.widgets.painted import Painted


class DeviceList(Painted, can_focus=True):
    """As high as it has devices; where there is less room, the ones around the chosen device."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["devices"]]

    class Moved(Message):
        """Another device was chosen."""

    devices: Sequence[Device] = ()
    cursor = 0

    @property
    def chosen(self) -> Device | None:
        return self.devices[min(self.cursor, len(self.devices) - 1)] if self.devices else None

    def show(self, devices: Sequence[Device]) -> None:
        """Replaces the devices by newer figures of them."""
        taller = len(devices) != len(self.devices)
        self.devices = devices
        if taller:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.devices)

    def draw(self, columns: int, rows: int) -> list[Row]:
        first = min(max(self.cursor - rows + 1, 0), max(len(self.devices) - rows, 0))
        shown = self.devices[first : first + rows]
        longest = max((len(device_name(device)) for device in self.devices), default=0)
        return [device_row(device, columns, device is self.chosen, longest) for device in shown]

    def action_move(self, distance: int) -> None:
        self.cursor = min(max(self.cursor + distance, 0), max(len(self.devices) - 1, 0))
        self.redraw()
        self.post_message(self.Moved())


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

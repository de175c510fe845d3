"""The GPUs and the host, a line each, with a cursor."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from tui.kit.drawing.rows import Row, paragraph
from tui.kit.keys import KEYS
from tui.kit.memory_rows import Device, detail_rows, device_name, device_row
from tui.kit.widgets.painted import Grown


class DeviceList(Grown, can_focus=True):
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
        self.devices = devices
        self.redraw()

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


class DeviceDetail(Grown):
    """As high as it has something to say, as far as there is room."""

    device: Device | None = None
    missing: str | None = None
    away: str | None = None

    def show(self, device: Device | None, missing: str | None, away: str | None = None) -> None:
        """`missing` is why there are no GPU figures, None when nobody misses them; `away` why other nodes are not."""
        self.device, self.missing, self.away = device, missing, away
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.device is None:
            return paragraph(_NO_SAMPLES, "dim", columns)
        away = paragraph(self.away or "", "dim", columns, indent=2)
        return detail_rows(self.device, columns, rows - len(away), self.missing) + away

"""The GPUs and the host, a line each, with a cursor."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message

from tui.kit.drawing.rows import Row
from tui.kit.keys import KEYS
from tui.kit.memory_rows import Device, device_name, device_row
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

"""The GPUs and the host, a line each, with a cursor."""

from collections.abc import Sequence

from tui.kit.drawing.rows import Row, paragraph
from tui.kit.keys import KEYS
from tui.kit.memory_rows import Device, detail_rows, device_name, device_row
from tui.kit.widgets.lists import Listing
from tui.kit.widgets.painted import Grown


class DeviceList(Listing, Grown):
    """As high as it has devices; where there is less room, the ones around the chosen device."""

    BINDINGS = KEYS["devices"]

    devices: Sequence[Device] = ()

    @property
    def names(self) -> Sequence[str]:
        return [device_name(device) for device in self.devices]

    @property
    def chosen(self) -> Device | None:
        return next((device for device in self.devices if device_name(device) == self.cursor), None)

    def show(self, devices: Sequence[Device]) -> None:
        """Replaces the devices by newer samples of them."""
        self.devices = devices
        self.keep_cursor()
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        names = self.names
        at = names.index(self.cursor) if self.cursor is not None else 0
        first = min(max(at - rows + 1, 0), max(len(names) - rows, 0))
        longest = max(map(len, names), default=0)
        shown = self.devices[first : first + rows]
        return [device_row(device, columns, device is self.chosen, longest) for device in shown]


_NO_SAMPLES = "no memory samples; ppo-tui records one per second while it supervises a run"


class DeviceDetail(Grown):
    """As high as it has something to say, as far as there is room."""

    device: Device | None = None
    missing: str | None = None
    away: str | None = None

    def show(self, device: Device | None, missing: str | None, away: str | None = None) -> None:
        """`missing` is why there are no GPU metrics, None when nobody misses them; `away` why other nodes are not."""
        self.device, self.missing, self.away = device, missing, away
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.device is None:
            return paragraph(_NO_SAMPLES, "dim", columns)
        away = paragraph(self.away or "", "dim", columns, indent=2)
        return detail_rows(self.device, columns, rows - len(away), self.missing) + away

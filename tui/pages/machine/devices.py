"""The GPUs and the host: one line each with a cursor, and the chosen one in detail."""

from collections.abc import Callable, Sequence

from launcher.record.machine import MachineSample
from tui.kit.drawing.glyphs import CURSOR
from tui.kit.drawing.rows import Row, paragraph
from tui.kit.keys import KEYS
from tui.kit.memory_rows import Device, detail_rows, device_name, device_row
from tui.kit.widgets.lists import Listing
from tui.kit.widgets.painted import CURSOR_ROW, Grown

_NO_SAMPLES = (
    "GPUs and host memory appear here. This run has no samples: ppo-tui records one per second while it supervises a "
    "run. The chart shows the values that veRL logged."
)


class DeviceList(Listing, Grown):
    """A list with one line per device; with less room, the lines around the chosen one."""

    BINDINGS = KEYS["devices"]

    devices: Sequence[Device] = ()

    @property
    def names(self) -> Sequence[str]:
        return [device_name(device) for device in self.devices]

    @property
    def chosen(self) -> Device | None:
        return next((device for device in self.devices if device_name(device) == self.cursor), None)

    def show(self, devices: Sequence[Device]) -> None:
        """Replaces the devices by newer samples."""
        self.devices = devices
        self.keep_cursor()
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if not self.devices:
            return paragraph(_NO_SAMPLES, "dim", columns)
        names = self.names
        at = names.index(self.cursor) if self.cursor is not None else 0
        first = min(max(at - rows + 1, 0), max(len(names) - rows, 0))
        longest = max(map(len, names), default=0)
        shown = self.devices[first : first + rows]
        drawn = [device_row(device, columns, device is self.chosen, longest) for device in shown]
        return [[(CURSOR, CURSOR_ROW), *row[1:]] if row[0][0] == CURSOR else row for row in drawn]


def chosen_rows(
    device: Device | None, sample: MachineSample | None, columns: int, rows: int, *, on_cpu: bool, ended: bool
) -> list[Row]:
    """The chosen device in at most `rows` rows: its memory, state, users, and missing values.

    For a run `on_cpu`, GPU metrics are not reported as missing.
    """
    if device is None or sample is None:
        return []
    of_run = " with processes of the run" if sample.shows_run else ""
    notes = (sample.away or "", f"At the end: the values of the last sample{of_run}." if ended else "")
    below = [row for note in notes for row in paragraph(note, "dim", columns, indent=2)]
    return detail_rows(device, columns, rows - len(below), None if on_cpu else sample.missing, sample) + below


class DeviceDetail(Grown):
    """As high as its content, if there is room."""

    detail: Callable[[int, int], list[Row]] | None = None

    def show(self, detail: Callable[[int, int], list[Row]]) -> None:
        """Replaces the content, which `detail` draws for a given number of columns and rows."""
        self.detail = detail
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        return self.detail(columns, rows) if self.detail is not None else []

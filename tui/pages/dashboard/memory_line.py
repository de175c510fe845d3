"""GPU memory with the host's load and disk; host memory without a readable GPU."""

from collections.abc import Callable, Sequence

from launcher.core.format import amount, gib, number
from launcher.core.text import clean
from launcher.record.machine import GpuSample, MachineSample
from tui.kit.drawing.glyphs import FILL, FILL_REST
from tui.kit.drawing.rows import Row
from tui.kit.memory_rows import FULL, TIGHT, devices, short_name, used_share
from tui.kit.page import HIDDEN
from tui.kit.widgets.painted import Grown

NO_NVML = "no GPU metrics"
_BAR, _LEAST_BAR = 24, 4  # cells


class Memory(Grown):
    """One line per GPU and one for the host if there is room, otherwise one line for all."""

    BORDER_TITLE, LEAST = "machine", 1
    sample: MachineSample | None = None
    on_cpu = False

    def show(self, sample: MachineSample | None, on_cpu: bool) -> None:
        """`sample` is the newest line of gpu.jsonl; `on_cpu`: the run uses no GPU."""
        self.sample, self.on_cpu = sample, on_cpu
        self.set_class(sample is None, HIDDEN)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.sample is None:
            return []
        gpus, host = self.sample.gpus, _host_figures(self.sample)
        if len(gpus) == 1 or len(gpus) > rows:
            return [_gpu(gpus, columns, host)]
        return [*(_gpu([gpu], columns) for gpu in gpus), self._host(self.sample, columns, host)]

    def _host(self, sample: MachineSample, columns: int, figures: Sequence[str]) -> Row:
        host = devices(sample)[-1]
        words = f" host {gib(host.used)}/{gib(host.total)} GiB"
        if host.run_used is not None:
            words += f"  run {gib(host.run_used)} GiB"
        words = "  ".join((words, *figures))
        missing = clean(sample.missing or NO_NVML)
        why = "" if self.on_cpu or sample.gpus else f"  {missing.partition(' (')[0]}"  # the machine page shows it
        return [(words + why, "text"), *_bar(host, columns - len(words) - len(why) - 3)]


def _host_figures(sample: MachineSample) -> list[str]:
    """`load 3.8/2` of 2 cores, `disk 41.0 GiB free`, as far as known."""
    host, disk = sample.host, sample.disk
    load = [f"load {number(host.load, 2)}/{host.cores}"] if host.load is not None and host.cores else []
    return load + ([f"disk {amount(disk.free)} free"] if disk is not None else [])


def _gpu(gpus: Sequence[GpuSample], columns: int, host: Sequence[str] = ()) -> Row:
    """One GPU, or several in one line with the minimum and maximum of each number and the fullest GPU's bar.

    The numbers of the `host` come before power and temperature, which the machine page also has.
    """
    fullest = max(gpus, key=used_share)
    which = f"GPU {fullest.index}" if len(gpus) == 1 else f"{len(gpus)} ×"
    used = _range([gpu.used for gpu in gpus], gib) or "–"
    words = f" {which} {short_name(fullest)}  {used:>5}/{gib(fullest.total)} GiB"
    values = {"%": [gpu.util for gpu in gpus], "W": [gpu.power for gpu in gpus], "°C": [gpu.temp for gpu in gpus]}
    busy, *others = [f"{figure:>3} {unit}" if (figure := _range(of, str)) else "" for unit, of in values.items()]
    room = columns - (_LEAST_BAR + 3 if host else 0)  # for words
    for figure in (busy, *host, *others):
        if figure and len(words) + len(figure) + 2 <= room:
            words += f"  {figure}"
    return [(words, "text"), *_bar(fullest, columns - len(words) - 3)]


def _range(values: Sequence[int | None], words: Callable[[int], str]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = words(min(known)), words(max(known))
    return low if low == high else f"{low}–{high}"


def _bar(device: GpuSample, room: int) -> Row:
    cells = min(room, _BAR)
    if cells < _LEAST_BAR:
        return []
    share = used_share(device)
    full = round(share * cells)
    role = "critical" if share >= FULL else "warn" if share >= TIGHT else "bar"
    return [("  ", "text"), (FILL * full, role), (FILL_REST * (cells - full), "bar-rest")]

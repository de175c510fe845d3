"""GPU memory, or that of the host if no GPU can be read."""

from collections.abc import Callable, Sequence

from launcher.core.format import gib
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
    """One line per GPU while there is room, otherwise one line for all of them."""

    LEAST = 1
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
        gpus = self.sample.gpus
        if not gpus:
            return [self._host(self.sample, columns)]
        if len(gpus) <= rows:
            return [_gpu([gpu], columns) for gpu in gpus]
        return [_gpu(gpus, columns)]

    def _host(self, sample: MachineSample, columns: int) -> Row:
        host = devices(sample)[-1]
        words = f" host {gib(host.used)}/{gib(host.total)} GiB"
        if host.run_used is not None:
            words += f"  run {gib(host.run_used)} GiB"
        missing = clean(sample.missing or NO_NVML)
        why = "" if self.on_cpu else f"  {missing.partition(' (')[0]}"  # the GPU page says it all
        return [(words + why, "text"), *_bar(host, columns - len(words) - len(why) - 3)]


def _gpu(gpus: Sequence[GpuSample], columns: int) -> Row:
    """One GPU, or several in one line with the lowest and highest value of each number and the bar of the fullest."""
    fullest = max(gpus, key=used_share)
    which = f"GPU {fullest.index}" if len(gpus) == 1 else f"{len(gpus)} ×"
    used = _range([gpu.used for gpu in gpus], gib) or "–"
    words = f" {which} {short_name(fullest)}  {used:>5}/{gib(fullest.total)} GiB"
    figures = (
        ([gpu.util for gpu in gpus], "%"),
        ([gpu.power for gpu in gpus], "W"),
        ([gpu.temp for gpu in gpus], "°C"),
    )
    for values, unit in figures:
        figure = _range(values, str)
        if figure and len(words) + len(figure) + len(unit) + 3 <= columns:
            words += f"  {figure:>3} {unit}"
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

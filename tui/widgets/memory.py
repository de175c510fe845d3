"""GPU memory, or the host's where no GPU can be asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from textual.geometry import Size

from launcher.format import gib
from launcher.text import clean
from tui.content.memory import FULL, TIGHT
from tui.drawing.glyphs import FILL, FILL_REST
from tui.drawing.rows import Row
from tui.widgets.painted import HIDDEN, Painted

NO_NVML = "no GPU figures"
_BAR, _LEAST_BAR = 24, 4  # cells


class Memory(Painted):
    """One line a GPU while there is room, else one line for all of them."""

    sample: Mapping[str, Any] | None = None
    on_cpu = False

    def show(self, sample: Mapping[str, Any] | None, on_cpu: bool) -> None:
        """`sample` is the newest line of gpu.jsonl; `on_cpu` says that the run wants no GPU."""
        before, self.sample, self.on_cpu = self._wanted(), sample, on_cpu
        self.set_class(sample is None, HIDDEN)
        if self._wanted() != before:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._wanted()

    def _wanted(self) -> int:
        return max(1, len((self.sample or {}).get("gpus") or []))

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.sample is None:
            return []
        gpus = self.sample.get("gpus") or []
        if not gpus:
            return [self._host(columns)]
        if len(gpus) <= rows:
            return [_gpu([gpu], columns) for gpu in gpus]
        return [_gpu(gpus, columns)]

    def _host(self, columns: int) -> Row:
        sample = self.sample or {}
        host, run = sample.get("host") or {}, sample.get("run") or {}
        used, total = host.get("used"), host.get("total")
        words = f" host {gib(used)}/{gib(total)} GiB"
        if run.get("rss") is not None:
            words += f"  run {gib(run['rss'])} GiB"
        missing = clean(str(sample.get("missing") or NO_NVML))
        why = "" if self.on_cpu else f"  {missing.partition(' (')[0]}"  # the GPU page says it all
        return [(words + why, "text"), *_bar(used, total, columns - len(words) - len(why) - 3)]


def _gpu(gpus: Sequence[Mapping[str, Any]], columns: int) -> Row:
    """One GPU, or several in one line: the least and the most of each figure, the bar of the fullest."""
    fullest = max(gpus, key=lambda gpu: _share(gpu.get("used"), gpu.get("total")))
    name = clean(str(fullest.get("name") or "")).removeprefix("NVIDIA ").removeprefix("GeForce ")
    which = f"GPU {fullest.get('index', 0)}" if len(gpus) == 1 else f"{len(gpus)} ×"
    used = _range([gpu.get("used") for gpu in gpus], gib) or "–"
    words = f" {which} {name}  {used:>5}/{gib(fullest.get('total'))} GiB"
    for key, unit in (("util", "%"), ("power", "W"), ("temp", "°C")):
        figure = _range([gpu.get(key) for gpu in gpus], lambda value: f"{value:.0f}")
        if figure and len(words) + len(figure) + len(unit) + 3 <= columns:
            words += f"  {figure:>3} {unit}"
    return [(words, "text"), *_bar(fullest.get("used"), fullest.get("total"), columns - len(words) - 3)]


def _range(values: Sequence[Any], words: Callable[[float], str]) -> str:
    known = [float(value) for value in values if isinstance(value, (int, float))]
    if not known:
        return ""
    low, high = words(min(known)), words(max(known))
    return low if low == high else f"{low}–{high}"


def _share(used: Any, total: Any) -> float:
    return min(used / total, 1.0) if isinstance(used, (int, float)) and total else 0.0


def _bar(used: Any, total: Any, room: int) -> Row:
    cells = min(room, _BAR)
    if cells < _LEAST_BAR:
        return []
    share = _share(used, total)
    full = round(share * cells)
    role = "critical" if share >= FULL else "warn" if share >= TIGHT else "bar"
    return [("  ", "text"), (FILL * full, role), (FILL_REST * (cells - full), "bar-rest")]

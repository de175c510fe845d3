"""GPU memory, or the host's where no GPU can be asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from textual.geometry import Size

from launcher.format import gib
from launcher.text import clean
from tui.drawing.rows import Row, width
from tui.glyphs import FILL, FILL_REST
from tui.widgets.painted import Painted

NO_NVML = "no GPU figures: NVML needs the NVIDIA driver (ppo-tui doctor)"
TIGHT, FULL = 0.93, 0.97  # shares of the memory from which a bar changes its role
_BAR = 16


class Memory(Painted):
    """One line a GPU while there is room, else one line for all of them."""

    sample: Mapping[str, Any] | None = None
    on_cpu = False

    def show(self, sample: Mapping[str, Any] | None, on_cpu: bool) -> None:
        """`sample` is the newest line of gpu.jsonl; `on_cpu` says that the run wants no GPU."""
        before, self.sample, self.on_cpu = self._wanted(), sample, on_cpu
        if self._wanted() != before:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._wanted()

    def _wanted(self) -> int:
        return max(1, len((self.sample or {}).get("gpus") or []))

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.sample is None:
            return [[(" memory: no sample yet", "dim")]]
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
        row: Row = [(" host memory  ", "text"), *_bar(used, total, columns, gib(used))]
        if run.get("rss") is not None:
            row.append((f"  run {gib(run['rss'])} GiB", "text"))
        why = "" if self.on_cpu else f"  {NO_NVML}"
        return [*row, (why, "dim")]


def _gpu(gpus: Sequence[Mapping[str, Any]], columns: int) -> Row:
    """One GPU, or several in one line: the bar of the fullest, the least and the most of each figure."""
    fullest = max(gpus, key=lambda gpu: _share(gpu.get("used"), gpu.get("total")))
    name = clean(str(fullest.get("name") or "")).removeprefix("NVIDIA ").removeprefix("GeForce ")
    which = f"GPU {fullest.get('index', 0)}" if len(gpus) == 1 else f"{len(gpus)} ×"
    used = _range([gpu.get("used") for gpu in gpus], gib)
    row: Row = [
        (f" {which} {name}  ", "text"),
        *_bar(fullest.get("used"), fullest.get("total"), columns, used),
    ]
    for key, unit in (("util", "%"), ("power", "W"), ("temp", "°C")):
        figure = _range([gpu.get(key) for gpu in gpus], lambda value: f"{value:.0f}")
        if figure and width(row) + len(figure) + len(unit) + 3 <= columns:
            row.append((f"  {figure:>3} {unit}", "text"))
    return row


def _range(values: Sequence[Any], words: Callable[[float], str]) -> str:
    known = [float(value) for value in values if isinstance(value, (int, float))]
    if not known:
        return ""
    low, high = words(min(known)), words(max(known))
    return low if low == high else f"{low}–{high}"


def _share(used: Any, total: Any) -> float:
    return min(used / total, 1.0) if isinstance(used, (int, float)) and total else 0.0


def _bar(used: Any, total: Any, columns: int, words: str) -> Row:
    cells = _BAR if columns >= 70 else 8 if columns >= 50 else 0
    share = _share(used, total)
    full = round(share * cells)
    role = "critical" if share >= FULL else "warn" if share >= TIGHT else "bar"
    return [
        (FILL * full, role),
        (FILL_REST * (cells - full), "bar-rest"),
        (f" {words or '–'}/{gib(total)} GiB", "text"),
    ]

"""GPU memory, or the host's where no GPU can be asked."""

from collections.abc import Mapping
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
    """One line a GPU while there is room, else the fullest one and how many more there are."""

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
            return [_gpu(gpu, columns) for gpu in gpus]
        fullest = sorted(gpus, key=lambda gpu: -_share(gpu.get("used"), gpu.get("total")))[: max(rows, 1)]
        drawn = [_gpu(gpu, columns) for gpu in sorted(fullest, key=lambda gpu: int(gpu.get("index", 0)))]
        drawn[-1].append((f"  +{len(gpus) - len(drawn)} GPUs", "dim"))
        return drawn

    def _host(self, columns: int) -> Row:
        sample = self.sample or {}
        host, run = sample.get("host") or {}, sample.get("run") or {}
        row: Row = [(" host memory  ", "text"), *_bar(host.get("used"), host.get("total"), columns)]
        if run.get("rss") is not None:
            row.append((f"  run {gib(run['rss'])} GiB", "text"))
        why = "" if self.on_cpu else f"  {NO_NVML}"
        return [*row, (why, "dim")]


def _gpu(gpu: Mapping[str, Any], columns: int) -> Row:
    name = clean(str(gpu.get("name") or "")).removeprefix("NVIDIA ")
    row: Row = [
        (f" GPU {gpu.get('index', 0)} {name}  ", "text"),
        *_bar(gpu.get("used"), gpu.get("total"), columns),
    ]
    for key, unit in (("util", "%"), ("power", "W"), ("temp", "°C")):
        value = gpu.get(key)
        if isinstance(value, (int, float)) and width(row) + 8 <= columns:
            row.append((f"  {value:>3.0f} {unit}", "text"))
    return row


def _share(used: Any, total: Any) -> float:
    return min(used / total, 1.0) if isinstance(used, (int, float)) and total else 0.0


def _bar(used: Any, total: Any, columns: int) -> Row:
    cells = _BAR if columns >= 70 else 8 if columns >= 50 else 0
    share = _share(used, total)
    full = round(share * cells)
    role = "critical" if share >= FULL else "warn" if share >= TIGHT else "bar"
    return [
        (FILL * full, role),
        (FILL_REST * (cells - full), "bar-rest"),
        (f" {gib(used)}/{gib(total)} GiB", "text"),
    ]

"""The second line: how far the run is, or how far its start is."""

import math

from launcher.core.format import roughly
from launcher.record.state import RunState
from launcher.runs.watch.startup import Startup
from tui.kit.drawing.glyphs import BAR, BAR_HALF, BAR_REST
from tui.kit.drawing.rows import Row, width
from tui.kit.widgets.painted import Painted
from tui.pages.dashboard.startup_words import startup_sentence

_LEAST_BAR = 6


class ProgressLine(Painted):
    """`step 212/1160  18 %  14.2 s/step  ETA 3h 44m  ━━━╸──────`; at first how the start goes."""

    state: RunState | None = None  # until it is read
    startup: Startup | None = None

    def show(self, state: RunState, startup: Startup | None) -> None:
        self.state, self.startup = state, startup
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        state = self.state
        if state is None:
            return []
        step, total = state.step, state.total
        if self.startup is not None:
            return [startup_sentence(self.startup)]
        if step is None:
            return [[(" ended before the first step", "dim")]]
        if total is None or total <= 0:
            return [[(f" step {step}", "title"), *_pace(state, eta=False)]]
        share = min(step / total, 1.0)
        left: Row = [(f" step {step}/{total}", "title"), (f"  {math.floor(share * 100)} %", "dim")]
        for pace in (_pace(state, eta=True), _pace(state, eta=False), []):
            bar = columns - width(left) - width(pace) - 3
            if bar >= _LEAST_BAR:
                return [[*left, *pace, ("  ", "dim"), *_bar(share, bar)]]
        return [left]


def _pace(state: RunState, eta: bool) -> Row:
    words = ""
    seconds, left = state.step_seconds, state.eta
    if seconds is not None:
        words += f"  {seconds:.1f} s/step"
    if eta and state.live and left is not None:
        words += f"  ETA {roughly(left)}"
    return [(words, "dim")]


def _bar(share: float, columns: int) -> Row:
    halves = round(share * columns * 2)
    full, half = divmod(halves, 2)
    return [(BAR * full + BAR_HALF * half, "bar"), (BAR_REST * (columns - full - half), "bar-rest")]

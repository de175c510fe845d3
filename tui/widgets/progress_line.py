"""The second line: how far the run is, or how far its start is."""

import math

from launcher.console.phases import ORDER
from launcher.format import roughly
from launcher.record.state import RunState
from tui.drawing.glyphs import BAR, BAR_HALF, BAR_REST, FINISHED, NONE, WAITING
from tui.drawing.rows import Row, width
from tui.widgets.painted import Painted
from tui.words.run import phase_sentence

START = ("config", "ray", "data", "model", "engine", "validate-first")  # phases of a start
_LEAST_BAR = 6


class ProgressLine(Painted):
    """`step 212/1160  18 %  14.2 s/step  ETA 3h 44m  ━━━╸──────`; at first how the start goes."""

    state: RunState | None = None  # until it is read
    now: float | None = None
    on_cpu = False

    def show(self, state: RunState, now: float | None, *, on_cpu: bool) -> None:
        self.state, self.now, self.on_cpu = state, now, on_cpu
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        state = self.state
        if state is None:
            return []
        step, total = state.step, state.total
        if step is None:
            return self._start(state)
        if total is None or total <= 0:
            return [[(f" step {step}", "title"), *_pace(state, eta=False)]]
        share = min(step / total, 1.0)
        left: Row = [(f" step {step}/{total}", "title"), (f"  {math.floor(share * 100)} %", "dim")]
        for pace in (_pace(state, eta=True), _pace(state, eta=False), []):
            bar = columns - width(left) - width(pace) - 3
            if bar >= _LEAST_BAR:
                return [[*left, *pace, ("  ", "dim"), *_bar(share, bar)]]
        return [left]

    def _start(self, state: RunState) -> list[Row]:
        """What happens now, and in a second line which phases are behind and ahead."""
        if not state.live:
            return [[(" ended before the first step", "dim")]]
        at = _place(state.phase or "")
        phases: Row = [(" ", "text")]
        for name in START:
            place, word = _place(name), name.removesuffix("-first")
            sign, role = (FINISHED, "ok") if place < at else (WAITING, "live") if place == at else (NONE, "dim")
            phases += [(f"{sign} ", role), (f"{word}  ", "text" if place == at else "dim")]
        return [[(f" starting: {phase_sentence(state, self.now, self.on_cpu)}", "text")], phases]


def _pace(state: RunState, eta: bool) -> Row:
    words = ""
    seconds, left = state.step_seconds, state.eta
    if seconds is not None:
        words += f"  {seconds:.1f} s/step"
    if eta and state.live and left is not None:
        words += f"  ETA {roughly(left)}"
    return [(words, "dim")]


def _place(phase: str) -> int:
    return ORDER.index(phase) if phase in ORDER else 0


def _bar(share: float, columns: int) -> Row:
    halves = round(share * columns * 2)
    full, half = divmod(halves, 2)
    return [(BAR * full + BAR_HALF * half, "bar"), (BAR_REST * (columns - full - half), "bar-rest")]

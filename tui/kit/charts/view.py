"""The part of a run that all charts of a screen show, and its form."""

from dataclasses import dataclass, replace
from typing import NamedTuple

SMOOTHINGS = (0.0, 0.6, 0.9, 0.97)  # weight of the past in the moving average, in the order of the key
STEP, TIME, TOKENS = "step", "time", "tokens"
ACROSS = (STEP, TIME, TOKENS)  # kinds of x
_LEAST = 4  # steps that the closest look still holds

Stretch = tuple[int, int]  # first and last step


class Whole(NamedTuple):
    """The ends of the full axis, and the newest step, which may come earlier."""

    first: int
    last: int
    newest: int


@dataclass(frozen=True)
class View:
    """A view counts in steps, regardless of x, so that all charts agree and x can change at any time.

    `window`: the visible steps, None for all. `follows`: the window has the newest step and moves with it, unless there
    is a cursor. `fitted`: without a window, shows only trained steps without room for more. `cursor`: the step whose
    values are shown.
    """

    window: Stretch | None = None
    follows: bool = False
    fitted: bool = False
    smoothing: float = 0.0
    log: bool = False
    across: str = STEP
    cursor: int | None = None

    def shown(self, whole: Whole) -> Stretch:
        """The visible steps. A following window moves by half its length, so that columns seldom move."""
        if self.window is None:
            return whole.first, whole.last
        first, last = self.window
        if not self.follows or self.cursor is not None or whole.newest <= last:
            return first, last
        jump = max((last - first) // 2, 1)
        end = min(last + -(-(whole.newest - last) // jump) * jump, whole.last)
        return end - (last - first), end

    def zoomed(self, factor: float, whole: Whole) -> "View":
        """A window of `factor` times as many steps; the cursor, otherwise the newest step, keeps its place."""
        first, last = self.shown(whole)
        around = self.cursor if self.cursor is not None else whole.newest
        around = min(max(around, first), last)
        length = max(round((last - first) * factor), _LEAST)
        start = around - round((around - first) * length / max(last - first, 1))
        return self._on(start, length, whole)

    def panned(self, share: float, whole: Whole) -> "View":
        """The window moved by a share of its length."""
        first, last = self.shown(whole)
        length = last - first
        distance = max(round(abs(share) * length), 1)
        return self._on(first + (distance if share > 0 else -distance), length, whole)

    def pointing(self, step: int, whole: Whole) -> "View":
        """The cursor at a step, with the window moved to include it."""
        first, last = self.shown(whole)
        moved = replace(self, cursor=step, window=(first, last) if self.window else None)
        if first <= step <= last:
            return moved
        return moved._on(step if step < first else step - (last - first), last - first, whole)

    def _on(self, start: int, length: int, whole: Whole) -> "View":
        """A window of this length inside the run."""
        if length >= whole.last - whole.first:
            return replace(self, window=None, follows=False)
        start = min(max(start, whole.first), whole.last - length)
        return replace(self, window=(start, start + length), follows=start + length >= whole.newest)

    def words(self, whole: Whole) -> list[str]:
        """Differences from the default view, in words."""
        first, last = self.shown(whole)
        return [
            *([f"steps {first}–{last}"] if self.window else []),
            *(["fitted"] if self.fitted else []),
            *([f"smoothed {self.smoothing:g}"] if self.smoothing else []),
            *(["log scale"] if self.log else []),
            *([f"by {self.across}"] if self.across != STEP else []),
        ]

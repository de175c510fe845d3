"""What part of a run the charts of a screen show, and how; all of them together."""

from dataclasses import dataclass, replace

SMOOTHINGS = (0.0, 0.6, 0.9, 0.97)  # weight of the past in the moving average, in the order of the key
STEP, TIME, TOKENS = "step", "time", "tokens"
ACROSS = (STEP, TIME, TOKENS)  # what x can be
_LEAST = 4  # steps that the closest look still holds

Stretch = tuple[int, int]  # first and last step


@dataclass(frozen=True)
class View:
    """A view is always of steps, whatever x is: so charts agree, and x can be changed in the middle.

    `window`: the steps shown, None for all. `at_end`: the window moves on with the run. `fitted`: all means
    the steps that were trained, without the room for more of them. `cursor`: the step whose values are told.
    """

    window: Stretch | None = None
    at_end: bool = False
    fitted: bool = False
    smoothing: float = 0.0
    log: bool = False
    across: str = STEP
    cursor: int | None = None

    def shown(self, whole: Stretch) -> Stretch:
        """The steps shown when there are `whole`."""
        if self.window is None:
            return whole
        first, last = self.window
        return (whole[1] - (last - first), whole[1]) if self.at_end else (first, last)

    def zoomed(self, factor: float, whole: Stretch, newest: int) -> "View":
        """`factor` times as many steps; the cursor, else the newest step, stays in its place."""
        first, last = self.shown(whole)
        around = self.cursor if self.cursor is not None else newest
        around = min(max(around, first), last)
        length = max(round((last - first) * factor), _LEAST)
        start = around - round((around - first) * length / max(last - first, 1))
        return self._on(start, length, whole)

    def panned(self, share: float, whole: Stretch) -> "View":
        """The window moved by a share of its length."""
        first, last = self.shown(whole)
        length = last - first
        distance = max(round(abs(share) * length), 1)
        return self._on(first + (distance if share > 0 else -distance), length, whole)

    def pointing(self, step: int, whole: Stretch) -> "View":
        """The cursor at a step, and the window moved so that it is inside."""
        first, last = self.shown(whole)
        moved = replace(self, cursor=step)
        if first <= step <= last:
            return moved
        return moved._on(step if step < first else step - (last - first), last - first, whole)

    def _on(self, start: int, length: int, whole: Stretch) -> "View":
        """The window of this length, inside the whole."""
        if length >= whole[1] - whole[0]:
            return replace(self, window=None, at_end=False)
        start = min(max(start, whole[0]), whole[1] - length)
        return replace(self, window=(start, start + length), at_end=start + length == whole[1])

    def words(self, whole: Stretch) -> list[str]:
        """What differs from the usual view."""
        first, last = self.shown(whole)
        return [
            *([f"steps {first}–{last}"] if self.window else []),
            *(["fitted"] if self.fitted else []),
            *([f"smoothed {self.smoothing:g}"] if self.smoothing else []),
            *(["log scale"] if self.log else []),
            *([f"by {self.across}"] if self.across != STEP else []),
        ]

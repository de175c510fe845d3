"""The distribution of scores per step, as shades: columns are steps, rows are scores."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from launcher.core.format import counted, number
from launcher.metrics.scores import ScoreCounts, part_of
from tui.kit.drawing.glyphs import FILL, FILL_OTHERS, FILL_REST, SPARK, UP
from tui.kit.drawing.rows import Row, Span, joined

Step = tuple[int, ScoreCounts | None]  # the scores, if they are counted
_SHADES = ((50, SPARK[-1]), (25, FILL), (10, FILL_OTHERS), (0, FILL_REST))  # minimum % of the responses
_LEGEND = " ".join(f"{sign} {least or '>0'}" for least, sign in reversed(_SHADES)) + " %"
_LABEL = 8  # cells
_LEAST, _WIDEST = 12, 6  # minimum cells of the strip, maximum cells of a step
_BETWEEN, _EQUAL = (1, 2, 5, 10), (3, 5, 10)  # numbers of rows between the scores 0 and 1; of other scores
_FEW = 20  # steps that are counted without a note


class _Scale(NamedTuple):
    """The scores of the rows, from bottom to top; `unit`: 0 and 1 have rows of their own."""

    low: float
    high: float
    rows: int
    unit: bool

    @classmethod
    def of(cls, known: Sequence[ScoreCounts], room: int) -> "_Scale":
        """The scale of these scores with at most `room` rows, or its minimum."""
        low, high = min(counts.low for counts in known), max(counts.high for counts in known)
        if low < 0 or high > 1:
            return cls(low, high, 1 if low == high else max(rows for rows in _EQUAL if rows <= max(room, 3)), False)
        between = any(any(counts.parts) for counts in known)
        return cls(low, high, 2 + between * max(rows for rows in _BETWEEN if rows <= max(room - 2, 1)), True)

    def row_of(self, score: float) -> int:
        if not self.unit:
            return part_of(score, self.low, self.high, self.rows)
        return 0 if score == 0 else self.rows - 1 if score == 1 else 1 + part_of(score, 0.0, 1.0, self.rows - 2)

    def label(self, row: int) -> str:
        if self.unit:
            return {0: "score 0", self.rows // 2: "between", self.rows - 1: "score 1"}.get(row, "")
        return {0: number(self.low), self.rows - 1: number(self.high)}.get(row, "")


@lru_cache(1 << 14)
def _amounts(counts: ScoreCounts, scale: _Scale) -> list[tuple[int, int]]:
    """Rows with the number of responses."""
    return [(scale.row_of(score), count) for score, count in counts.amounts()]


def score_strip(steps: Sequence[Step], chosen: int, columns: int, room: int, waiting: int) -> list[Row]:
    """Rows of shades and an axis with the chosen step marked, at most `room` rows; none if they do not fit.

    Scores in 0 to 1 have a row for 1 at the top and one for 0 at the bottom. Steps share columns if there are more
    of them than columns. `waiting`: steps still to be counted.
    """
    known, wide = [counts for _, counts in steps if counts is not None], columns - _LABEL - 3
    if len(steps) < 2 or not known or wide < _LEAST or (scale := _Scale.of(known, room - 1)).rows >= room:
        return []
    each = -(-len(steps) // wide)  # steps per column
    groups = [steps[at : at + each] for at in range(0, len(steps), each)]
    cells = min(wide // len(groups), _WIDEST)  # per column
    marked = next((at for at, group in enumerate(groups) if any(step == chosen for step, _ in group)), -1)
    lines: list[list[Span]] = [[] for _ in range(scale.rows)]
    for at, group in enumerate(groups):
        amounts = Counter[int]()
        for _, counts in group:
            for row, count in _amounts(counts, scale) if counts else ():
                amounts[row] += count
        for row, line in enumerate(lines):
            share = 100 * amounts[row] / (amounts.total() or 1)
            sign = next(sign for least, sign in _SHADES if share >= least) if share else " "
            line += [(sign, "title" if at == marked else "curve")] * cells
    notes = [f"{counted(each, 'step')} per column"] * (each > 1) + [_LEGEND]
    if waiting > _FEW:
        notes = [f"{counted(waiting, 'step')} to count"]
    ends = [(0, str(steps[0][0])), (len(groups) * cells - len(last := str(steps[-1][0])), last)]
    axis = _axis([(marked * cells + cells // 2, UP), *ends], notes, wide)
    drawn = [(scale.label(row), joined(lines[row])) for row in reversed(range(scale.rows))]
    return [[(f" {label:>{_LABEL}} ", "dim"), *line] for label, line in (*drawn, ("step", axis))]


def _axis(marks: Sequence[tuple[int, str]], notes: Sequence[str], columns: int) -> Row:
    """A line with the marks at their columns, and the notes where there is room."""
    line = " " * columns
    for at, text in marks:
        if at >= 0 and not line[max(at - 1, 0) : at + len(text) + 1].strip():
            line = line[:at] + text + line[at + len(text) :]
    for note in notes:
        free = line.find(" " * (len(note) + 4))
        if free >= 0:
            line = f"{line[: free + 2]}{note}{line[free + 2 + len(note) :]}"
    before, mark, after = line.partition(UP)
    return [(before, "dim"), (mark, "title"), (after, "dim")]

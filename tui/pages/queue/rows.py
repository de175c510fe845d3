"""The queue as lines of a table, and what stands below it about the chosen one."""

from collections.abc import Sequence

from launcher.core.format import SHORT_ID
from launcher.core.text import clean
from launcher.runs.watch.turns import Turn
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, Span, crop, fit
from tui.kit.metric_rows import shorten

_STATE, _NAME, _USES = 11, 26, 10  # cells; the reason has the rest
STATES = {
    "queued": (glyphs.WAITING, "dim"),
    "starting": (glyphs.WAITING, "live"),
    "paused": (glyphs.STOPPED, "warn"),
    "skipped": (glyphs.FAILED, "critical"),
}


def queue_heading(turns: Sequence[Turn], *, paused: bool) -> Row:
    """` Queue  3 runs`, and whether it stands still."""
    count = f"  {len(turns)} run{'s' * (len(turns) != 1)}"
    return [(" Queue", "title"), (count, "dim"), *([("  paused", "warn")] if paused else [])]


def queue_row(turn: Turn, columns: int) -> Row:
    """`  ◌ queued   toy-cpu · 7f3a   2 GPUs   GPU 0 is used by ...`; cell 0 is the cursor's."""
    entry = turn.entry
    sign, role = STATES[turn.state]
    name = shorten(clean(entry.name), _NAME - SHORT_ID - 3)
    cells = [
        fit([(f"{sign} {turn.state}", role)], _STATE),
        fit([(name, "text"), (f" · {clean(entry.id[:SHORT_ID])}", "dim")], _NAME),
        fit([(clean(entry.uses), "text")], _USES),
        [(clean(turn.waits or "starts next").partition("\n")[0], "dim")],
    ]
    row: Row = [("  ", "text")]
    for cell in cells:
        row += [*cell, (" ", "text")]
    return crop(row[:-1], columns)


def about_turn(turn: Turn) -> list[Span]:
    """All of what it waits for, and its settings."""
    role = "critical" if turn.entry.skipped is not None else "text"
    why = turn.waits or "starts next"
    settings = " ".join(turn.entry.settings)
    return [(f"{turn.entry.id}: {why}", role), *([(settings, "dim")] if settings else [])]

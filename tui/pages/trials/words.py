"""Trials as rows: the verdict on each, what it changed, and why the verdict is that."""

from collections.abc import Sequence
from textwrap import wrap

from launcher.compare.trial_verdicts import BROKE, DIFFERENT, GOING, HEALED, NOTHING, PARTLY, REPEATED, Trials
from launcher.core.format import SHORT_ID, number
from launcher.core.text import clean
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Item, Row, put

VERDICTS: dict[str, tuple[str, str]] = {  # verdict -> sign, role
    HEALED: (glyphs.OK, "ok"),
    PARTLY: (glyphs.NOTICE, "notice"),
    NOTHING: (glyphs.WARN, "warn"),
    BROKE: (glyphs.CRITICAL, "critical"),
    REPEATED: (glyphs.OK, "dim"),
    DIFFERENT: (glyphs.NOTICE, "notice"),
    GOING: (glyphs.RUNNING, "live"),
}
EMPTY = " no trials of this run yet; S tries the fixes of its first flag"
_RUN, _STEP, _TEXT = 18, 24, 35  # columns


def trial_items(found: Sequence[Trials], columns: int) -> list[Item]:
    """A heading for each flag and checkpoint, an entry for each trial, named by its run; a line without trials."""
    items: list[Item] = []
    for each in found:
        place = f"step {each.step}" if each.step else "the start"
        items.append(Item(None, [[(f" {each.rule}", "title"), (f" from {place} of {clean(each.parent)}", "dim")]]))
        for arm in each.arms:
            sign, role = VERDICTS.get(arm.verdict, (glyphs.NONE, "dim"))
            row: Row = [(f" {sign} {arm.verdict}", role)]
            row = put(row, _RUN, [(arm.run[:SHORT_ID], "dim")])
            row = put(row, _STEP, [(f"{arm.step}/{arm.planned}", "text")])
            gap = "" if arm.reward is None else f" (reward {'+' * (arm.reward >= 0)}{number(arm.reward)})"
            width = max(columns - _TEXT - 1, 16)
            words = wrap(clean(" ".join(arm.changes)), width) or ["untouched twin"]
            rows = [put(row, _TEXT, [(words[0], "text")])]
            rows += [[(" " * _TEXT + line, "text")] for line in words[1:]]
            rows += [[(" " * _TEXT + line, "dim")] for line in wrap(clean(arm.told) + gap, width)]
            items.append(Item(arm.run, rows))
    return items or [Item(None, [[(EMPTY, "dim")]])]

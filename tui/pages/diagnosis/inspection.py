"""One entry of a diagnosis: a log line with its context, or a fix with its changed values."""

import contextlib
from collections.abc import Sequence
from functools import partial

from launcher.console.pager import LogEntry, LogPager
from launcher.core.errors import UserError
from launcher.core.text import clean
from launcher.preset.effective import EffectiveConfig
from launcher.preset.settle import origin_words, setting_name, value_now
from launcher.preset.yaml_text import text_of
from launcher.record.fix import Offer
from launcher.record.layout import RunDir
from launcher.record.problem import Problem
from tui.kit.drawing.glyphs import ARROW
from tui.kit.drawing.rows import Row, labelled, paragraph
from tui.kit.log_rows import lines_around, log_rows
from tui.kit.navigation import RunView
from tui.kit.problem_rows import name_of_fix, name_of_line
from tui.kit.widgets.inspector import Inspected, Inspection

_VALUE = 8  # column of the values


def inspect_entry(page: Inspected[None], run: RunView, problem: Problem, key: str, columns: int) -> Inspection:
    """All about the line or the fix with this name."""
    for quote in problem.evidence:
        if quote.line is not None and key == name_of_line(quote.line):
            lines, offset = page.read_once(key, partial(_log, run.reader.dir, quote.line)) or (None, None)
            head = [[(f" Line {quote.line}", "title")], *paragraph(clean(quote.text), "critical", columns), []]
            return Inspection(head, rows=log_rows(lines, offset, columns))
    for index, offer in enumerate(problem.offers):
        if key == name_of_fix(index):
            rows = _fix(offer, run.reader.config, columns)
            return Inspection([[(f" Fix {index + 1} of {len(problem.offers)}", "title")], []], rows=rows)
    return Inspection()


def _log(run: RunDir, line: int) -> tuple[Sequence[LogEntry], int | None]:
    """The lines around a line of the newest attempt, and its first byte."""
    attempt = run.last_attempt()
    with contextlib.suppress(OSError, UserError):
        if attempt is not None:
            pager = LogPager(attempt.console)
            pager.count()
            offset = pager.offset_of(line)
            if offset is not None:
                return lines_around(run, (attempt.number, offset)), offset
    return [], None


def _fix(offer: Offer, config: EffectiveConfig | None, columns: int) -> list[Row]:
    """The whole text; then per setting its current value, its place, and the value to try."""
    wanted = {edit.key: text_of(edit.now) for edit in offer.edits}
    rows = paragraph(clean(offer.text), "text", columns)
    for change in offer.fix.changes:
        if config is None or change.key.startswith("env."):
            continue
        name = setting_name(change.key)
        now = value_now(change.key, config)
        words = f"{'no value' if now is None else text_of(now)} ({origin_words(change.key, config)})"
        rows += [[], *paragraph(clean(name), "title", columns)]
        rows += labelled([(" now", "dim")], clean(words), "text", _VALUE, columns)
        if name in wanted:
            rows += labelled([(f" {ARROW}", "dim")], clean(wanted[name]), "live", _VALUE, columns)
    if offer.field:
        rows += [[], [(" e ", "live"), ("opens the preset editor with this change", "dim")]]
    if offer.edits:
        what = "runs a few steps with it: isolation, not a fix" if offer.fix.isolates else "forks the run with it"
        rows.append([(" T ", "live"), (what, "dim")])
    return rows

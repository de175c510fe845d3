"""One entry of a diagnosis: a line of the log with those around it, or a fix with the values that it changes."""

import contextlib
from collections.abc import Sequence
from functools import partial

from launcher.console.fix import Fix
from launcher.console.pager import Entry, LogPager
from launcher.core.errors import UserError
from launcher.core.text import clean
from launcher.preset.effective import EffectiveConfig, Source
from launcher.preset.remedy import Remedy, configuration
from launcher.preset.schema import FIELDS
from launcher.preset.yaml_text import text_of
from launcher.record.layout import RunDir
from launcher.runs.watch.run_diagnosis import Explanation
from tui.kit.diagnosis_rows import name_of_fix, name_of_line
from tui.kit.drawing.glyphs import ARROW
from tui.kit.drawing.rows import Row, labelled, paragraph
from tui.kit.log_rows import lines_around, log_rows
from tui.kit.navigation import RunView
from tui.kit.widgets.inspector import Inspected, Inspection

_SOURCES: dict[Source, str] = {  # where a value comes from
    "default": "veRL's default",
    "field": "set in the preset",
    "derived": "follows from another field",
    "override": "set in the preset",
    "ppo-tui": "ppo-tui's default",
}
_VALUE = 8  # column of the values


def inspect_finding(
    page: Inspected[None], run: RunView, explanation: Explanation, key: str, columns: int
) -> Inspection:
    """All about the line or the fix of this name."""
    found = explanation.diagnosis
    for quote in found.evidence:
        if key == name_of_line(quote.line):
            lines, offset = page.read_once(key, partial(_log, run.reader.dir, quote.line)) or (None, None)
            head = [[(f" Line {quote.line}", "title")], *paragraph(clean(quote.text), "critical", columns), []]
            return Inspection(head, rows=log_rows(lines, offset, columns))
    for index, fix in enumerate(found.fixes):
        if key == name_of_fix(index):
            preset = run.reader.info.preset
            config = configuration(preset) if preset is not None else None
            rows = _fix(fix, explanation.remedies[index], config, columns)
            return Inspection([[(f" Fix {index + 1} of {len(found.fixes)}", "title")], []], rows=rows)
    return Inspection()


def _log(run: RunDir, line: int) -> tuple[Sequence[Entry], int | None]:
    """The lines around a line of the newest attempt, and the byte where it starts."""
    attempt = run.last_attempt()
    with contextlib.suppress(OSError, UserError):
        if attempt is not None:
            pager = LogPager(attempt.console)
            pager.count()
            offset = pager.offset_of(line)
            if offset is not None:
                return lines_around(run, (attempt.number, offset)), offset
    return [], None


def _fix(fix: Fix, remedy: Remedy | None, config: EffectiveConfig | None, columns: int) -> list[Row]:
    """The whole text; then per setting its present value, where that was set, and the value to try."""
    wanted = dict(each.partition("=")[::2] for each in remedy.settings) if remedy else {}
    rows = paragraph(clean(fix.text), "text", columns)
    for change in fix.changes:
        if config is None or change.key.startswith("env."):
            continue
        spec = FIELDS.get(change.key)
        key = spec.key if spec and spec.key else change.key
        value, source = config.get(key), _SOURCES[config.source(key)]
        now = "no value" if value is None else text_of(value)
        rows += [[], *paragraph(clean(change.key), "title", columns)]
        rows += labelled([(" now", "dim")], f"{clean(now)} ({source})", "text", _VALUE, columns)
        if change.key in wanted:
            rows += labelled([(f" {ARROW}", "dim")], clean(wanted[change.key]), "live", _VALUE, columns)
    if remedy is not None:
        rows += [[], [(" e ", "live"), ("opens the preset editor with this change", "dim")]]
    return rows

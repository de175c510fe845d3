"""Rows with log lines around a highlighted line."""

import contextlib
from collections.abc import Sequence

from launcher.console.pager import LogEntry, LogPager
from launcher.record.layout import RunDir
from tui.kit.drawing.rows import Row, fold, width

BEFORE, AFTER = 6, 12  # lines around a place
_MOST = 4  # rows of one line


def lines_around(run: RunDir, place: tuple[int, int | None]) -> list[LogEntry]:
    """The lines around a byte of the console of an attempt; the last lines if the byte is None."""
    attempt, offset = place
    with contextlib.suppress(OSError):
        pager = LogPager(run.attempt(attempt).console)
        if offset is None or offset >= pager.size:
            return pager.page_before(pager.size, BEFORE + AFTER).entries
        return [*pager.page_before(offset, BEFORE).entries, *pager.page(offset, AFTER).entries]
    return []


def log_rows(lines: Sequence[LogEntry] | None, offset: int | None, columns: int) -> list[Row]:
    """A title and the lines; the line that contains the byte `offset` is bold. None: still being read."""
    if not lines:
        return [[(" reading the log …" if lines is None else " The log has no such line.", "dim")]]
    rows: list[Row] = [[(" Log", "title")]]
    for line in lines:
        here = offset is not None and line.offset <= offset < line.end
        times: Row = [(f" ×{line.repeats:,}", "notice")] if line.repeats > 1 else []
        pieces = fold(line.shown, max(columns - 2 - width(times), 8))
        rows += [[(f" {piece}", "title" if here else "dim")] for piece in pieces[: None if here else _MOST]]
        cut = len(pieces) > _MOST and not here
        rows[-1] += [*([(" …", "dim")] if cut else []), *times]
    return rows

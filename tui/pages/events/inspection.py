"""One event: its time, complete text, its check's curves, and the log around it."""

import contextlib
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

from launcher.console.pager import LogEntry
from launcher.console.reader import ConsoleReader
from launcher.console.reader import PhaseChange as PhaseMark
from launcher.core.errors import UserError
from launcher.core.format import duration
from launcher.core.tail import chunks
from launcher.metrics.store import SeriesStore
from launcher.record.check import Check
from launcher.record.events import DriverExit, Event, LevelChange, PhaseChange, StateChange
from launcher.record.layout import RunDir
from launcher.record.state import ENDED
from launcher.runs.watch.steps import place_of_step
from tui.kit.charts.run_charts import check_plot
from tui.kit.drawing.plot import Plot
from tui.kit.drawing.rows import Row, paragraph, put, spread
from tui.kit.log_rows import lines_around, log_rows
from tui.kit.navigation import RunView
from tui.kit.widgets.inspector import CHARTS, Inspected, Inspection
from tui.pages.events.rows import event_time, event_words

_START = 1 << 23  # bytes of a console searched for its start
Place = tuple[int, int | None]  # an attempt, and a byte of its console; None is the end


def inspect_event(page: Inspected[None], run: RunView, event: Event, columns: int) -> Inspection:
    """The complete text of an event with its charts; the log is read once the cursor rests."""
    reader = run.reader
    when, step = event_time(event), step_of(event, reader.series)
    sign, word, role, text = event_words(event.what)
    title: Row = [(f" {sign} {word}", role)]
    if step is not None:
        title = put(title, 0, [(reader.state.numbering.at(step), "text")], least=2)
    if when is not None:
        since = when.timestamp() - reader.state.created if reader.state.created else 0
        title = spread(title, [(f"{when:%H:%M:%S} " + (f"(+{duration(since)}) " if since > 0 else ""), "dim")], columns)
    found = page.read_once(f"{event.t} {event.what}", partial(_log, reader.dir, event, step))
    lines, offset = found or (None, None)
    said = paragraph(text, "text", columns) if text else []
    return Inspection([title, *said, []], _curves(run, event), log_rows(lines, offset, columns))


def step_of(event: Event, store: SeriesStore) -> int | None:
    """An event's own step or the last one before it; None before the first."""
    step: int | None = getattr(event.what, "step", None)
    if step is not None:
        return step
    before = bisect_right(store.times, event.t)
    return store.steps[before - 1] if before else None


def _curves(run: RunView, event: Event) -> list[Plot]:
    """The curves of a flag's check, with all its level changes."""
    what, reader = event.what, run.reader
    if not isinstance(what, LevelChange):
        return []
    check = next((check for check in reader.state.checks if check.rule == what.rule), Check(what.rule))
    changes = [
        each.what for each in reader.events if isinstance(each.what, LevelChange) and each.what.rule == what.rule
    ]
    plots = []
    for index, key in enumerate(check.keys[:CHARTS]):
        bounds = [bound for bound in check.bounds if bound.series == index]
        plots.append(check_plot(key, reader.series, reader.state.total, bounds, changes))
    return plots


def _log(run: RunDir, event: Event, step: int | None) -> tuple[Sequence[LogEntry], int | None]:
    with contextlib.suppress(OSError, UserError):  # no console, a file that cannot be read
        if (place := _place(run, event, step)) is not None:
            return lines_around(run, place), place[1]
    return [], None


def _place(run: RunDir, event: Event, step: int | None) -> Place | None:
    """An event's place in the log: at the end of its attempt, at its step, or at its phase of the start."""
    what, numbers = event.what, run.attempt_numbers()
    if not numbers:
        return None
    begun = [number for number in numbers if (run.attempt(number).read_launch().created or 0) <= event.t]
    attempt = begun[-1] if begun else numbers[0]
    ended = isinstance(what, DriverExit) or (isinstance(what, StateChange) and what.after in ENDED)
    if ended:
        return attempt, None
    if step is not None:
        return place_of_step(run, step)
    if isinstance(what, PhaseChange):
        offset = _phase(run, attempt, what.phase)
        return (attempt, offset) if offset is not None else None
    return attempt, 0


def _phase(run: RunDir, attempt: int, phase: str) -> int | None:
    """The byte where the log first enters a phase."""
    reader, read = ConsoleReader(), 0
    for chunk in chunks(run.attempt(attempt).console):
        for mark in reader.feed(chunk):
            if isinstance(mark, PhaseMark) and mark.phase == phase:
                return mark.offset
        read += len(chunk)
        if read > _START:
            break
    return None

"""The queue: runs that wait for their turn, and what each waits for."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from launcher.core.errors import UserError
from launcher.core.format import SHORT_ID
from launcher.core.text import clean
from launcher.record import queued
from launcher.record.queued import Queued
from launcher.runs.supervise.spawn import wake_queue
from launcher.runs.watch.turns import Turn, turns
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, Span, crop, fit
from tui.kit.keys import KEYS
from tui.kit.metric_rows import shorten
from tui.kit.page import READ_ONLY, Page
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.line_table import LineTable
from tui.kit.widgets.lines import Lines

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


POLL = 2.0  # seconds
_ABOUT = 4  # rows
PURPOSE = "Runs wait here until their GPUs are free; each then starts by itself, also after logout."
EMPTY = " empty; press Q on the plan page of a preset (enter in the list) to add a run"


class QueueScreen(Page[None]):
    """Follows the queue. Whoever looks at it also starts what is due."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["queue"]]

    def __init__(self, *, read_only: bool) -> None:
        super().__init__()
        self.read_only = read_only
        self._turns: dict[str, Turn] = {}
        self._works = (False, False)  # there are entries, the queue is paused

    def compose(self) -> ComposeResult:
        yield Lines([queue_heading([], paused=False)], id="heading")
        yield LineTable(self._line, EMPTY)
        yield Lines([[]] * _ABOUT, id="about")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(LineTable).focus()
        self._poll()
        self.set_interval(POLL, self._poll)

    def refusal(self, action: str) -> str | None:
        changes = action in ("start", "pause", "pause_all", "place", "remove")
        if changes and self.read_only:
            return READ_ONLY
        if action == "start" and queued.paused():
            return "the queue is paused; press * to resume it"
        return "the queue is empty" if changes and action != "pause_all" and not self._turns else None

    def on_resize(self) -> None:
        self._show_more()

    def on_line_table_moved(self) -> None:
        self._show_more()

    def action_start(self) -> None:
        from launcher.runs.act.queue_runner import begin_now

        self._change(begin_now)

    def action_pause(self) -> None:
        from launcher.runs.act.queue_runner import resume

        turn = self._chosen
        waits = turn is not None and turn.entry.waits
        self._change((lambda entry: queued.change(entry, paused=True, now=False)) if waits else resume)

    def action_pause_all(self) -> None:
        from launcher.runs.act.queue_runner import resume

        self.run_worker(self._do(lambda: resume(None) if queued.paused() else queued.pause(on=True)), group="change")

    def action_place(self, distance: int) -> None:
        self._change(lambda entry: queued.move(entry, distance))

    def action_remove(self) -> None:
        turn = self._chosen
        if turn is not None:
            self.run_worker(self._remove(turn.entry), exclusive=True, group="remove")

    async def _remove(self, entry: Queued) -> None:
        from launcher.runs.act.queue_runner import remove

        settings = clean("\n".join(entry.settings)) or "without settings beside the preset"
        question = ConfirmScreen(f"Remove {entry.id} from the queue?", settings, "y  remove", "n  cancel")
        if await self.app.push_screen_wait(question):
            await self._do(lambda: remove(entry))

    @property
    def _chosen(self) -> Turn | None:
        return self._turns.get(self.query_one(LineTable).cursor or "")

    def _change(self, act: Callable[[Queued], None]) -> None:
        """Changes the chosen entry, in a thread."""
        turn = self._chosen
        if turn is not None:
            self.run_worker(self._do(lambda: act(turn.entry)), group="change")

    async def _do(self, act: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(act)
        except (UserError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)
        await self._look()

    def _poll(self) -> None:
        if self.is_active:
            self.run_worker(self._look(), exclusive=True, group="poll")

    async def _look(self) -> None:
        try:
            found = await asyncio.to_thread(turns)
        except UserError as error:  # of the settings
            self.notify(str(error), severity="error", markup=False)
            return
        with contextlib.suppress(OSError):
            await asyncio.to_thread(wake_queue, again=True)
        if self.query(LineTable):
            self._turns = {turn.entry.id: turn for turn in found}
            if (works := (bool(found), queued.paused())) != self._works:  # the footer paints itself whole
                self._works = works
                self.refresh_bindings()
            self.query_one("#heading", Lines).show([queue_heading(found, paused=queued.paused())])
            self.query_one(LineTable).show([*self._turns])
            self._show_more()

    def _line(self, key: str, columns: int) -> Row:
        return queue_row(self._turns[key], columns)

    def _show_more(self) -> None:
        turn, width = self._chosen, max(self.size.width - 2, 8)
        rows: list[Row] = [
            [(f" {line}", role)]
            for text, role in (about_turn(turn) if turn is not None else [(PURPOSE, "dim")])
            for line in wrap(clean(text), width, max_lines=_ABOUT - 1, placeholder=" …")
        ][:_ABOUT]
        self.query_one("#about", Lines).show([*rows, *([] for _ in range(_ABOUT - len(rows)))])

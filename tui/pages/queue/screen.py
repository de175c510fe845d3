"""The queue: the waiting runs with the reason of each, and their order on GPUs and CPU."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from textual import work
from textual.app import ComposeResult

from launcher.core.clock import now
from launcher.core.format import SHORT_ID, counted, duration, remaining
from launcher.core.text import clean
from launcher.preset.yaml_text import shown
from launcher.record import queued
from launcher.record.queued import Checked, Queued
from launcher.runs.supervise.spawn import wake_queue
from launcher.runs.watch.run_settings import asked_words, title
from launcher.runs.watch.turns import Slot, Turn, turns_and_slots
from tui.kit.actions.background import reported
from tui.kit.dialogs.choose import confirmed
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, crop, fit, labelled, paragraph, shorten
from tui.kit.keys import KEYS
from tui.kit.list_page import ListPage
from tui.kit.page import READ_ONLY
from tui.kit.run_page import EntryScreen
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import LineTable

_STATE, _NAME, _USES = 11, 26, 10  # cells; the reason gets the others
_FACT, _VALUE = 11, 18  # minimum columns of fact names and values in the inspector
_MARK = 3
STATES, FINDINGS, STATE_SIGNS = map(glyphs.signs, ("queue", "finding", "state"))


def queue_heading(turns: Sequence[Turn], *, paused: bool, refused: str = "") -> Row:
    """` Queue 3 runs`, whether it is paused, and why other users' entries are not used."""
    count = f"  {counted(len(turns), 'run')}"
    return [
        (" Queue", "title"),
        (count, "dim"),
        *([("  paused", "warn")] if paused else []),
        *([(f"  {clean(refused)}", "warn")] if refused else []),
    ]


def slot_rows(found: Iterable[Slot], columns: int, most: int) -> list[Row]:
    """` GPU 0,1  ● 7f3a-ppo, ETA 23m  next 0a11, 0b22`, in at most `most` rows; equal neighbors share one."""
    groups = [
        list(group) for _, group in groupby(found, lambda slot: (slot.gpu is None, slot.runs, slot.next, slot.user))
    ]
    rows = [_slot_row([slot.gpu for slot in group if slot.gpu], group[0], columns) for group in groups]
    if len(rows) > most:
        rows[max(most - 1, 0) :] = [[(f" {len(rows) - most + 1} more", "dim")]] if most > 0 else []
    return rows


def _slot_row(gpus: Sequence[str], slot: Slot, columns: int) -> Row:
    name = f"GPU {','.join(gpus)}" if gpus else "CPU"
    row: Row = [(" ", "text"), *fit([(name, "text")], _STATE), (" ", "text")]
    for id, state in slot.runs.items():
        sign, role = STATE_SIGNS[state.state]
        ends = f", {remaining(state.eta, state.done)}" if state.live and state.eta is not None else ""
        row += [(f"{sign} ", role), (f"{shorten(clean(id), _NAME)}{ends}  ", "text")]
    if not slot.runs:
        row.append((f"{slot.user}  " if slot.user else "free  ", "warn" if slot.user else "dim"))
    if slot.next:
        row.append((f"next {', '.join(clean(id[:SHORT_ID]) for id in slot.next)}", "dim"))
    return crop(row, columns)


def queue_row(turn: Turn, columns: int) -> Row:
    """` ◌ queued toy-cpu · 7f3a 2 GPUs GPU 0 is used by ...`; cell 0 is for the cursor."""
    entry = turn.entry
    sign, role = STATES[entry.word]
    name = shorten(clean(title(entry.name, asked_words(entry.settings))), _NAME - SHORT_ID - 3)
    cells = [
        fit([(f"{sign} {entry.word}", role)], _STATE),
        fit([(name, "text"), (f" · {clean(entry.id[:SHORT_ID])}", "dim")], _NAME),
        fit([(clean(entry.uses), "text")], _USES),
        [(clean(_why(turn)).partition("\n")[0], "dim")],
    ]
    row: Row = [("  ", "text")]
    for cell in cells:
        row += [*cell, (" ", "text")]
    return crop(row[:-1], columns)


def _why(turn: Turn) -> str:
    """What it waits for; the footer has the keys that end a pause."""
    return "paused by you" if turn.entry.paused else turn.waits or "starts next"


def check_words(check: Checked) -> tuple[str, str]:
    """The preflight's result in words, and their role."""
    if check.running or not check.ended:
        return ("is under way" if check.running else "has not begun"), "dim"
    ago = f"{duration(max(now() - check.ended, 0))} ago"
    return (f"refused {ago}", "critical") if check.refused else (f"passed {ago}", "text")


def inspect_turn(turn: Turn, columns: int) -> Inspection:
    """Why it waits, its GPUs, the settings of its plan, its note."""
    entry, sign = turn.entry, STATES[turn.entry.word]
    rows: list[Row] = [[(f" {clean(entry.name)}", "title"), (f" · {clean(entry.id)}", "dim")]]
    facts: list[tuple[str, str, str]] = [
        ("state", f"{sign[0]} {entry.word}", sign[1]),
        ("why", _why(turn), "critical" if entry.skipped is not None else "text"),
        ("check", *check_words(turn.check)),
        ("uses", entry.uses, "text"),
        ("gets", f"GPU {','.join(turn.gpus)}" if turn.gpus else "", "text"),
        ("after", entry.after or "", "text"),
        ("added", f"{duration(max(now() - entry.added, 0))} ago", "text"),
        ("note", entry.note, "text"),
    ]
    for name, text, role in facts:
        if text:
            rows += labelled([(f" {name}", "dim")], clean(text), role, _FACT, columns)
    for found in turn.check.findings:
        if found.get("level") in ("error", "warning"):
            mark = FINDINGS[found["level"]]
            rows += labelled([(f" {mark[0]}", mark[1])], clean(f"{found.get('message')}"), "text", _MARK, columns)
    rows += [[], [(" Settings in addition to the preset" if entry.settings else " The unchanged preset", "dim")]]
    for setting in entry.settings:
        rows += paragraph(clean(setting), "text", columns)
    rows += [[], [(" Plan", "dim")]]
    plan = dict(_plan(entry.preset))
    longest = max(map(len, plan), default=0) + 3
    for name, text in plan.items():
        rows += labelled([(f" {name}", "dim")], text, "text", min(longest, columns - _VALUE), columns)
    return Inspection(rows=rows)


def _plan(preset: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The preset's training settings, such as `data.train_batch_size`, each with its value."""
    for group in ("algorithm", "model", "data", "trainer"):
        values = preset.get(group)
        given = values.items() if isinstance(values, dict) else [("", values)] if values is not None else []
        for name, value in given:
            yield clean(f"{group}.{name}".strip(".")), clean(shown(value))


POLL = 2.0  # seconds
PURPOSE = "Runs wait here until their GPUs are free, then start automatically, even after logout."


class QueueScreen(ListPage[None]):
    """Follows the queue. Opening it also starts due runs."""

    BINDINGS = KEYS["queue"]
    TABLE, STACKS = LineTable, True
    EMPTY = " The queue is empty. To add a run, press enter on a preset in the list, then Q."
    DETAIL, DETAIL_ROWS = "about", 4

    def __init__(self, *, read_only: bool) -> None:
        super().__init__()
        self.read_only = read_only
        self._turns: dict[str, Turn] = {}
        self._slots: list[Slot] = []
        self._refused = ""

    def compose(self) -> ComposeResult:
        yield Lines([queue_heading([], paused=False)], id="heading")
        yield from self.make_list()
        yield KeyBar()

    def on_mount(self) -> None:
        self._poll()
        self.set_interval(POLL, self._poll)

    def refusal(self, action: str) -> str | None:
        changes = action in ("start", "pause", "pause_all", "place", "remove")
        if changes and self.read_only:
            return READ_ONLY
        if action == "start" and queued.paused():
            return "the queue is paused; press * to resume it"
        needs_entry = action == "open" or (changes and action != "pause_all")
        return "the queue is empty" if needs_entry and not self._turns else None

    def called_for(self) -> Mapping[str, str]:
        turn, called = self._chosen, dict[str, str]()
        if queued.paused():
            called["pause_all"] = "resume the queue"
        if turn is not None and not turn.entry.waits:
            called["pause"] = "resume" if turn.entry.paused else "try again"
        return called

    def on_listing_moved(self) -> None:
        super().on_listing_moved()
        self.update_footer()

    def action_open(self) -> None:
        if self._chosen is not None:
            self.app.push_screen(EntryScreen(self))

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

        self._do(lambda: resume(None) if queued.paused() else queued.pause(on=True))

    def action_place(self, distance: int) -> None:
        self._change(lambda entry: queued.move(entry, distance))

    def action_remove(self) -> None:
        if self._chosen is not None:
            self._remove(self._chosen.entry)

    @work(exclusive=True, group="remove")
    async def _remove(self, entry: Queued) -> None:
        settings = clean("\n".join(entry.settings)) or "no settings in addition to the preset"
        if await confirmed(self.app, f"Remove {entry.id} from the queue?", settings, "remove"):
            await self._change_queue(entry.remove)

    @property
    def _chosen(self) -> Turn | None:
        return self._turns.get(self.table.cursor or "")

    def _change(self, act: Callable[[Queued], object]) -> None:
        """Changes the chosen entry, in a thread."""
        if self._chosen is not None:
            self._do(partial(act, self._chosen.entry))

    def _do(self, act: Callable[[], object]) -> None:
        self.in_worker(partial(self._change_queue, act), "change", exclusive=False)

    async def _change_queue(self, act: Callable[[], object]) -> None:
        with reported(self.app):
            await asyncio.to_thread(act)
        await self._look()

    def _poll(self) -> None:
        if self.is_active:
            self.in_worker(self._look, "poll")

    async def _look(self) -> None:
        found: tuple[list[Turn], list[Slot]] | None = None
        with reported(self.app):  # settings that cannot be read
            found = await asyncio.to_thread(turns_and_slots)
        if found is None:
            return
        with contextlib.suppress(OSError):
            await asyncio.to_thread(wake_queue, again=True)
        self._refused = "; ".join(map(str, (await asyncio.to_thread(queued.refused))[:1]))
        self._turns, self._slots = {turn.entry.id: turn for turn in found[0]}, found[1]
        self._show_head()
        self.show_list([*self._turns])
        self.update_footer()

    def on_resize(self) -> None:
        self._show_head()
        super().on_resize()

    def _show_head(self) -> None:
        """The heading, and the slots in at most a quarter of the page."""
        rows = slot_rows(self._slots, self.size.width, self.size.height // 4 - 1)
        head = queue_heading([*self._turns.values()], paused=queued.paused(), refused=self._refused)
        self.query_one("#heading", Lines).show([head, *rows])

    def row(self, key: str, columns: int) -> Row:
        return queue_row(self._turns[key], columns)

    def inspect(self, key: str | None, columns: int) -> Inspection:
        turn = self._chosen
        return inspect_turn(turn, columns) if turn is not None else Inspection(rows=paragraph(PURPOSE, "dim", columns))

    def detail(self, key: str | None, columns: int) -> Sequence[Row]:
        return self.inspect(key, columns).rows[: self.DETAIL_ROWS]

"""The model's responses, step by step: reading them reveals reward hacking."""

import asyncio
from functools import partial
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.widgets import Input

from launcher.core.text import clean
from launcher.metrics.scores import ScoreCounts
from launcher.runs.watch.responses import Dump, Sample, counted_scores, dumps, read, stamp
from tui.kit.drawing.rows import Row, paragraph
from tui.kit.keys import KEYS
from tui.kit.list_page import ListPage
from tui.kit.metric_rows import figures_row
from tui.kit.navigation import RunView
from tui.kit.page import HIDDEN
from tui.kit.run_page import EntryScreen, RunPage
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.inspector import Inspection
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import ResponseTable
from tui.pages.samples.history import history, history_rows
from tui.pages.samples.sample_rows import (
    ORDERS,
    about,
    matching,
    ordered,
    sample_heading,
    sample_page,
    sample_row,
    score_row,
)
from tui.pages.samples.score_strip import score_strip

PURPOSE = "The responses of each step with their scores. Reading them reveals reward hacking and collapse."
_NONE, _ELSEWHERE = "No samples yet: the first samples appear after the first step.", "An imported log has no samples."


class SamplesScreen(ListPage[None], RunPage):
    """One step's responses with their scores, the chosen one in full below. Opens on the newest step."""

    LEGENDS = ("Scores", "Samples")
    PAGE_NAME, ENTRY_NAME = "Samples", "Sample"
    BINDINGS = KEYS["samples"]
    AUTO_FOCUS = "ResponseTable"
    POLL = 2.0
    TABLE = ResponseTable
    EMPTY = " no responses"
    DETAIL = "response"

    def __init__(self, run: RunView) -> None:
        super().__init__(run)
        self.kind, self.order, self.word = "rollout", ORDERS[0], ""
        self.dumps: list[Dump] = []
        self.dump: Dump | None = None  # the displayed dump
        self.samples: list[Sample] = []
        self._cut = False
        self._counted: dict[Path, tuple[bool, ScoreCounts | None]] = {}  # per dump, as `_known`
        self._uncounted: list[tuple[Dump, bool]] = []  # and whether the dump is complete
        self._counting = False
        self._stamp: tuple[int, ...] = ()

    def body(self) -> ComposeResult:
        yield Lines(id="samples-state")
        yield from self.make_list()
        yield Input(id="samples-find", placeholder="text to find", compact=True, classes=HIDDEN)

    DETAIL_SCROLLS = True

    def row(self, key: str, columns: int) -> Row:
        return sample_row(self.samples[int(key)])

    def detail(self, key: str | None, columns: int) -> list[Row]:
        return sample_page(self.samples[int(key)], columns - 1) if key is not None else []

    def inspect(self, key: str | None, columns: int) -> Inspection:
        if key is None or self.dump is None:
            return Inspection(rows=paragraph(PURPOSE, "dim", columns))
        dump, place, sample = self.dump, int(key), self.samples[int(key)]
        entry = f"{dump.path} {place}"
        found = self.read_once(entry, partial(history, self.reader.dir, dump, place))
        rows = [*sample_page(sample, columns - 1), [], *history_rows(found, dump, sample, columns - 1)]
        return Inspection(rows=rows)

    def action_open(self) -> None:
        if self.table.cursor is not None:
            self.app.push_screen(EntryScreen(self))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.word = event.value
        self._close_find()
        self._list()

    def action_leave(self) -> None:
        if not self.query_one(Input).has_class(HIDDEN):
            self._close_find()
        elif self.word:
            self.word = ""
            self._list()
        else:
            self.dismiss()

    def action_step(self, distance: int) -> None:
        found = self._of_kind()
        if self.dump in found:
            at = min(max(found.index(self.dump) + distance, 0), len(found) - 1)
            self._open(found[at])

    def action_kind(self) -> None:
        """Shows this step of the other kind, or the nearest step before it."""
        self.kind = "validation" if self.kind == "rollout" else "rollout"
        step = self.dump.step if self.dump else 0
        found = self._of_kind()
        self._open(next((dump for dump in reversed(found) if dump.step <= step), found[0] if found else None))
        self._count()

    def action_order(self) -> None:
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self.table.cursor = None
        self._list()

    def action_diff(self) -> None:
        from tui.pages.samples.diff_screen import SampleDiffScreen

        key = self.table.cursor
        if self.dump is not None and key is not None:
            place = int(key)
            self.app.push_screen(SampleDiffScreen(self.run, self.dump, place, self.samples[place]))

    def refusal(self, action: str) -> str | None:
        if action in ("step", "kind", "order", "diff", "find", "open") and not self.dumps:
            return "the run has written no samples yet"
        return None

    def action_find(self) -> None:
        prompt = self.query_one(Input)
        prompt.value = self.word
        self.open_field(prompt)

    def _close_find(self) -> None:
        self.query_one(Input).add_class(HIDDEN)
        self.table.focus()

    def _of_kind(self) -> list[Dump]:
        return [dump for dump in self.dumps if dump.kind == self.kind]

    def poll(self) -> None:
        now = stamp(self.reader.dir)
        if fresh := now != self._stamp:
            self._stamp, self.dumps = now, dumps(self.reader.dir)
        if self.dump is None and self.dumps:
            self.kind = self.kind if self._of_kind() else self.dumps[0].kind
            self._open(self._of_kind()[-1])
            self.query_one(HeaderLine).follow(self.reader)
        else:
            self.show()
        if fresh:
            self._count()

    def _open(self, dump: Dump | None) -> None:
        self.dump = dump
        self._read(dump)

    @work(exclusive=True, group="read")
    async def _read(self, dump: Dump | None) -> None:
        """Reads a dump in a thread: a batch of a thousand long responses has some megabytes."""
        try:
            self.samples, self._cut = await asyncio.to_thread(read, dump) if dump else ([], False)
        except OSError as error:
            self.samples, self._cut = [], False
            self.notify(clean(str(error)), severity="error", markup=False)
        self._list()

    def _count(self) -> None:
        """Counts the scores that the supervisor did not count, newest first. The newest dump may be incomplete."""
        found = self._of_kind()
        self._uncounted = [(dump, dump != found[-1]) for dump in found if not self._known(dump)[0]]
        if self._uncounted and not self._counting:
            self._counting = True
            self.in_worker(self._count_all, "count")

    async def _count_all(self) -> None:
        try:
            while self._uncounted:
                dump, complete = self._uncounted.pop()
                self._counted[dump.path] = complete, await asyncio.to_thread(counted_scores, dump)
        finally:
            self._counting = False
        self.show_body()

    def _known(self, dump: Dump) -> tuple[bool, ScoreCounts | None]:
        """Whether the scores of a dump are complete, and the scores."""
        recorded = self.reader.scores.get(dump.step) if dump.kind == "rollout" else None
        return (True, recorded) if recorded else self._counted.get(dump.path, (False, None))

    def _list(self) -> None:
        places = matching(self.samples, ordered(self.samples, self.order), self.word)
        self.table.show([str(place) for place in places])
        self.on_listing_moved()
        self.show_body()

    def show_body(self) -> None:
        """Shows the step and the number of steps, a summary of the responses, and their filter and order."""
        if self.dump is None:
            none = _ELSEWHERE if self.reader.dir.read_head().followed else _NONE
            why = paragraph(f"{none} {PURPOSE}", "dim", self.list_columns, most=max(self.size.height - 5, 1))
            self.query_one("#samples-state", Lines).show(why)
            return
        row: Row = [(f" {self.kind} of step {self.dump.step}", "title")]
        last = self._of_kind()[-1:]
        row.append((f" of {last[0].step}  " if last else "  ", "dim"))
        row.append((about(self.samples) + (", only the first part of the file" if self._cut else ""), "text"))
        if self.order != ORDERS[0]:
            row.append((f" · {self.order}", "live"))
        if self.word:
            row.append((f" · /{clean(self.word)}", "live"))
        rows = [row, score_row(self.samples, self.size.width)]
        if self.kind == "rollout" and (told := figures_row(self.reader.series, self.dump.step)):
            rows.append(told)
        steps, (columns, height) = [(dump.step, self._known(dump)[1]) for dump in self._of_kind()], self.size
        strip = score_strip(steps, self.dump.step, columns, height // 2 - 8, len(self._uncounted))
        self.set_class(bool(strip), "-strip")
        rows += strip
        self.query_one("#samples-state", Lines).show([*rows, sample_heading()])

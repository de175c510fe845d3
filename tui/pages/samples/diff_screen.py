"""One prompt through the training: its responses at other steps, and what changed between two of them."""

import asyncio
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll

from launcher.core.text import clean
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.responses import Dump, Sample, dumps, prompt_of, responses_to
from tui.kit.charted import HEIGHTS
from tui.kit.drawing.rows import Row, crop
from tui.kit.keys import KEYS
from tui.kit.page import Page
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.line_table import ResponseTable
from tui.kit.widgets.lines import Lines
from tui.pages.samples.sample_rows import diff_rows, response_row, score_course

MOST = 200  # responses that are listed
_BATCH = 20  # files read between two looks at the screen


class Response(NamedTuple):
    """A response to the prompt; `place` counts those of one dump."""

    dump: Dump
    place: int
    sample: Sample


class SampleDiffScreen(Page[None]):
    """The chosen response against another one to the same prompt, the older one first.

    Dumps are searched newest first, one at a time in a thread: nothing of them is kept but the responses found.
    A validation asks the same prompts each time, training the same one once an epoch.
    """

    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["diff"]]

    def __init__(self, reader: RunReader, dump: Dump, place: int, sample: Sample) -> None:
        """`place` is that of the sample in its dump."""
        super().__init__()
        self.reader, self.dump, self.place, self.sample = reader, dump, place, sample
        self.responses: list[Response] = []
        self._chosen = Response(dump, 0, sample)
        self._read = self._of = 0
        self._placed = False  # the cursor, beside the chosen response

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Lines(id="diff-state")
        yield ResponseTable(self._line, " searching other steps for this prompt …")
        with VerticalScroll(can_focus=False):
            yield Lines(id="difference")
        yield KeyBar()

    def on_mount(self) -> None:
        reader = self.reader
        self.query_one(HeaderLine).show(reader.name, reader.id, reader.state, None)
        self.query_one(ResponseTable).focus()
        self.run_worker(self._search(), exclusive=True)

    def on_resize(self) -> None:
        self._show_state()
        self._show_difference()

    def on_line_table_moved(self) -> None:
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self._show_difference()

    def action_move(self, distance: int) -> None:
        self.query_one(ResponseTable).action_move(distance)

    def action_read(self, direction: int) -> None:
        scroll = self.query_one(VerticalScroll)
        scroll.scroll_relative(y=direction * max(scroll.size.height - 1, 1), animate=False)

    async def _search(self) -> None:
        try:
            prompt = await asyncio.to_thread(prompt_of, self.dump, self.place)
        except OSError as error:
            self.notify(clean(str(error)), severity="error", markup=False)
            return
        found = await asyncio.to_thread(dumps, self.reader.dir)
        found.sort(key=lambda dump: (dump.step, dump.kind), reverse=True)
        self._of = len(found)
        for start in range(0, len(found), _BATCH):
            if prompt is None or len(self.responses) >= MOST:
                break
            self.responses += await asyncio.to_thread(_responses, prompt, found[start : start + _BATCH])
            self._read = min(start + _BATCH, len(found))
            self._list()
        self._read = self._of
        self._list()

    def _list(self) -> None:
        """Shows what was found so far; the cursor begins at the response before the chosen one."""
        table = self.query_one(ResponseTable)
        table.show([str(n) for n in range(len(self.responses))])
        mine = next((n for n, each in enumerate(self.responses) if self._is_chosen(each)), None)
        if mine is not None and len(self.responses) > 1 and not self._placed:
            self._placed = mine + 1 < len(self.responses) or self._read == self._of
            table.move_to(str(mine + 1 if mine + 1 < len(self.responses) else mine - 1))
        self._show_state()
        self._show_difference()

    def _is_chosen(self, response: Response) -> bool:
        return response.dump == self.dump and response.sample == self.sample

    def _line(self, key: str, columns: int) -> Row:
        response = self.responses[int(key)]
        return response_row(response.dump, response.sample, chosen=self._is_chosen(response))

    def _show_state(self) -> None:
        steps = len({response.dump.step for response in self.responses})
        row: Row = [(f" {len(self.responses)} responses to this prompt at {steps} steps", "title")]
        row += score_course([response.sample.score for response in reversed(self.responses)])
        if self._read < self._of:
            row.append((f" · {self._read} of {self._of} files read", "live"))
        prompt = " ".join(self.sample.prompt[-400:].split())
        prompt_row: Row = crop(
            [(f" …{prompt}" if len(self.sample.prompt) > 400 else f" {prompt}", "dim")], max(self.size.width - 1, 1)
        )
        self.query_one("#diff-state", Lines).show([row, prompt_row])

    def _show_difference(self) -> None:
        key = self.query_one(ResponseTable).cursor
        other = self.responses[int(key)] if key is not None else self._chosen
        pair = [self._chosen, other]
        if (other.dump.step, other.dump.kind) < (self.dump.step, self.dump.kind):
            pair.reverse()
        same = other is self._chosen or self._is_chosen(other)
        alone = same and self._read == self._of and len(self.responses) < 2
        rows = diff_rows(
            *((each.dump, each.sample) for each in pair), columns=self.size.width - 1, same=same, alone=alone
        )
        self.query_one("#difference", Lines).show(rows)


def _responses(prompt: bytes, found: list[Dump]) -> list[Response]:
    responses: list[Response] = []
    for dump in found:
        try:
            responses += [Response(dump, place, each) for place, each in enumerate(responses_to(prompt, dump))]
        except OSError:  # pruned while it was looked for
            continue
    return responses

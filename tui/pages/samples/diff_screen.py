"""One prompt during training: its responses at other steps, and the difference of two."""

import asyncio

from textual import work
from textual.app import ComposeResult

from launcher.core.format import counted
from launcher.core.text import clean
from launcher.runs.watch.responses import Dump, Sample, prompt_of
from tui.kit.charted import HEIGHTS
from tui.kit.drawing.rows import Row, crop
from tui.kit.keys import KEYS
from tui.kit.list_page import ListPage
from tui.kit.navigation import RunView
from tui.kit.run_page import RunPage
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import ResponseTable
from tui.pages.samples.history import Response, newest_first, responses_in
from tui.pages.samples.sample_rows import diff_rows, response_row, sample_heading, score_course

MOST = 200  # responses that are listed
_BATCH = 20  # files read between two looks at the screen


class SampleDiffScreen(ListPage[None], RunPage):
    """Compares the selected response with another one to its prompt, the older one first.

    A thread searches dumps, newest first, and keeps only matching responses. A validation repeats its prompts each
    time; training repeats a prompt once per epoch.
    """

    VERTICAL_BREAKPOINTS = HEIGHTS
    PAGE_NAME = "Prompt"
    BINDINGS = KEYS["diff"]
    TABLE = ResponseTable
    EMPTY = " searching other steps for this prompt …"
    DETAIL = "difference"

    def __init__(self, run: RunView, dump: Dump, place: int, sample: Sample) -> None:
        """`place` is the index of the sample in its dump."""
        super().__init__(run)
        self.dump, self.place, self.sample = dump, place, sample
        self.responses: list[Response] = []
        self._chosen = Response(dump, 0, sample)
        self._read = self._of = 0
        self._placed = False  # whether the cursor was placed next to the chosen response

    def body(self) -> ComposeResult:
        yield Lines(id="diff-state")
        yield from self.make_list()

    DETAIL_SCROLLS = True

    def on_mount(self) -> None:
        self._search()

    def action_move(self, distance: int) -> None:
        self.table.action_move(distance)

    @work(exclusive=True)
    async def _search(self) -> None:
        try:
            prompt = await asyncio.to_thread(prompt_of, self.dump, self.place)
        except OSError as error:
            self.notify(clean(str(error)), severity="error", markup=False)
            return
        found = await asyncio.to_thread(newest_first, self.reader.dir)
        self._of = len(found)
        for start in range(0, len(found), _BATCH):
            if prompt is None or len(self.responses) >= MOST:
                break
            self.responses += await asyncio.to_thread(responses_in, prompt, found[start : start + _BATCH])
            self._read = min(start + _BATCH, len(found))
            self._list()
        self._read = self._of
        self._list()

    def _list(self) -> None:
        """Shows the responses found so far; the cursor starts before the chosen one."""
        table = self.table
        table.show([str(n) for n in range(len(self.responses))])
        mine = next((n for n, each in enumerate(self.responses) if self._is_chosen(each)), None)
        if mine is not None and len(self.responses) > 1 and not self._placed:
            self._placed = mine + 1 < len(self.responses) or self._read == self._of
            table.move_to(str(mine + 1 if mine + 1 < len(self.responses) else mine - 1))
        self.show_body()
        self.show_detail()

    def _is_chosen(self, response: Response) -> bool:
        return response.dump == self.dump and response.sample == self.sample

    def row(self, key: str, columns: int) -> Row:
        response = self.responses[int(key)]
        return response_row(response.dump, response.sample, chosen=self._is_chosen(response))

    def show_body(self) -> None:
        steps, found = len({response.dump.step for response in self.responses}), len(self.responses)
        count = f" {counted(found, 'response')} to this prompt at {counted(steps, 'step')}"
        row: Row = [(count, "title")]
        row += score_course([response.sample.score for response in reversed(self.responses)])
        if self._read < self._of:
            row.append((f" · {self._read} of {self._of} files read", "live"))
        prompt = " ".join(self.sample.prompt[-400:].split())
        prompt_row: Row = crop(
            [(f" …{prompt}" if len(self.sample.prompt) > 400 else f" {prompt}", "dim")], max(self.size.width - 1, 1)
        )
        self.query_one("#diff-state", Lines).show([row, prompt_row, sample_heading(f"   {'step':22}")])

    def detail(self, key: str | None, columns: int) -> list[Row]:
        other = self.responses[int(key)] if key is not None else self._chosen
        pair = [self._chosen, other]
        if (other.dump.step, other.dump.kind) < (self.dump.step, self.dump.kind):
            pair.reverse()
        same = other is self._chosen or self._is_chosen(other)
        alone = same and self._read == self._of and len(self.responses) < 2
        older, newer = ((each.dump, each.sample) for each in pair)
        return diff_rows(older, newer, columns=columns - 1, same=same, alone=alone)

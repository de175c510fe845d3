"""The case file of a run: the text for the user's assistant and, after consent, its answer."""

from contextlib import aclosing
from functools import partial

from textual import work
from textual.app import ComposeResult
from textual.containers import VerticalScroll

from launcher.core.errors import UserError
from launcher.report.assistant import QUOTED, answered
from launcher.report.case import case_of
from launcher.settings import Assistant, read_assistant
from launcher.verl.defaults import NEWEST
from tui.kit.actions.background import in_background, reported
from tui.kit.drawing.rows import Row, fold
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView
from tui.kit.run_page import RunPage
from tui.kit.terminal import copied
from tui.kit.widgets.lines import Lines


class CaseScreen(RunPage):
    """Shows the complete text to send, then the answer above it. `about`: "health" asks about the flags."""

    PAGE_NAME = "Case"
    BINDINGS = KEYS["case"]

    def __init__(self, run: RunView, about: str = "") -> None:
        super().__init__(run)
        self._about, self._text, self._verl, self._said = about, "", NEWEST, "Reading the run …"
        self._assistant: Assistant | None = None
        self._answer: list[str] = []

    def body(self) -> ComposeResult:
        yield VerticalScroll(Lines(id="case"), can_focus=False)

    def on_mount(self) -> None:
        super().on_mount()
        self.in_worker(self._read, "case")

    async def _read(self) -> None:
        with reported(self.app):
            case = await in_background(partial(case_of, self.reader.dir, health=self._about == "health"))
            self._text, self._verl = case.text, case.verl
            try:
                self._assistant = read_assistant()
                self._said = f"A sends these {len(case.text):,} characters to {self._assistant.to}; y copies them"
            except UserError as error:
                self._said = f"y copies this text; {error}"
        self.refresh_bindings()
        self.show()

    def show_body(self) -> None:
        columns = max(self.size.width - len(QUOTED) - 2, 1)
        lines = [(self._said, "title"), *((line, "warn") for line in self._answer), ("", "text")]
        rows: list[Row] = []
        for line, role in (*lines, *((line, "dim") for line in self._text.splitlines())):
            mark = QUOTED if role == "warn" and line.startswith(QUOTED) else ""  # on each row of a line
            told = "text" if mark else role
            rows += [[(f" {mark}{row}", told)] for row in fold(line.removeprefix(mark), columns)]
        self.query_one(Lines).show(rows)

    def refusal(self, action: str) -> str | None:
        if action == "send" and (self._assistant is None or not self._text):
            return self._said
        return super().refusal(action)

    @work(group="send", exclusive=True)
    async def action_send(self) -> None:
        assert self._assistant is not None
        self._answer = []
        with reported(self.app, "No answer"):
            async with aclosing(answered(self._assistant, self._text, self._verl, self.reader.dir)) as lines:
                async for line in lines:
                    self._answer.append(line)
                    self.show()

    def action_copy(self) -> None:
        copied(self.app, "case", self._text)

    def action_leave(self) -> None:
        if not any(self.workers.cancel_group(self, "send")):
            self.dismiss()

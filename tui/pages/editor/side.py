"""The pages next to the form of a draft: plan, findings, differences, command."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.timer import Timer

from launcher.check.finding import Finding
from launcher.preset import layers
from launcher.preset.flow import flow
from launcher.preset.yaml_text import Where
from tui.kit.drawing.rows import Row
from tui.kit.page import HIDDEN
from tui.kit.plan_rows import memory_rows
from tui.kit.widgets.findings import Findings
from tui.kit.widgets.lines import CommandText, Lines
from tui.pages.editor.draft_checks import DraftChecks
from tui.pages.editor.plan_rows import difference_rows, flow_rows
from tui.pages.editor.preset_form import Form, differences

PATIENCE = 0.3  # seconds without a change before a request for checks
PAGES = ("plan", "findings", "changes", "command")


class EditorSide(Vertical):
    """Shows one page; on a wide screen with the plan above. The checks run in a separate process."""

    class Checked(Message):
        """The checks replied."""

    def __init__(self) -> None:
        super().__init__(id="editor-side")
        self.findings: list[Finding] = []
        self.differing = 0
        self._highest = 0  # rows of the plan
        self._compared: tuple[Mapping[Where, Any], str] | None = None
        self._checks = DraftChecks(self._on_reply)
        self._soon: Timer | None = None
        self._form: Form | None = None
        self._shown: tuple[Path, str] | None = None
        self._reply: Mapping[str, Any] = {}

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page-plan"):
            yield Lines(id="plan")
        with VerticalScroll(id="page-findings", can_focus=False):
            yield Findings()
        with VerticalScroll(id="page-changes"):
            yield Lines(id="changes")
        with VerticalScroll(id="page-command"):
            yield CommandText(id="command")

    @work(exclusive=True)
    async def on_mount(self) -> None:
        await self._checks.run()

    def on_unmount(self) -> None:
        self._checks.close()

    def on_resize(self) -> None:
        self._draw()

    def turn_to(self, page: str, *, plan: bool) -> None:
        """Shows a page, with the plan above if there is room."""
        for each in PAGES:
            wanted = each == page or (plan and each == "plan")
            self.query(f"#page-{each}").set_class(not wanted, HIDDEN)
        self._draw()

    @property
    def compares(self) -> bool:
        """Whether the page of changes compares with a run."""
        return self._compared is not None

    def compare(self, run: str | None, preset: Mapping[str, Any] | None = None) -> None:
        """Shows the changes against a run's settings; None: against the parent again."""
        layer = layers.from_mapping(preset or {}, lambda _: "run", Path("/"))
        found = {where: entry.value for where, entry in layer.items()}
        self._compared = (found, f"run {run}") if run else None
        self._draw()

    def show(self, form: Form) -> None:
        """Shows another state of the draft: fast parts at once, checks after a pause."""
        first, self._form = self._form is None, form
        if self._shown != (form.draft.path, form.draft.text):
            self._shown = form.draft.path, form.draft.text
            if self._soon:
                self._soon.stop()
            self._soon = self.set_timer(0.01 if first else PATIENCE, self._ask)
        self._draw()

    @property
    def checked(self) -> bool:
        """Whether the checks have replied once."""
        return "findings" in self._reply

    @property
    def verl(self) -> tuple[str, Path | None] | None:
        """Version and folder of the veRL found by the checks; None before."""
        version, folder = self._reply.get("verl") or (None, None)
        return (version, Path(folder) if folder else None) if version else None

    @property
    def _whole(self) -> bool:
        """False while the screen closes: its widgets are removed one by one, the inner ones first."""
        return all(map(self.query, ("#plan", "#changes", "#command", "Findings")))

    def _ask(self) -> None:
        if self._shown:
            self._checks.ask(*self._shown)

    def _on_reply(self, reply: Mapping[str, Any]) -> None:
        self._reply = {**self._reply, **reply}
        if "findings" in reply:
            self.findings = [Finding.from_json(each) for each in reply["findings"]]
        if self._whole:
            self._draw()
            self.post_message(self.Checked())

    def _draw(self) -> None:
        """Draws only the visible page; hidden pages cost neither time nor a new layout."""
        if self._form is None or not self._whole:
            return
        columns = max(self.size.width - 1, 20)
        now = self._form.reading.values
        then, against = self._compared or self._form.draft.against()
        found = differences(now, then)
        self.differing = len(found)
        drawn: dict[str, Callable[[], list[Row]]] = {
            "plan": lambda: self._plan(columns),
            "changes": lambda: difference_rows(found, against, columns),
        }
        for page, rows in drawn.items():
            if not self.query_one(f"#page-{page}").has_class(HIDDEN):
                self.query_one(f"#{page}", Lines).show(rows())
        if not self.query_one("#page-command").has_class(HIDDEN):
            error = str(self._reply.get("error") or "")
            text = error or str(self._reply.get("command") or "")
            self.query_one(CommandText).show(text, "critical" if error else "text")
        quiet = "no problems found" if self.checked else ""
        self.query_one(Findings).show(self.findings, quiet)

    def _plan(self, columns: int) -> list[Row]:
        """Shows the plan. It never becomes lower, because the part below would be painted again."""
        assert self._form is not None
        batches = flow(self._form.config, self._reply.get("rows"))
        rows = [[(" Plan", "title")], *flow_rows(batches, columns, read="rows" in self._reply)]
        if "machine" in self._reply:
            rows += [[], *memory_rows(self._reply["memory"], self._reply["machine"], columns)]
        self._highest = max(self._highest, len(rows))
        return [*rows, *([] for _ in range(self._highest - len(rows)))]

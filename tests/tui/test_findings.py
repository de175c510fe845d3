"""The list of findings, one of them with its fixes, and the key that fixes."""

from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll

from launcher.check.finding import Finding, setting
from launcher.record.fix import Fix
from tui.kit.drawing.rows import width
from tui.kit.widgets.findings import Findings, finding_rows
from tui.kit.widgets.painted import ROLE_CLASSES

BATCH = Finding(
    "V3",
    "config",
    "error",
    ("actor_rollout_ref.actor.ppo_mini_batch_size", "data.train_batch_size"),
    "the mini-batch 48 does not divide the train batch 128 (128 / 48 = 2.67)",
    (setting({"actor.ppo_mini_batch_size": 64}),),
)
DISK = Finding("HW-4", "hardware", "warning", (), "12 GiB free, 688 GiB wanted", (Fix("keep fewer checkpoints"),))
COLOUR = Finding("X", "software", "info", (), "\x1b[31mred\x1b[0m")


class Page(App[None]):
    COMPONENT_CLASSES = ROLE_CLASSES

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__()
        self.findings, self.wanted = findings, []

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Findings()

    def on_mount(self) -> None:
        self.query_one(Findings).show(self.findings)
        self.query_one(Findings).focus()

    def on_findings_fix_wanted(self, event: Findings.FixWanted) -> None:
        self.wanted.append(event.finding)


def texts(rows: list[Any]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


@pytest.mark.parametrize("columns", [20, 40, 80, 160])
@pytest.mark.parametrize("finding", [BATCH, DISK, COLOUR])
def test_a_finding_fits_its_columns_and_says_everything_when_unfolded(finding: Finding, columns: int) -> None:
    rows = finding_rows(finding, columns, opened=True)
    said = " ".join(" ".join(texts(rows)).split())
    assert "\x1b" not in said
    if columns > 20:  # names of keys are longer than that
        assert all(width(row) <= columns for row in rows)
    for word in [
        finding.level,
        *finding.fix.split(),
        *finding.message.replace("\x1b[31m", "").replace("\x1b[0m", "").split(),
    ]:
        assert word in said.replace(" ", "")


async def test_f_asks_for_the_change_of_the_chosen_finding_and_only_where_there_is_one() -> None:
    app = Page([BATCH, DISK])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        findings = app.query_one(Findings)
        assert findings.chosen == BATCH
        await pilot.press("F")
        await pilot.press("down")
        assert findings.chosen == DISK
        await pilot.press("F")
        assert app.wanted == [BATCH]


async def test_a_choice_stays_on_its_finding_when_others_arrive() -> None:
    app = Page([DISK])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        findings = app.query_one(Findings)
        findings.show([BATCH, DISK, COLOUR])  # nobody chose: the worst
        await pilot.pause()
        assert findings.chosen == BATCH
        await pilot.press("down")
        findings.show([COLOUR, BATCH, DISK])
        await pilot.pause()
        assert findings.chosen == DISK
        findings.show([BATCH])
        assert findings.chosen == BATCH
        findings.show([], quiet="all is well")
        await pilot.pause()
        assert findings.chosen is None and "all is well" in texts(findings.draw(80, 1))[0]

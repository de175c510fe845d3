"""Widgets that draw themselves: painted when they change and seen; and the list of findings among them."""

import pytest
from pilots import words
from textual.app import App
from textual.containers import VerticalScroll
from textual.theme import Theme

from launcher.check.finding import Finding, setting
from launcher.record.fix import Fix
from tui.app import PpoTui
from tui.kit.drawing.rows import width
from tui.kit.page import HIDDEN
from tui.kit.widgets.findings import Findings, finding_rows
from tui.kit.widgets.painted import ROLE_CLASSES, Painted


class Line(Painted):
    DEFAULT_CSS = "Line { height: 1; }"
    says = "first"
    asked = 0  # how often Textual was asked to paint

    def draw(self, columns, rows):
        return [[(self.says, "text"), (" well", "ok")]]

    def refresh(self, *args, **how):
        self.asked += 1
        super().refresh(*args, **how)
        return self


class Page(App):
    COMPONENT_CLASSES = ROLE_CLASSES
    CSS = f".role--ok {{ color: $success; }} .{HIDDEN} {{ display: none; }}"

    def __init__(self, kind=Line):
        super().__init__()
        self.kind, self.wanted = kind, []

    def compose(self):
        with VerticalScroll(can_focus=False):
            yield self.kind()

    def on_findings_fix_wanted(self, event):
        self.wanted.append(event.finding)


async def test_a_widget_is_painted_where_it_changed_and_is_seen(make):
    async with make.open(Page(), size=(20, 4)) as user:
        line, box = user.one(Line), user.one("VerticalScroll")
        assert "first" in user.seen
        asked = line.asked
        line.redraw()
        assert line.asked == asked
        line.says = "second"
        line.redraw()
        await user()
        assert line.asked == asked + 1 and "second" in user.seen
        box.add_class(HIDDEN)
        await user()
        asked, line.says = line.asked, "third"
        for _ in range(3):
            line.redraw()
            await user()
        assert line.asked <= asked + 1  # and it is up to date when it shows
        box.remove_class(HIDDEN)
        await user(lambda: "third" in user.seen)


def test_the_styles_of_roles_are_the_apps_and_not_worked_out_for_every_widget():
    from tui.pages.dashboard.screen import DashboardScreen  # its widgets

    assert DashboardScreen
    kinds = [Painted]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert len(kinds) > 10
    assert not [kind.__name__ for kind in kinds if kind.COMPONENT_CLASSES]
    assert PpoTui.COMPONENT_CLASSES == ROLE_CLASSES


async def test_a_theme_that_changes_the_colour_of_a_role_alone_is_seen_at_once(make):
    app, colours = Page(), {"one": "#5fd75f", "other": "#5fd7ff"}
    for name, colour in colours.items():
        app.register_theme(Theme(name=name, primary="#5fafff", success=colour, background="#121212"))
    async with make.open(app, size=(20, 4)) as user:
        for name, colour in colours.items():
            app.theme = name
            await user()
            (shown,) = [each for each in colours.values() if each in app.export_screenshot()]
            assert shown == colour


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


@pytest.mark.parametrize("columns", [20, 40, 80, 160])
@pytest.mark.parametrize("finding", [BATCH, DISK, COLOUR])
def test_a_finding_fits_its_columns_and_says_everything_when_unfolded(finding, columns):
    rows = finding_rows(finding, columns, opened=True)
    said = "".join(words(rows).split())
    assert "\x1b" not in said
    assert columns == 20 or all(width(row) <= columns for row in rows)  # names of keys are longer than that
    message = finding.message.replace("\x1b[31m", "").replace("\x1b[0m", "")
    for word in [finding.level, *finding.fix.split(), *message.split()]:
        assert word in said


async def test_f_asks_for_the_change_of_the_chosen_finding_which_stays_when_others_arrive(make):
    app = Page(Findings)
    async with make.open(app) as user:
        findings = user.one("Findings")
        findings.show([DISK])
        findings.focus()
        findings.show([BATCH, DISK, COLOUR])  # nobody chose: the worst
        await user()
        assert findings.chosen == BATCH
        await user("F", "down", "F")
        assert app.wanted == [BATCH] and findings.chosen == DISK
        findings.show([COLOUR, BATCH, DISK])
        await user()
        assert findings.chosen == DISK
        findings.show([BATCH])
        assert findings.chosen == BATCH
        findings.show([], quiet="all is well")
        await user()
        assert findings.chosen is None and "all is well" in words(findings.draw(80, 1))

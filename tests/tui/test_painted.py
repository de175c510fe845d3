"""The base of all widgets that draw themselves."""

import re

from textual.app import App, ComposeResult
from textual.containers import Container
from textual.theme import Theme

from tui.app import PpoTui
from tui.kit.drawing.rows import Row
from tui.kit.page import HIDDEN
from tui.kit.widgets.painted import ROLE_CLASSES, Painted


class Line(Painted):
    DEFAULT_CSS = "Line { height: 1; }"
    says = "first"
    asked = 0  # how often Textual was asked to paint

    def draw(self, columns: int, rows: int) -> list[Row]:
        return [[(self.says, "text"), (" well", "ok")]]

    def refresh(self, *args: object, **how: object) -> "Line":
        self.asked += 1
        super().refresh(*args, **how)  # type: ignore[arg-type]
        return self


class Page(App[None]):
    COMPONENT_CLASSES = ROLE_CLASSES
    CSS = f".role--ok {{ color: $success; }} .{HIDDEN} {{ display: none; }}"

    def compose(self) -> ComposeResult:
        with Container():
            yield Line()


def shown(line: Line) -> str:
    """The line as the screen has it: Textual keeps what it has painted."""
    found = re.search("first|second", line.app.export_screenshot())
    return found[0] if found else ""


async def test_a_hidden_widget_asks_once_at_most_and_is_up_to_date_when_it_shows() -> None:
    app = Page()
    async with app.run_test(size=(20, 4)) as pilot:
        line = app.query_one(Line)
        await pilot.pause()
        assert shown(line) == "first"
        app.query_one(Container).add_class(HIDDEN)
        await pilot.pause()
        asked, line.says = line.asked, "second"
        for _ in range(3):
            line.redraw()
            await pilot.pause()
        assert line.asked <= asked + 1
        app.query_one(Container).remove_class(HIDDEN)
        await pilot.pause()
        assert shown(line) == "second"


async def test_what_has_not_changed_is_not_painted_again() -> None:
    app = Page()
    async with app.run_test(size=(20, 4)) as pilot:
        line = app.query_one(Line)
        await pilot.pause()
        asked = line.asked
        line.redraw()
        assert line.asked == asked
        line.says = "second"
        line.redraw()
        await pilot.pause()
        assert line.asked == asked + 1 and shown(line) == "second"


def test_the_styles_of_roles_are_the_apps_and_not_worked_out_for_every_widget() -> None:
    from tui.pages.dashboard.screen import DashboardScreen  # its widgets

    assert DashboardScreen
    kinds = [Painted]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert len(kinds) > 10
    assert not [kind.__name__ for kind in kinds if kind.COMPONENT_CLASSES]
    assert PpoTui.COMPONENT_CLASSES == ROLE_CLASSES


async def test_a_theme_that_changes_the_colour_of_a_role_alone_is_seen_at_once() -> None:
    app = Page()
    for name, colour in (("one", "#5fd75f"), ("other", "#5fd7ff")):
        app.register_theme(Theme(name=name, primary="#5fafff", success=colour, background="#121212"))
    app.theme = "one"
    async with app.run_test(size=(20, 4)) as pilot:
        await pilot.pause()
        assert "#5fd75f" in app.export_screenshot()
        app.theme = "other"
        await pilot.pause()
        assert "#5fd7ff" in app.export_screenshot()
        assert "#5fd75f" not in app.export_screenshot()

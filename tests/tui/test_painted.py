"""The base of all widgets that draw themselves."""

from textual.app import App, ComposeResult

from tui.drawing.rows import Row
from tui.widgets.painted import HIDDEN, Painted


class Line(Painted):
    DEFAULT_CSS = f"Line {{ height: 1; }} Line.{HIDDEN} {{ display: none; }}"
    says = "first"
    asked = 0  # how often Textual was asked to paint

    def draw(self, columns: int, rows: int) -> list[Row]:
        return [[(self.says, "text")]]

    def refresh(self, *args: object, **how: object) -> "Line":
        self.asked += 1
        super().refresh(*args, **how)  # type: ignore[arg-type]
        return self


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield Line()


def shown(line: Line) -> str:
    return line.render_line(0).text.rstrip()


async def test_a_hidden_widget_asks_for_nothing_and_is_up_to_date_when_it_shows() -> None:
    app = Page()
    async with app.run_test(size=(20, 4)) as pilot:
        line = app.query_one(Line)
        await pilot.pause()
        assert shown(line) == "first"
        line.add_class(HIDDEN)
        await pilot.pause()
        asked, line.says = line.asked, "second"
        line.redraw()
        await pilot.pause()
        assert line.asked == asked
        line.remove_class(HIDDEN)
        await pilot.pause()
        assert shown(line) == "second"


async def test_what_has_not_changed_is_not_painted_again() -> None:
    app = Page()
    async with app.run_test(size=(20, 4)) as pilot:
        line = app.query_one(Line)
        await pilot.pause()
        shown(line)
        asked = line.asked
        line.redraw()
        assert line.asked == asked
        line.says = "second"
        line.redraw()
        assert line.asked == asked + 1 and shown(line) == "second"

"""What the screen says in passing: one line, on whichever screen is up."""

from types import SimpleNamespace

import pytest
from pilots import message, picture, until

from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.widgets import message_line
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.message_line import MessageLine
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.runs.screen import RunsScreen


@pytest.mark.parametrize("size", [(80, 24), (20, 5), (160, 48)])
async def test_the_newest_message_alone_stands_over_the_footer(make: SimpleNamespace, size: tuple[int, int]) -> None:
    app = make.app()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        for _ in range(3):
            app.notify("the same thing", severity="warning")
        app.notify("[b]bold[/] and \x1b[2J newer")
        app.notify("a[1] long one " * 40, title="Not done", severity="error", markup=False)
        await until(pilot, lambda: message(app).startswith("Not done: a[1] long one"))
        (line,) = app.screen.query(MessageLine)
        await until(pilot, lambda: line.region.height)
        assert line.region.bottom == size[1] and line.region.height <= max(size[1] // 5, 1)
        shown = picture(app)[line.region.y]
        assert shown.startswith(" ✖ Not done:") and "the same" not in "".join(picture(app))
        assert "…" in shown if line.region.height == 1 else picture(app)[-1].rstrip().endswith("…")


async def test_it_goes_with_a_key_but_not_before_it_can_be_read(
    make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make.app(make.run())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        app.notify("▲ WARN KL-4")
        await until(pilot, lambda: message(app))
        await pilot.press("down")
        assert message(app) == "▲ WARN KL-4"
        assert sum(line.startswith(" ▲ WARN KL-4") for line in picture(app)) == 1  # its own sign, once
        monkeypatch.setattr(message_line, "_READ", 0.0)
        await pilot.press("down")
        await until(pilot, lambda: not message(app))
        assert app.screen.query_one(KeyBar).region.bottom == 24


async def test_it_goes_after_its_time(make: SimpleNamespace) -> None:
    app = make.app(make.run())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        app.notify("soon gone", timeout=1)
        await until(pilot, lambda: app.said)
        await until(pilot, lambda: not message(app))


async def test_it_follows_to_the_screen_that_is_up(make: SimpleNamespace) -> None:
    """Over a dialog and off it again; a screen that it left has no stray."""
    app = make.app(make.run())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        app.notify("said below")
        await until(pilot, lambda: message(app))
        below = app.screen
        await app.push_screen(ConfirmScreen("Sure?", "", "y  yes"))
        await until(pilot, lambda: message(app) == "said below" and not below.query(MessageLine))
        app.notify("said above")
        await until(pilot, lambda: message(app) == "said above")
        app.pop_screen()
        await until(pilot, lambda: app.screen is below and message(app) == "said above")


async def test_ctrl_c_names_the_key_that_quits(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: message(app) == "q quits; runs continue")


async def test_the_footer_names_enter_while_a_field_is_typed_in(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        assert "accept" not in app.screen.query_one(KeyBar).labels
        await pilot.press("slash")
        await until(pilot, lambda: app.screen.query_one(KeyBar).labels[:1] == ["accept"])
        await pilot.press("enter")
        await until(pilot, lambda: "accept" not in app.screen.query_one(KeyBar).labels)

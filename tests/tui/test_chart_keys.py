"""The keys of the charts, on the dashboard, on its pinned charts and on the page of one metric."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import message
from textual.pilot import Pilot

from launcher.metrics.names import toggle
from tui.app import PpoTui
from tui.kit.charted import ChartScreen, ViewLine
from tui.kit.charts.view import TIME, TOKENS, View
from tui.kit.drawing.line_chart import GUTTER
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.painted import Painted
from tui.pages.dashboard.checklist import Checklist
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.metrics.metric import MetricScreen
from tui.pages.metrics.screen import MetricsScreen

HOME, LARGE = (80, 24), (160, 48)


async def pressed(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


def view(app: PpoTui) -> View:
    assert isinstance(app.screen, ChartScreen)
    return app.screen.lens.view


def text(widget: Painted) -> str:
    return "\n".join("".join(part for part, _ in row) for row in widget.draw(*widget.size))


def charts(app: PpoTui) -> list[str]:
    """What every visible chart shows."""
    return [text(chart) for chart in app.screen.query(MetricChart) if chart.region.area]


def told(app: PpoTui) -> str:
    line = app.screen.query_one(ViewLine)
    return text(line) if line.region.area else ""


async def test_the_cursor_tells_the_values_of_every_chart_at_its_step(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot)
        before, rows = charts(app), [chart.region for chart in app.screen.query(MetricChart)]
        assert told(app).split() == ["▲", "flag", "○", "validation"]
        await pressed(pilot, "left")
        assert view(app).cursor == 62 and all("at 62: " in chart for chart in charts(app))
        assert "step 62 · 2m" in told(app) and "tokens" in told(app)
        await pressed(pilot, "left", "left")
        assert view(app).cursor == 58
        await pressed(pilot, "right")
        assert view(app).cursor == 60
        await pressed(pilot, "escape")
        assert charts(app) == before and "step 62" not in told(app)
        assert isinstance(app.screen, DashboardScreen)
        assert [chart.region for chart in app.screen.query(MetricChart)] == rows


async def test_escape_takes_the_cursor_before_the_chosen_check(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "down", "left", "escape")
        chosen = app.screen.query_one(Checklist).chosen
        assert view(app).cursor is None and chosen is not None
        assert any("❯" in line for line in text(app.screen.query_one(Checklist)).splitlines())


async def test_zoom_pan_and_back(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "plus")
        assert view(app).window == (31, 66) and "steps 31–66" in told(app)
        assert all(chart.splitlines()[-1][GUTTER:].startswith("31─") for chart in charts(app))
        await pressed(pilot, "comma")
        assert view(app).window == (13, 48)
        await pressed(pilot, "full_stop", "equals_sign")
        window = view(app).window
        assert window is not None and window[1] - window[0] == 18
        await pressed(pilot, "minus", "minus", "minus")
        assert view(app).window is None
        await pressed(pilot, "plus", "a s", "a l", "a x", "left", "0")
        assert view(app) != View()  # digits change nothing
        await pressed(pilot, "asterisk")
        assert view(app) == View() and "view" not in told(app)


@pytest.mark.parametrize("page", [(), ("m", "enter")])
async def test_the_cursor_goes_ten_steps_to_the_ends_and_to_a_step(
    make: SimpleNamespace, warned: Path, page: tuple[str, ...]
) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, *page)
        for keys, cursor in (
            (("shift+left",), 52),
            (("shift+left",), 42),
            (("shift+right",), 52),
            (("home",), 0),  # its validation
            (("shift+left",), 0),
            (("end",), 62),
            (("number_sign", "3", "0", "enter"), 30),
            (("number_sign", "9", "9", "9", "enter"), 62),
        ):
            await pressed(pilot, *keys)
            assert view(app).cursor == cursor, keys


async def test_the_window_follows_the_cursor(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "plus", "plus", "plus", "left", *["left"] * 12)
        found = view(app)
        assert found.window is not None and found.cursor == found.window[0] < 52
        assert found.window[1] - found.window[0] == 9
        await pressed(pilot, *["right"] * 70)
        assert view(app).cursor == 62  # the last step that was trained


async def test_smoothing_goes_round_and_keeps_the_raw_curve_behind(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        seen = []
        for _ in range(4):
            await pressed(pilot, "a s")
            seen.append(view(app).smoothing)
        assert seen == [0.6, 0.9, 0.97, 0.0]
        await pressed(pilot, "a s", "a s")
        assert "smoothed 0.9" in told(app)
        chart = app.screen.query(MetricChart).first()
        assert [curve.role for curve in chart.plot.curves] == ["raw", "curve", "point"]


async def test_x_turns_to_time_and_tokens(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "a x")
        assert view(app).across == TIME
        assert [chart.splitlines()[-1][-6:] for chart in charts(app)] == ["2m 30s"] * 4
        await pressed(pilot, "a x")
        assert view(app).across == TOKENS
        assert all(chart.endswith("k") for chart in charts(app))
        await pressed(pilot, "a x")
        assert view(app) == View()


async def test_an_x_axis_that_a_run_has_no_figures_for_is_refused(make: SimpleNamespace) -> None:
    app = make.app(make.run(attempts=[make.made_up(30, actor__entropy=0.4)]))
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "a x", "a x")
        assert view(app).across == "step"
        assert message(app).count("perf/total_num_tokens") == 1


async def test_a_log_scale_is_refused_by_the_charts_that_cannot_have_it(make: SimpleNamespace) -> None:
    steps = make.made_up(30, critic__score__mean=-1.0, actor__entropy=lambda step: 1 / step)
    app = make.app(make.run(attempts=[steps]))
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "a l")
        reward, _, entropy, _ = charts(app)
        assert "no value above 0" in " ".join(reward.split())
        assert "0.02│" in entropy


async def test_fit_ends_the_axis_at_the_data(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "f")
        assert [chart.splitlines()[-1][-2:] for chart in charts(app)] == ["62"] * 4
        await pressed(pilot, "f")
        assert all(chart.splitlines()[-1].endswith("70") for chart in charts(app))


async def test_before_the_first_step_the_keys_do_nothing(make: SimpleNamespace) -> None:
    app = make.app(make.run(state=make.running(state="starting", step=None)))
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "left", "plus", "comma", "minus", "right")
        assert view(app) == View() and isinstance(app.screen, DashboardScreen)


async def test_pinned_charts_share_the_view_and_carry_flags(make: SimpleNamespace, warned: Path) -> None:
    toggle("actor/kl_loss")
    app = make.app(warned)
    async with app.run_test(size=LARGE) as pilot:
        await pressed(pilot, "left")
        pin = charts(app)[-1]
        assert "at 62:" in pin and pin.lstrip().startswith("▲ actor/kl_loss")
        assert "▲" in pin.splitlines()[-1]  # where it rose


async def test_one_metric_has_the_same_keys(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "m", "enter", "a s", "left", "left")
        assert isinstance(app.screen, MetricScreen)
        assert "at 61: " in charts(app)[0] and "average" in charts(app)[0] and "smoothed 0.6" in told(app)
        title = charts(app)[0].split()[0]
        await pressed(pilot, "down")
        assert charts(app)[0].split()[0] != title and view(app).cursor == 61
        await pressed(pilot, "escape")
        assert isinstance(app.screen, MetricScreen) and view(app).cursor is None
        await pressed(pilot, "escape")
        assert isinstance(app.screen, MetricsScreen)


async def test_the_view_goes_along_to_the_page_of_a_metric_and_back(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, "plus", "a s", "a x")
        looked = view(app)
        await pressed(pilot, "m", "enter")
        assert isinstance(app.screen, MetricScreen) and view(app) == looked
        assert "smoothed 0.6" in told(app) and "by time" in told(app)
        await pressed(pilot, "asterisk", "a l", "escape", "escape")
        assert isinstance(app.screen, DashboardScreen)
        assert view(app) == View(log=True) and "log scale" in told(app)
        assert all(chart.plot.log for chart in app.screen.query(MetricChart) if chart.region.area)


@pytest.mark.parametrize("keys", [("left", "plus"), ("a s", "a x", "a l"), ("f", "a x", "a x", "left")])
async def test_every_size_survives_every_view(make: SimpleNamespace, warned: Path, keys: tuple[str, ...]) -> None:
    toggle("actor/entropy")
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await pressed(pilot, *keys)
        for size in [(250, 80), (160, 48), (121, 36), (119, 36), (80, 23), (64, 17), (40, 12), (29, 9), (20, 5)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            for chart in app.screen.query(MetricChart):
                assert len(text(chart).splitlines()) in (chart.size.height, 0)
            await pressed(pilot, "left", "comma")

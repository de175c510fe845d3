"""The keys of the charts, on the dashboard and on the page of one metric."""

import pytest
from pilots import words

from launcher.metrics.names import toggle
from tui.kit.charts.view import TIME, TOKENS, View
from tui.kit.drawing.line_chart import GUTTER


def charts(user):
    """What every visible chart shows."""
    return [words(chart.draw(*chart.size)) for chart in user.screen.query("MetricChart") if chart.region.area]


def told(user):
    return user.drawn("ViewLine") if user.one("ViewLine").region.area else ""


def view(user):
    return user.screen.lens.view


async def test_the_cursor_tells_the_values_of_every_chart_at_its_step(make, warned):
    async with make.open(warned) as user:
        before, rows = charts(user), [chart.region for chart in user.screen.query("MetricChart")]
        assert told(user).split() == ["▲", "flag", "○", "validation"]
        await user("left")
        assert view(user).cursor == 62 and all("at 62: " in chart for chart in charts(user))
        assert "step 62 · 2m" in told(user) and "tokens" in told(user)
        await user("left", "left")
        assert view(user).cursor == 58
        await user("right")
        assert view(user).cursor == 60
        await user("escape", "DashboardScreen")
        assert charts(user) == before and "step 62" not in told(user)
        assert [chart.region for chart in user.screen.query("MetricChart")] == rows
        await user("down", "left", "escape")  # takes the cursor before the chosen check
        assert view(user).cursor is None and user.one("Checklist").chosen is not None
        assert "❯" in user.drawn("Checklist")


async def test_zoom_pan_fit_smoothing_and_back(make, warned):
    async with make.open(warned) as user:
        await user("plus")
        assert view(user).window == (31, 66) and "steps 31–66" in told(user)
        assert all(chart.splitlines()[-1][GUTTER:].startswith("31─") for chart in charts(user))
        await user("comma")
        assert view(user).window == (13, 48)
        await user("full_stop", "equals_sign")
        assert view(user).window[1] - view(user).window[0] == 18
        await user("minus", "minus", "minus")
        assert view(user).window is None
        await user("plus", "a s", "a l", "a x", "left", "0")
        assert view(user) != View()  # digits change nothing
        await user("asterisk")
        assert view(user) == View() and "view" not in told(user)
        await user("plus", "plus", "plus", *["left"] * 13)  # the window follows the cursor
        found = view(user)
        assert found.cursor == found.window[0] < 52 and found.window[1] - found.window[0] == 9
        await user(*["right"] * 70)
        assert view(user).cursor == 62  # the last step that was trained
        await user("asterisk", "f")
        assert [chart.splitlines()[-1][-2:] for chart in charts(user)] == ["62"] * 4
        await user("f")
        assert all(chart.splitlines()[-1].endswith("70") for chart in charts(user))
        seen = []
        for _ in range(4):
            await user("a s")
            seen.append(view(user).smoothing)
        assert seen == [0.6, 0.9, 0.97, 0.0]
        await user("a s", "a s")
        assert "smoothed 0.9" in told(user)
        plot = user.screen.query("MetricChart").first().plot
        assert [curve.role for curve in plot.curves] == ["raw", "curve", "point"]
        await user("asterisk", "a x")
        assert view(user).across == TIME
        assert [chart.splitlines()[-1][-6:] for chart in charts(user)] == ["2m 30s"] * 4
        await user("a x")
        assert view(user).across == TOKENS and all(chart.endswith("k") for chart in charts(user))
        await user("a x")
        assert view(user) == View()


@pytest.mark.parametrize("page", [(), ("m", "enter")])
async def test_the_cursor_goes_ten_steps_to_the_ends_and_to_a_step(make, warned, page):
    async with make.open(warned) as user:
        await user(*page)
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
            await user(*keys)
            assert view(user).cursor == cursor, keys


async def test_an_axis_or_a_scale_that_a_run_has_no_figures_for_is_refused(make):
    steps = make.made_up(30, critic__score__mean=-1.0, actor__entropy=lambda step: 1 / step)
    async with make.open(make.run(attempts=[steps])) as user:
        await user("a x", "a x")
        assert view(user).across == "step" and user.message.count("perf/total_num_tokens") == 1
        await user("a l")
        reward, _, entropy, _ = charts(user)
        assert "no value above 0" in " ".join(reward.split()) and "0.02│" in entropy


async def test_before_the_first_step_the_keys_do_nothing(make):
    async with make.open(make.run(state=make.running(state="starting", step=None))) as user:
        await user("left", "plus", "comma", "minus", "right", "DashboardScreen")
        assert view(user) == View()


async def test_the_view_goes_along_to_the_page_of_a_metric_and_back(make, warned):
    async with make.open(warned) as user:
        await user("plus", "a s", "a x")
        looked = view(user)
        await user("m", "enter", "MetricScreen")
        assert view(user) == looked and "smoothed 0.6" in told(user) and "by time" in told(user)
        await user("asterisk", "a s", "left", "left")
        (chart,) = charts(user)
        assert "at 61: " in chart and "average" in chart and "smoothed 0.6" in told(user)
        await user("down")
        assert charts(user)[0].split()[0] != chart.split()[0] and view(user).cursor == 61
        await user("escape", "MetricScreen")
        assert view(user).cursor is None
        await user("asterisk", "a l", "escape", "MetricsScreen", "escape", "DashboardScreen")
        assert view(user) == View(log=True) and "log scale" in told(user)
        assert all(chart.plot.log for chart in user.screen.query("MetricChart") if chart.region.area)


@pytest.mark.nightly("tui/kit/", "tui/pages/dashboard/", every=3)
@pytest.mark.parametrize("keys", [("left", "plus"), ("a s", "a x", "a l"), ("f", "a x", "a x", "left")])
async def test_every_size_survives_every_view(make, warned, keys):
    toggle("actor/entropy")
    async with make.open(warned) as user:
        await user(*keys)
        for size in [(250, 80), (160, 48), (121, 36), (119, 36), (80, 23), (64, 17), (40, 12), (29, 9), (20, 5)]:
            await user.resize_terminal(*size)
            await user()
            for chart in user.screen.query("MetricChart"):
                assert len(chart.draw(*chart.size)) in (chart.size.height, 0)
            await user("left", "comma")


@pytest.mark.parametrize(
    ("size", "theme", "keys"),
    [
        ((80, 24), "dark", ["a s", "a s", "left", "left", "plus"]),
        ((80, 24), "light", ["a x", "a l"]),
        ((160, 48), "dark", ["a s", "a x", "a x", "left"]),
        ((50, 18), "dark", ["f", "left"]),
        ((80, 24), "dark", ["m", "enter", "a s", "a s", "left", "left"]),
    ],
    ids=["zoomed", "light", "large", "narrow", "metric"],
)
def test_charts_through_a_view(shot, make, warned, size, theme, keys):
    assert shot(make.app(warned, theme=theme), *keys, size=size)

"""All metrics: the table, the filter, the large chart, and what is pinned to the dashboard."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import message
from textual.pilot import Pilot
from textual.widgets import Input

from launcher.core.format import number
from launcher.core.paths import layout_file
from launcher.metrics.names import pinned, toggle
from tui.app import PpoTui
from tui.kit.widgets.chart_widgets import MetricChart, PinnedCharts
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import MetricTable
from tui.kit.widgets.painted import Painted
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.metrics.metric import MetricScreen
from tui.pages.metrics.screen import MetricsScreen

HOME, LARGE = (80, 24), (160, 48)
SIZES = [HOME, LARGE]
Compare = Callable[..., bool]


async def opened(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.press(*keys)
    await pilot.pause()


def text(widget: Painted) -> str:
    return "\n".join("".join(part for part, _ in row) for row in widget.draw(*widget.size))


def table(app: PpoTui) -> MetricTable:
    return app.screen.query_one(MetricTable)


def lines(app: PpoTui, name: str) -> str:
    return text(app.screen.query_one(name, Lines))


def charts(app: PpoTui) -> list[str]:
    return [chart.plot.title for chart in app.screen.query(MetricChart) if chart.region.area]


async def test_every_metric_is_listed_with_its_figures_and_meaning(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "m")
        assert isinstance(app.screen, MetricsScreen)
        keys = app.screen.reader.series.keys()
        assert list(table(app).keys) == keys and len(keys) > 80
        assert f"metric ({len(keys)})" in lines(app, "#heads")
        first = text(table(app)).splitlines()[0]
        series = app.screen.reader.series.get("actor/entropy")
        assert series is not None
        low, high = min(series.values), max(series.values)
        assert first.startswith("❯ actor/entropy") and " nats " in first
        assert number(low) in first and number(high) in first and any("⠀" < sign <= "⣿" for sign in first)
        assert "uncertainty of the policy per token" in lines(app, "#meaning")
        await pilot.press("end")
        await pilot.pause()
        assert table(app).cursor == keys[-1]
        assert text(table(app)).splitlines()[-1].startswith("❯")
        assert keys[-1] in lines(app, "#meaning")
        await pilot.press("m")
        assert isinstance(app.screen, DashboardScreen)


async def test_a_few_letters_find_a_metric(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "m", "down", "slash", *"agn")
        assert table(app).cursor == "actor/grad_norm"
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MetricScreen)
        assert charts(app) == ["actor/grad_norm"]
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert isinstance(app.screen, MetricsScreen)
        assert table(app).has_focus and app.screen.query_one(Input).value == ""
        assert len(table(app).keys) > 80
        await pilot.press("escape")
        assert isinstance(app.screen, DashboardScreen)


async def test_units_and_meanings_are_searched_and_nothing_found_is_said(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "m", "slash", *"perplexity")
        assert table(app).keys and all(key.startswith("rollout_corr/") for key in table(app).keys)
        app.screen.query_one(Input).value = ""
        await pilot.press("t", "o", "k", "slash", "s")
        await pilot.pause()
        assert table(app).cursor == "perf/throughput"
        await pilot.press(*" qqqq")
        await pilot.pause()
        assert "None matches the filter" in text(table(app))
        await pilot.press("enter", "p", "enter")  # nothing is chosen: nothing happens
        assert isinstance(app.screen, MetricsScreen) and pinned() == []
        page = app.screen
        await pilot.press("escape", "escape")
        assert app.screen is not page and await app.run_action("filter", page)  # from a menu, too late


async def test_the_large_chart_tells_its_figures(make: SimpleNamespace) -> None:
    steps = make.made_up(30, actor__loss=lambda step: math.nan if step == 30 else step / 4, mine=1)
    app = make.app(make.run(attempts=[steps]))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "m", "enter")
        facts = lines(app, "#facts")
        assert "now nan" in facts and "lowest 0.250" in facts and "highest 7.25" in facts
        assert "steps 1 to 30, 30 values" in facts and "total loss of the actor" in facts
        await pilot.press("down")
        await pilot.pause()
        assert charts(app) == ["mine"]
        assert "logged by veRL or your reward function" in lines(app, "#facts")


async def test_figures_that_are_never_finite_are_shown_as_such(make: SimpleNamespace) -> None:
    steps = make.made_up(30, actor__grad_norm=math.nan, actor__loss=math.inf)
    app = make.app(make.run(attempts=[steps]))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "m")
        rows = text(table(app)).splitlines()
        assert rows[0].split() == ["❯", "actor/grad_norm", "nan"]
        assert rows[1].split() == ["actor/loss", "inf"]
        await pilot.press("enter")
        await pilot.pause()
        assert "no finite value yet" in text(app.screen.query_one(MetricChart))


async def test_a_pin_is_a_chart_on_every_dashboard(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=LARGE) as pilot:
        await opened(pilot)
        assert len(charts(app)) == 6
        await pilot.press("m", "p", "down", "enter", "p", "escape", "escape")
        await pilot.pause()
        assert pinned() == ["actor/entropy", "actor/grad_norm"]
        assert charts(app)[6:] == ["actor/entropy", "actor/grad_norm"]
    again = make.app(warned)
    async with again.run_test(size=LARGE) as pilot:
        await opened(pilot)
        assert charts(again)[6:] == ["actor/entropy", "actor/grad_norm"]
        await pilot.press("m")
        await pilot.pause()
        assert text(table(again)).splitlines()[0].startswith("❯★actor/entropy")
        await pilot.press("p", "escape")
        await pilot.pause()
        assert charts(again)[6:] == ["actor/grad_norm"]


async def test_at_home_size_tab_turns_to_the_pins(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "tab")
        four = charts(app)
        assert len(four) == 4  # nothing is pinned: tab does nothing
        for key in ("critic/vf_loss", "not/logged", "training/off_policy/trajectory_staleness/mean"):
            toggle(key)
        await pilot.press("m", "escape")
        await pilot.pause()
        assert charts(app) == four
        await pilot.press("tab")
        await pilot.pause()
        assert charts(app)[:2] == ["critic/vf_loss", "not/logged"] and len(charts(app)) == 3
        shown = app.screen.query(PinnedCharts).first().query(MetricChart)
        assert "not logged" in text(shown[1])
        assert "…" in shown[2].plot.title and text(shown[2]).splitlines()[0].rstrip().endswith(" 0")
        await pilot.press("tab")
        await pilot.pause()
        assert charts(app) == four


async def test_pins_survive_every_size(make: SimpleNamespace, warned: Path) -> None:
    for key in ("actor/loss", "critic/loss", "actor/lr", "critic/lr"):
        toggle(key)
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "tab")
        for size in ((20, 5), (29, 40), (40, 12), (60, 20), (100, 48), LARGE, (250, 80), HOME):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert charts(app) == ["actor/loss", "critic/loss", "actor/lr", "critic/lr"]
        await pilot.press("m")
        for size in ((20, 5), (30, 8), (43, 12), (59, 20), (250, 80)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert "★actor/loss" in text(table(app))


async def test_a_layout_that_cannot_be_written_is_told(make: SimpleNamespace, warned: Path) -> None:
    layout_file().mkdir(parents=True)
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "m", "p")
        assert "Cannot save the layout" in message(app)


async def test_a_name_from_a_log_cannot_draw_on_the_terminal(make: SimpleNamespace) -> None:
    steps = make.made_up(5, critic__score__mean=1)
    for record in steps:
        record.data["mine\x1b[31m\nred"] = 1.0
    app = make.app(make.run(attempts=[steps]))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "m", "down", "p")
        assert "\x1b" not in text(table(app)) + lines(app, "#meaning")
        assert len(text(table(app)).splitlines()) == 2
        await pilot.press("enter")
        await pilot.pause()
        assert "\x1b" not in text(app.screen.query_one(MetricChart))


async def test_the_screen_follows_the_run(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "m", "end")
        before = table(app).cursor
        record = make.recorded(63)[-1]
        record.data["zebra"] = 7.0
        with (warned / "attempts/1/steps.jsonl").open("ab") as file:
            file.write(record.to_line())
        await pilot.pause(2.2)
        assert table(app).keys[-1] == "zebra" and table(app).cursor == before


@pytest.mark.parametrize("size", SIZES)
def test_the_table_looks(snap_compare: Compare, make: SimpleNamespace, warned: Path, size: tuple[int, int]) -> None:
    toggle("critic/score/mean")

    async def show(pilot: Pilot[Any]) -> None:
        await opened(pilot, "m", "slash", *"mean", "enter", "down")

    assert snap_compare(make.app(warned), terminal_size=size, run_before=show)


@pytest.mark.parametrize("size", SIZES)
def test_the_large_chart_looks(
    snap_compare: Compare, make: SimpleNamespace, warned: Path, size: tuple[int, int]
) -> None:
    async def show(pilot: Pilot[Any]) -> None:
        await opened(pilot, "m", "down", "enter")

    assert snap_compare(make.app(warned), terminal_size=size, run_before=show)


def test_pins_look(snap_compare: Compare, make: SimpleNamespace, warned: Path) -> None:
    for key in ("actor/grad_norm", "critic/vf_explained_var", "response_length/mean", "timing_s/gen"):
        toggle(key)

    async def show(pilot: Pilot[Any]) -> None:
        await opened(pilot, "tab")

    assert snap_compare(make.app(warned), terminal_size=HOME, run_before=show)


def test_the_table_in_ascii(snap_compare: Compare, make: SimpleNamespace, warned: Path) -> None:
    async def show(pilot: Pilot[Any]) -> None:
        await opened(pilot, "m")

    assert snap_compare(make.app(warned, ascii=True), terminal_size=HOME, run_before=show)

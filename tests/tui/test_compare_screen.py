"""Runs side by side on the screen."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import assert_fits, message, until
from terminal import Terminal
from textual.pilot import Pilot

from launcher.record.layout import RunDir
from tui.entry import main
from tui.kit.drawing.rows import width
from tui.kit.widgets.chart_widgets import MetricChart
from tui.pages.compare.compare_rows import contrast_lines, difference_lines
from tui.pages.compare.screen import CompareScreen
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.runs.screen import RunsScreen

HOME = (80, 24)
Compare = Callable[..., bool]


async def ready(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def seen(app: Any) -> str:
    return str(app.export_screenshot()).replace("&#160;", " ")


@pytest.fixture
def runs(make: SimpleNamespace) -> list[Path]:
    long = make.run(hex_id="a0", attempts=[make.recorded(80)], state=make.ended("finished", step=80))
    short = make.run(hex_id="b1", name="gsm8k", attempts=[make.recorded(30)], state=make.running(step=30, created=1.0))
    third = make.run(
        hex_id="c2",
        name="kl",
        state=make.ended("failed", step=20, verdict="CRITICAL", created=2.0),
        attempts=[
            make.made_up(
                20,
                critic__score__mean=lambda n: n / 40,
                actor__ppo_kl=0.1,
                critic__kl=lambda n: n / 9,
                perf__throughput=900,
            )
        ],
    )
    for run, lr, words in ((long, 1e-6, "one"), (short, 3e-6, "two")):
        make.write_info(run, preset={"actor": {"lr": lr}, "data": {"train_batch_size": 64}, "description": words})
    return [long, short, third]


async def test_each_run_has_its_sign_its_facts_and_its_curve(make: SimpleNamespace, runs: list[Path]) -> None:
    app = make.app(compare=runs)
    async with app.run_test(size=HOME) as pilot:
        await ready(pilot)
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        charts = [screen.query_one(f"#chart-{index}", MetricChart).plot for index in range(4)]
        assert [[curve.sign for curve in chart.curves] for chart in charts] == [
            ["1", "2", "3"],
            ["1", "2", "3"],
            ["1", "2"],
            ["1", "2", "3"],
        ]
        assert [curve.role for curve in charts[0].curves] == ["curve", "curve-2", "curve-3"]
        assert charts[0].last == 80 and "different metrics" in charts[1].title
        text = seen(app)
        assert "━1" in text and "━3" in text and "CRITICAL" in text and "0.500" in text


async def test_the_settings_that_differ_are_a_tab_away(make: SimpleNamespace, runs: list[Path]) -> None:
    app = make.app(compare=runs[:2])
    async with app.run_test(size=HOME) as pilot:
        await ready(pilot)
        assert "actor.lr" not in seen(app)
        await pilot.press("tab")
        await pilot.pause()
        text = seen(app)
        assert "actor.lr" in text and "1e-6" in text and "3e-6" in text
        assert "train_batch_size" not in text and "throughput" not in text
        assert (
            "2 against 1" in text and "equal" in text and "holds for these two runs only" in text
        )  # the same recording
        await pilot.resize_terminal(160, 48)
        await pilot.pause()
        assert "actor.lr" in seen(app) and "throughput" in seen(app)


async def test_charts_are_moved_together_and_escape_goes_back_in_steps(make: SimpleNamespace, runs: list[Path]) -> None:
    app = make.app(compare=runs)
    async with app.run_test(size=HOME) as pilot:
        await ready(pilot)
        await pilot.press("left", "a", "x", "a", "s", "plus")
        await pilot.pause()
        assert "step 80" in seen(app) and "smoothed" in seen(app) and "by time" in seen(app)
        chart = app.screen.query_one("#chart-0", MetricChart).plot
        assert all(curve.axis is not None for curve in chart.curves) and chart.cursor == 80
        await pilot.press("escape")
        assert isinstance(app.screen, CompareScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen)


async def test_c_on_the_dashboard_compares_with_the_run_before_or_the_marked_ones(
    make: SimpleNamespace, runs: list[Path]
) -> None:
    app = make.app(runs[0])
    async with app.run_test(size=HOME) as pilot:
        await ready(pilot)
        await pilot.press("c")
        await ready(pilot)
        assert isinstance(app.screen, CompareScreen) and app.screen.directories == [runs[0], runs[2]]
        await pilot.press("c")
        await pilot.pause()
        assert isinstance(app.screen, DashboardScreen)
        app.routes.marked[:] = [runs[1], runs[0], runs[2]]
        await pilot.press("c")
        await ready(pilot)
        assert app.screen.directories == [runs[0], runs[1], runs[2]]


@pytest.mark.slow
def test_the_command_opens_it_on_a_terminal_and_prints_elsewhere(runs: list[Path]) -> None:
    words = [sys.executable, "-c", f"from {main.__module__} import main; main()"]
    words += ["compare", runs[0].name, runs[2].name]
    terminal = Terminal(words, {**os.environ, "TERM": "xterm-256color"})
    try:
        assert "━2" in terminal.wait_for(lambda text: "throughput" in text)
        terminal.pump(2.0)
        before = len(terminal.raw)
        terminal.pump(5.0)
        assert len(terminal.raw) == before  # ended runs: two looks at the files, and nothing to paint
        terminal.send("c")
        terminal.wait_for(lambda text: "Start a new run" in text)
    finally:
        terminal.close()
    printed = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL)
    assert "s/step" in printed.stdout and "\x1b" not in printed.stdout


async def test_alone_there_is_nothing_to_compare_with(make: SimpleNamespace) -> None:
    app = make.app(make.run())
    async with app.run_test(size=HOME) as pilot:
        await ready(pilot)
        await pilot.press("c")
        await pilot.pause()
        assert isinstance(app.screen, DashboardScreen)
        assert "No older run" in message(app)


async def test_a_live_run_goes_on(make: SimpleNamespace, runs: list[Path]) -> None:
    app = make.app(compare=runs[1:])
    async with app.run_test(size=HOME) as pilot:
        await ready(pilot)
        with RunDir(runs[1]).attempt(1).steps.open("ab") as file:
            file.writelines(record.to_line() for record in make.recorded(44)[31:])
        chart = app.screen.query_one("#chart-0", MetricChart)
        await until(pilot, lambda: chart.plot.curves[0].points.steps[-1] == 44)


def test_wild_settings_stay_in_their_columns() -> None:
    from launcher.compare.comparison import Compared
    from launcher.runs.watch.run_settings import Difference

    runs = [SimpleNamespace(run=SimpleNamespace(id=f"{n}abc")) for n in range(4)]
    wild: list[Compared] = runs  # type: ignore[assignment]
    found = [
        Difference("actor_rollout_ref.rollout.engine_kwargs" * 3, ["x" * 500, None, 1e-6, "漢" * 90]),
        Difference("env.A", ["\x1b[2J\nb", "a\tb", [], {}]),
    ]
    for columns in (20, 79, 159):
        for row in difference_lines(wild, found, ["a note " * 40], columns):
            assert width(row) <= max(columns, 40)
            assert not any("\x1b" in text or "\n" in text for text, _ in row)


@pytest.mark.parametrize("size", [(250, 80), (40, 12), (20, 5), (3, 2)])
async def test_it_fits_any_terminal(make: SimpleNamespace, runs: list[Path], size: tuple[int, int]) -> None:
    app = make.app(compare=runs)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await pilot.press(*([] if size[0] == 250 else ["tab"]), "down", "left")  # there a large screen has one page
        assert_fits(app, *(["? help"] if size[0] >= 40 else []))


def test_contrasts_fit_any_width() -> None:
    from launcher.compare.contrast import Contrast

    found = [
        Contrast("reward", 1, 2, (5001, 10000), (-1234.5, 1.5e-7), -0.1, -99999.5, 1e-9, result="inconclusive"),
        Contrast("validation", 1, 8, (1, 2), (None, 0.5), reason="not logged by both groups in these steps"),
    ]
    for columns in (20, 79, 159):
        for row in contrast_lines(found, ["taken for granted " * 9], columns):
            assert width(row) <= max(columns, 90 if columns < 79 else 79)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_looks(snap_compare: Compare, make: SimpleNamespace, runs: list[Path], size: tuple[int, int]) -> None:
    assert snap_compare(make.app(compare=runs), terminal_size=size, run_before=ready)

"""Runs side by side on the screen."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from terminal import Terminal

from launcher.compare.contrast import Contrast
from launcher.record.layout import RunDir
from launcher.runs.watch.run_settings import Difference
from tui.entry import main
from tui.kit.drawing.rows import width
from tui.pages.compare.compare_rows import contrast_lines, difference_lines


async def ready(user):
    await user("CompareScreen", "...", "...")


@pytest.fixture
def runs(make):
    long = make.run(hex_id="a0", attempts=[make.recorded(80)], state=make.ended("finished", step=80))
    short = make.run(hex_id="b1", name="gsm8k", attempts=[make.recorded(30)], state=make.running(step=30, created=1.0))
    kl = {"critic__score__mean": lambda n: n / 40, "actor__ppo_kl": 0.1, "critic__kl": lambda n: n / 9}
    state = make.ended("failed", step=20, verdict="CRITICAL", created=2.0)
    third = make.run(hex_id="c2", name="kl", state=state, attempts=[make.made_up(20, perf__throughput=900, **kl)])
    for run, lr, words in ((long, 1e-6, "one"), (short, 3e-6, "two")):
        make.write_info(run, preset={"actor": {"lr": lr}, "data": {"train_batch_size": 64}, "description": words})
    return [long, short, third]


async def test_each_run_has_its_sign_its_facts_and_its_curve_and_charts_move_together(make, runs):
    async with make.open(compare=runs) as user:
        await ready(user)
        charts = [user.one(f"#chart-{index}").plot for index in range(4)]
        signs = [[curve.sign for curve in chart.curves] for chart in charts]
        assert signs == [["1", "2", "3"], ["1", "2", "3"], ["1", "2"], ["1", "2", "3"]]
        assert [curve.role for curve in charts[0].curves] == ["curve", "curve-2", "curve-3"]
        assert charts[0].last == 80 and "different metrics" in charts[1].title
        for part in ("━1", "━3", "CRITICAL", "0.500"):
            assert part in user.seen
        await user("left", "a", "x", "a", "s", "plus")
        for part in ("step 80", "smoothed", "by time"):
            assert part in user.seen
        chart = user.one("#chart-0").plot
        assert all(curve.axis is not None for curve in chart.curves) and chart.cursor == 80
        with RunDir(runs[1]).attempt(1).steps.open("ab") as file:
            file.writelines(record.to_line() for record in make.recorded(44)[31:])
        await user("escape", "CompareScreen", lambda: user.one("#chart-0").plot.curves[1].points.steps[-1] == 44)
        await user("escape", "RunsScreen")


async def test_the_settings_that_differ_are_a_tab_away(make, runs):
    async with make.open(compare=runs[:2]) as user:
        await ready(user)
        assert "actor.lr" not in user.seen
        await user("tab")
        text = user.seen
        assert "actor.lr" in text and "1e-6" in text and "3e-6" in text
        assert "train_batch_size" not in text and "throughput" not in text
        for part in ("2 against 1", "equal", "holds for these two runs only"):  # the same recording
            assert part in text
        await user.resize_terminal(160, 48)
        await user()
        assert "actor.lr" in user.seen and "throughput" in user.seen


async def test_c_on_the_dashboard_compares_with_the_run_before_or_the_marked_ones(make, runs):
    async with make.open(runs[0]) as user:
        await user("c")
        await ready(user)
        assert user.screen.directories == [runs[0], runs[2]]
        await user("c", "DashboardScreen")
        user.app.routes.marked[:] = [runs[1], runs[0], runs[2]]
        await user("c")
        await ready(user)
        assert user.screen.directories == [runs[0], runs[1], runs[2]]


@pytest.mark.slow
def test_the_command_opens_it_on_a_terminal_and_prints_elsewhere(runs):
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


async def test_alone_there_is_nothing_to_compare_with(make):
    async with make.open(make.run()) as user:
        await user("c", "DashboardScreen", lambda: "No older run" in user.message)


def test_wild_settings_stay_in_their_columns():
    wild = [SimpleNamespace(run=SimpleNamespace(id=f"{n}abc")) for n in range(4)]
    found = [
        Difference("actor_rollout_ref.rollout.engine_kwargs" * 3, ["x" * 500, None, 1e-6, "漢" * 90]),
        Difference("env.A", ["\x1b[2J\nb", "a\tb", [], {}]),
    ]
    figures = ((5001, 10000), (-1234.5, 1.5e-7), -0.1, -99999.5, 1e-9)
    contrasts = [
        Contrast("reward", 1, 2, *figures, result="inconclusive"),
        Contrast("validation", 1, 8, (1, 2), (None, 0.5), reason="not logged by both groups in these steps"),
    ]
    for columns in (20, 79, 159):
        for row in difference_lines(wild, found, ["a note " * 40], columns):
            assert width(row) <= max(columns, 40)
            assert not any("\x1b" in text or "\n" in text for text, _ in row)
        for row in contrast_lines(contrasts, ["taken for granted " * 9], columns):
            assert width(row) <= max(columns, 90 if columns < 79 else 79)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_looks(shot, make, runs, size):
    assert shot(make.app(compare=runs), "...", size=size)

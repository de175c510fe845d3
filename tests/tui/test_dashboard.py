"""The dashboard on real run directories: it follows, degrades, refuses, and paints little."""

import dataclasses
import math
import shutil
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import assert_fits, drawn, until
from textual.geometry import Region
from textual.pilot import Pilot

from launcher.preset.files import load
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import RunDir
from launcher.record.process import ProcessId
from launcher.record.state import RunState, current
from launcher.runs.watch.reader import RunReader
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.drawing.plot import Plot
from tui.kit.widgets.chart_widgets import MemoryChart, MetricChart
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.log_tail import LogTail
from tui.kit.widgets.painted import Painted
from tui.pages.dashboard.checklist import Checklist
from tui.pages.dashboard.head_lines import Banner, ProgressLine
from tui.pages.dashboard.startup import StartupList

HOME = (80, 24)


async def opened(pilot: Pilot[Any]) -> None:
    """Waits until the run has been read and drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_a_live_run_shows_all_it_has(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert "toy-cpu · 7f3a" in drawn(app, HeaderLine)
        assert "▲ WARN KL-4" in drawn(app, HeaderLine)
        assert "step 62/80" in drawn(app, ProgressLine)
        assert ["best" in drawn(app, MetricChart, 0), "usual" in drawn(app, MetricChart, 1)] == [True, True]
        assert "Saving checkpoint to" in drawn(app, LogTail)
        assert not app.screen.query_one(Banner).display


async def test_a_run_that_is_not_read_yet_has_no_state(make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first frame of a run that has ended once said `queued · not judged`."""
    read, poll = threading.Event(), RunReader.poll

    def slowly(reader: RunReader) -> set[str]:
        read.wait()
        return poll(reader)

    monkeypatch.setattr(RunReader, "poll", slowly)
    app = make.app(make.run(attempts=[make.recorded(3)], state=make.ended("finished")))
    async with app.run_test(size=HOME) as pilot:
        await pilot.pause()
        try:
            assert drawn(app, HeaderLine) == " reading the run …"
            assert [drawn(app, kind).strip() for kind in (ProgressLine, Checklist)] == ["", ""]
        finally:
            read.set()
        await opened(pilot)
        assert "✔ finished" in drawn(app, HeaderLine)


async def test_a_new_step_is_followed_and_paints_few_cells(
    make: SimpleNamespace, warned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    painted: list[Region] = []
    plain = Painted.refresh

    def counted(self: Painted, *regions: Region, **more: bool) -> Painted:
        if isinstance(self, MetricChart):
            painted.extend(regions or [self.size.region])
        plain(self, *regions, **more)
        return self

    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        monkeypatch.setattr(Painted, "refresh", counted)
        attempt = RunDir(warned).attempt(1)
        with attempt.steps.open("ab") as file:
            file.write(make.recorded(63)[-1].to_line())
        make.write_state(warned, make.running(step=63, verdict="WARN", flags=("KL-4",)))
        await until(pilot, lambda: "step 63/80" in drawn(app, ProgressLine))
        assert 0 < sum(region.area for region in painted) < 4 * 40


async def test_charts_are_drawn_again_for_what_they_tell_of_the_state_only(
    make: SimpleNamespace, warned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        shown: list[MetricChart] = []
        plain = MetricChart.show

        def counted(self: MetricChart, plot: Plot) -> None:
            shown.append(self)
            plain(self, plot)

        monkeypatch.setattr(MetricChart, "show", counted)
        state = current(RunDir(warned))
        make.write_state(warned, dataclasses.replace(state, step=62, eta=37.0, phase="update"))
        await until(pilot, lambda: "37s" in drawn(app, ProgressLine))
        assert shown == []
        flagged = make.checks(ENT_1=("CRITICAL", "entropy 0.01"))
        make.write_state(warned, dataclasses.replace(state, eta=36.0, checks=flagged))
        await until(pilot, lambda: "✖" in drawn(app, MetricChart, 2))
        assert shown != []


async def test_nothing_is_painted_while_nothing_changes(
    make: SimpleNamespace, warned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        painted: list[Painted] = []
        monkeypatch.setattr(Painted, "refresh", lambda self, *_, **__: painted.append(self))
        for beat in range(3):  # the supervisor's sign of life alone
            make.write_state(warned, dataclasses.replace(current(RunDir(warned)), heartbeat=time.time() + beat))
            await pilot.pause(1.05)
        assert painted == []


async def test_a_start_shows_its_stages_then_the_charts(make: SimpleNamespace) -> None:
    starting = make.running(state="starting", phase="engine", step=None, phase_since=make.start + 180, checks=())
    preset = load("gsm8k-0.5b-24gb", ["rollout.enforce_eager=false"]).snapshot()
    run = make.run(state=starting, log=make.log, preset=preset)
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert "shorter next time: set rollout.enforce_eager=true (now false)" in drawn(app, StartupList)
        assert "starting the rollout engine  3m 20s" in drawn(app, ProgressLine)
        assert "engine            running                  20s" in drawn(app, StartupList)
        assert not app.screen.query_one("#charts").display
        assert not app.screen.query_one(LogTail).display
        await pilot.resize_terminal(160, 48)
        await until(pilot, lambda: app.screen.query_one(StartupList).size.height > 36)
        await pilot.resize_terminal(20, 5)
        await pilot.resize_terminal(*HOME)
        with RunDir(run).attempt(1).steps.open("ab") as file:
            file.writelines(record.to_line() for record in make.recorded(3))
        make.write_state(run, make.running(step=3))
        await until(pilot, lambda: app.screen.query_one("#charts").display)
        assert not app.screen.query_one(StartupList).display


async def test_a_resumed_attempt_starts_beside_the_charts_of_the_one_before(make: SimpleNamespace) -> None:
    run = make.run(attempts=[make.recorded(62)], state=make.ended("stopped"))
    second = RunDir(run).attempt(2)
    second.path.mkdir()
    LaunchRecord(created=make.start + 900, resume_step=60).write(second.launch)
    make.write_state(
        run, make.running(state="starting", attempt=2, phase="ray", step=None, started=make.start + 900, checks=())
    )
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert app.screen.query_one("#charts").display
        assert "Ray" in drawn(app, StartupList)
        assert "first step" in drawn(app, StartupList)


async def test_a_run_that_failed_before_its_first_step_shows_the_stage(make: SimpleNamespace) -> None:
    app = make.app(make.run(state=make.ended("failed", step=None, phase="model"), log=make.log))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert "models            ended here" in drawn(app, StartupList)
        assert "ended while loading the models" in drawn(app, ProgressLine)


@pytest.mark.parametrize("size", [HOME, (160, 48)])
async def test_after_the_first_step_the_screen_is_that_of_one_who_attaches_then(
    make: SimpleNamespace, size: tuple[int, int]
) -> None:
    starting = make.running(state="starting", phase="engine", step=None, phase_since=make.start, checks=())
    run, axes = make.run(state=starting, log=make.log), []
    app = make.app(run)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        with RunDir(run).attempt(1).steps.open("ab") as file:
            file.writelines(record.to_line() for record in make.recorded(3))
        make.write_state(run, make.running(step=3))
        await until(pilot, lambda: "step 3/80" in drawn(app, ProgressLine))
        await pilot.pause()
        axes.append(app.export_screenshot().count("│"))
    app = make.app(run)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        axes.append(app.export_screenshot().count("│"))
    assert axes[0] == axes[1] > 10


async def test_a_failed_run_says_why(make: SimpleNamespace) -> None:
    why = "the GPU ran out of memory while the engine woke up: lower rollout.gpu_memory_utilization (now 0.6)"
    run = make.run(attempts=[make.recorded(30)], state=make.ended("failed", step=30, error=why))
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert " ".join(drawn(app, Banner).split()) == f"✖ {why}"
        assert not app.screen.active_bindings["x"].enabled  # nothing is left to stop


@pytest.mark.parametrize("state", ["stopped", "finished", "imported", "lost"])
async def test_each_end_is_told(make: SimpleNamespace, state: str) -> None:
    run = make.run(attempts=[make.recorded(30)], state=make.ended(state))
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert state in drawn(app, HeaderLine) and state not in drawn(app, Banner), "the head has it once"


async def test_a_lost_run_is_derived_from_its_dead_supervisor(make: SimpleNamespace) -> None:
    gone = dataclasses.replace(make.running().supervisor, started=1.0, ticks=1)  # of another process of its pid
    process = subprocess.Popen(["sleep", "100"], start_new_session=True)  # as the driver is started
    try:
        driver = ProcessId.of(process.pid)
        assert driver is not None
        state = make.running(supervisor=gone, driver=driver)
        app = make.app(make.run(attempts=[make.recorded(30)], state=state))
        async with app.run_test(size=HOME) as pilot:
            await opened(pilot)
            assert "? lost" in drawn(app, HeaderLine)
            await pilot.press("x")  # its driver still lives: it can be stopped
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("what", ["warned", "failed", "starting", "empty", "nan"])
async def test_no_size_is_too_small(make: SimpleNamespace, warned: Path, what: str) -> None:
    nan = make.made_up(9, critic__score__mean=math.nan, actor__entropy=math.inf, perf__throughput=-math.inf)
    runs = {
        "warned": lambda: warned,
        "failed": lambda: make.run(hex_id="a1", state=make.ended("failed", error="out of memory " * 30)),
        "starting": lambda: make.run(hex_id="a2", state=make.running(state="starting", step=None, checks=())),
        "empty": lambda: make.run(hex_id="a3", state=RunState("queued", created=0.0)),
        "nan": lambda: make.run(hex_id="a4", attempts=[nan], state=make.running(step=9)),
    }
    app = make.app(runs[what]())
    sizes = [
        (250, 80),
        (160, 48),
        (120, 36),
        (80, 24),
        (80, 17),
        (63, 24),
        (40, 12),
        (60, 8),
        (29, 24),
        (20, 5),
        (2, 2),
    ]
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        for size in [*sizes, *reversed(sizes)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert_fits(app, *(["toy-cpu"] if size[0] >= 63 and size[1] >= 17 else []))


async def test_what_gives_way_in_a_small_terminal(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)

    def charts() -> list[bool]:
        return [bool(chart.region) and chart.is_on_screen for chart in app.screen.query(MetricChart)]

    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        seen = {}
        for size in [(160, 48), (80, 24), (80, 12), (50, 24), (50, 12), (80, 8), (20, 5)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            seen[size] = sum(charts())
        assert seen == {(160, 48): 6, (80, 24): 4, (80, 12): 2, (50, 24): 2, (50, 12): 1, (80, 8): 0, (20, 5): 0}
        assert "running" in drawn(app, HeaderLine)
        assert "step 62/80" in " ".join(drawn(app, HeaderLine).split())


async def test_a_window_that_grows_shows_the_memory_of_a_run_that_rests(make: SimpleNamespace) -> None:
    app = make.app(make.run(attempts=[make.recorded(50)], state=make.ended("imported", step=50)))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.resize_terminal(120, 36)
        await pilot.pause()
        assert app.screen.query_one(MemoryChart).plot.curves


async def test_two_thousand_steps_open_and_draw(make: SimpleNamespace) -> None:
    steps = make.made_up(2000, critic__score__mean=lambda s: 1 - math.exp(-s / 400), actor__entropy=0.4)
    app = make.app(make.run(attempts=[steps], state=make.running(step=2000, total=2000)))
    async with app.run_test(size=(160, 48)) as pilot:
        await opened(pilot)
        assert "0.993" in drawn(app, MetricChart, 0)


async def test_untrusted_text_is_drawn_as_it_is(make: SimpleNamespace) -> None:
    evil = "[red]markup[/] [link=x]y \x1b[2J\x1b]0;title\x07 end"
    state = make.ended("failed", error=evil, checks=make.checks(KL_1=("WARN", evil)))
    app = make.app(make.run(name="we[ird", attempts=[make.recorded(9)], state=state, log=evil + "\n"))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        for key in ("h", "h", "l", "l", "escape"):
            await pilot.press(key)
            await pilot.pause(0.1)
        picture = app.export_screenshot()
        assert "\x1b" not in picture and "\x07" not in picture


async def test_a_run_that_disappears_is_lost_and_the_screen_stays(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        shutil.rmtree(warned)
        await until(pilot, lambda: "lost" in drawn(app, HeaderLine))


async def test_what_a_killed_writer_leaves_is_survived(make: SimpleNamespace, warned: Path) -> None:
    run = RunDir(warned)
    for path in (run.events, run.machine, run.attempt(1).steps, run.attempt(1).console):
        with path.open("ab") as file:
            file.write(b"\xff\x00\n{}\n" + b"x" * 100_000 + b'\n{"step": 63, "data": null}\n{"half')
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert "running" in drawn(app, HeaderLine)


@pytest.mark.parametrize(
    "look", [{"theme": "light"}, {"theme": "ansi-dark"}, {"theme": "nord"}, {"ascii": True}, {"NO_COLOR": "1"}]
)
async def test_every_look_draws(
    make: SimpleNamespace, warned: Path, monkeypatch: pytest.MonkeyPatch, look: dict[str, Any]
) -> None:
    if "NO_COLOR" in look:
        monkeypatch.setenv("NO_COLOR", look.pop("NO_COLOR"))
    app = make.app(warned, **look)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        picture = app.export_screenshot()
        assert "reward" in picture
        assert ("⣀" in picture) != bool(look.get("ascii"))


@pytest.mark.parametrize(("outcome", "words"), [("running", "waiting for the first step"), ("failed", "ended before")])
def test_a_log_without_a_step_has_ended_only_where_its_end_is_known(outcome: str, words: str) -> None:
    line = ProgressLine()
    line.state = RunState("imported", outcome=outcome)
    assert words in line.draw(80, 1)[0][0][0]

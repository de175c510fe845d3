"""The dashboard on real run directories: it follows, degrades, refuses, and paints little."""

import dataclasses
import shutil
import subprocess
import threading
import time

import pytest
from pilots import User

from launcher.preset.files import load
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import RunDir
from launcher.record.process import ProcessId
from launcher.record.state import RunState, TrackedRun, current
from launcher.runs.watch.reader import RunReader
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.painted import Painted
from tui.pages.dashboard.head_lines import ProgressLine
from tui.pages.dashboard.room import CHART, SHARES, TIMING, share

LINK = "https://wandb.ai/me/gsm8k/runs/ab"
TRACKERS = (TrackedRun("wandb", LINK), TrackedRun("swanlab", folder="/x", command="swanlab sync /x"))


async def test_a_run_that_is_not_read_yet_has_no_state(make, monkeypatch):
    """The first frame of a run that has ended once said `queued · not judged`."""
    read, poll = threading.Event(), RunReader.poll
    monkeypatch.setattr(RunReader, "poll", lambda reader: read.wait() and poll(reader))
    app = make.app(make.run(attempts=[make.recorded(3)], state=make.ended("finished")))
    async with app.run_test():
        user = User(app)
        try:
            assert user.drawn("HeaderLine") == " reading the run …"
            assert [user.drawn(kind).strip() for kind in ("ProgressLine", "Checklist")] == ["", ""]
        finally:
            read.set()
        await user("...")
        assert "✔ finished" in user.drawn("HeaderLine")


async def test_a_live_run_is_followed_and_paints_few_cells(make, warned, monkeypatch):
    painted, shown, state = [], [], current(RunDir(warned))
    refresh, show = Painted.refresh, MetricChart.show

    def refreshed(self, *regions, **more):
        painted.append((self, sum(region.area for region in regions or [self.size.region])))
        return refresh(self, *regions, **more)

    async with make.open(warned) as user:
        header, progress = user.drawn("HeaderLine"), user.drawn("ProgressLine")
        assert "toy-cpu · 7f3a" in header and "▲ WARN KL-4" in header and "step 62/80" in progress
        assert ["best" in user.drawn("MetricChart", 0), "usual" in user.drawn("MetricChart", 1)] == [True, True]
        assert "Saving checkpoint to" in user.drawn("LogTail") and not user.one("Banner").display
        monkeypatch.setattr(Painted, "refresh", refreshed)
        monkeypatch.setattr(MetricChart, "show", lambda self, plot: shown.append(self) or show(self, plot))
        for beat in range(3):  # the supervisor's sign of life alone
            make.write_state(warned, dataclasses.replace(state, heartbeat=time.time() + beat))
            await user.pause(1.05)
        assert painted == []
        make.write_state(warned, dataclasses.replace(state, eta=37.0, phase="update"))
        await user(lambda: "37s" in user.drawn("ProgressLine"))
        assert shown == [], "no chart shows the phase"
        with RunDir(warned).attempt(1).steps.open("ab") as file:
            file.write(make.recorded(63)[-1].to_line())
        make.write_state(warned, make.running(step=63, verdict="WARN", flags=("KL-4",)))
        await user(lambda: "step 63/80" in user.drawn("ProgressLine"))
        assert 0 < sum(area for widget, area in painted if isinstance(widget, MetricChart)) < 4 * 40
        shown.clear()
        flagged = make.checks(ENT_1=("CRITICAL", "entropy 0.01"))
        make.write_state(warned, dataclasses.replace(state, step=63, eta=36.0, checks=flagged))
        await user(lambda: "✖" in user.drawn("MetricChart", 2))
        assert shown != []
        shutil.rmtree(warned)
        await user(lambda: "lost" in user.drawn("HeaderLine"))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_start_shows_its_stages_then_the_charts_as_one_who_attaches_then_sees_them(make, size):
    starting = make.running(state="starting", phase="engine", step=None, phase_since=make.start + 180, checks=())
    preset = load("gsm8k-0.5b-24gb", ["rollout.enforce_eager=false"]).snapshot()
    run = make.run(state=starting, log=make.log, preset=preset)
    async with make.open(run, size=size) as user:
        stages = user.drawn("StartupList")
        assert "shorter next time: set rollout.enforce_eager=true (now false)" in stages
        assert "starting the rollout engine  3m 20s" in user.drawn("ProgressLine")
        assert "engine            running                  20s" in stages
        assert not user.one("#charts").display and not user.one("LogTail").display
        await user.resize_terminal(20, 5)
        await user.resize_terminal(160, 48)
        await user(lambda: user.one("StartupList").size.height > 36)
        await user.resize_terminal(*size)
        with RunDir(run).attempt(1).steps.open("ab") as file:
            file.writelines(record.to_line() for record in make.recorded(3))
        make.write_state(run, make.running(step=3))
        await user(lambda: "step 3/80" in user.drawn("ProgressLine") and user.one("#charts").display, "...")
        assert not user.one("StartupList").display
        axes = [user.seen.count("│")]
    async with make.open(run, size=size) as user:
        axes.append(user.seen.count("│"))
    assert axes[0] == axes[1] > 10


async def test_a_resumed_attempt_starts_beside_the_charts_of_the_one_before(make):
    run = make.run(attempts=[make.recorded(62)], state=make.ended("stopped"))
    second = RunDir(run).attempt(2)
    second.path.mkdir()
    LaunchRecord(created=make.start + 900, resume_step=60).write(second.launch)
    begun = {"attempt": 2, "phase": "ray", "step": None, "started": make.start + 900, "checks": ()}
    make.write_state(run, make.running(state="starting", **begun))
    async with make.open(run) as user:
        assert user.one("#charts").display
        assert "Ray" in user.drawn("StartupList") and "first step" in user.drawn("StartupList")


async def test_a_run_that_failed_before_its_first_step_shows_the_stage(make):
    async with make.open(make.run(state=make.ended("failed", step=None, phase="model"), log=make.log)) as user:
        assert "models            ended here" in user.drawn("StartupList")
        assert "ended while loading the models" in user.drawn("ProgressLine")


@pytest.mark.parametrize("state", ["stopped", "finished", "imported", "lost", "failed"])
async def test_each_end_is_told_once(make, state):
    why = "the GPU ran out of memory while the engine woke up" if state == "failed" else None
    run = make.run(attempts=[make.recorded(30)], state=make.ended(state, step=30, error=why))
    async with make.open(run) as user:
        head, banner = user.drawn("HeaderLine"), " ".join(user.drawn("Banner").split())
        assert state in head and state not in banner and (why is None or banner == f"✖ {why}")
        assert not user.screen.active_bindings["x"].enabled or state == "lost"  # nothing is left to stop
        assert not user.one("TrackerLine").size
        await user("a", "k", lambda: "No tracker" in user.message)
        assert not user.app.clipboard


async def test_a_lost_run_is_derived_from_its_dead_supervisor(make):
    gone = dataclasses.replace(make.running().supervisor, started=1.0, ticks=1)  # of another process of its pid
    process = subprocess.Popen(["sleep", "100"], start_new_session=True)  # as the driver is started
    try:
        state = make.running(supervisor=gone, driver=ProcessId.of(process.pid))
        async with make.open(make.run(attempts=[make.recorded(30)], state=state)) as user:
            assert "? lost" in user.drawn("HeaderLine")
            await user("x", "ConfirmScreen")  # its driver still lives: it can be stopped
    finally:
        process.kill()
        process.wait()


async def test_what_gives_way_in_a_small_terminal(make, warned):
    async with make.open(warned) as user:
        seen = {}
        for size in [(160, 48), (80, 24), (80, 12), (50, 24), (50, 12), (80, 8), (20, 5)]:
            await user.resize_terminal(*size)
            await user()
            seen[size] = sum(bool(chart.region) and chart.is_on_screen for chart in user.screen.query("MetricChart"))
        assert seen == {(160, 48): 6, (80, 24): 4, (80, 12): 2, (50, 24): 2, (50, 12): 1, (80, 8): 0, (20, 5): 0}
        assert "running" in user.drawn("HeaderLine") and "step 62/80" in " ".join(user.drawn("HeaderLine").split())


async def test_untrusted_text_is_drawn_as_it_is(make):
    evil = "[red]markup[/] [link=x]y \x1b[2J\x1b]0;title\x07 end"
    state = make.ended("failed", error=evil, checks=make.checks(KL_1=("WARN", evil)))
    async with make.open(make.run(name="we[ird", attempts=[make.recorded(9)], state=state, log=f"{evil}\n")) as user:
        assert "[red]markup[/]" in " ".join(user.drawn("Banner").split())
        await user("h", "h", "l", "l", 0.1)
        picture = user.app.export_screenshot()
        assert "\x1b" not in picture and "\x07" not in picture


async def test_what_a_killed_writer_leaves_is_survived(make, warned):
    run = RunDir(warned)
    for path in (run.events, run.machine, run.attempt(1).steps, run.attempt(1).console):
        with path.open("ab") as file:
            file.write(b"\xff\x00\n{}\n" + b"x" * 100_000 + b'\n{"step": 63, "data": null}\n{"half')
    async with make.open(warned) as user:
        assert "running" in user.drawn("HeaderLine")


@pytest.mark.parametrize("look", [{"theme": "ansi-dark"}, {"theme": "nord"}, {"NO_COLOR": "1"}])
async def test_every_look_draws(make, warned, monkeypatch, look):
    if "NO_COLOR" in look:
        monkeypatch.setenv("NO_COLOR", look.pop("NO_COLOR"))
    async with make.open(warned, **look) as user:
        assert "reward" in user.seen and "⣀" in user.seen


@pytest.mark.parametrize(("outcome", "words"), [("running", "waiting for the first step"), ("failed", "ended before")])
def test_a_log_without_a_step_has_ended_only_where_its_end_is_known(outcome, words):
    line = ProgressLine()
    line.state = RunState("imported", outcome=outcome)
    assert words in line.draw(80, 1)[0][0][0]


async def test_the_dashboard_shows_the_link_of_a_tracker_and_copies_it(make):
    async with make.open(make.run(attempts=[make.recorded(12)], state=make.running(trackers=TRACKERS))) as user:
        assert user.drawn("TrackerLine").split() == ["wandb", LINK, "a", "k", "copies", "it", "·", "+1"]
        await user("a", "k")
        assert user.app.clipboard == LINK and f"Copied: wandb {LINK}" in user.message
        await user.resize_terminal(160, 48)
        await user()
        assert "swanlab sync /x" in user.drawn("TrackerLine")
        await user.resize_terminal(20, 5)
        await user()
        assert not user.one("TrackerLine").size


async def test_the_import_dialog_takes_a_folder_of_events(make, home, tmp_path):
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path / "my board"))
    summary = Summary(value=[Summary.Value(tag="critic/score/mean", simple_value=0.5)])
    writer.add_event(Event(step=4, wall_time=1_795_000_000.0, summary=summary))
    writer.close()
    async with make.open() as user:
        await user("RunsScreen", "i", "PasteScreen")
        user.one("TextArea").insert(f"{tmp_path}/my board")
        await user("f2", "DashboardScreen", lambda: user.screen.reader is not None)
        assert user.screen.reader.state.step == 4


@pytest.mark.parametrize("height", SHARES)
@pytest.mark.parametrize("lines", [0, 1, 9])
def test_more_rows_never_take_rows_from_the_charts(height, lines):
    left = []
    for free in range(10, 60):
        found = share(SHARES[height], free, 2, lines=lines, timed=True)
        left.append(free - found.checks - found.log - TIMING * found.timing)
        assert found.log <= max(lines, 1) and found.checks >= 1
    assert all(rows >= min(left[-1], 2 * CHART) for rows in left[20:])


def test_charts_get_their_rows_before_air_log_and_checks():
    roomy = share(SHARES["-tall"], 41, 2, lines=6, timed=True)
    assert roomy == SHARES["-tall"][0]
    crowded = share(SHARES["-tall"], 25, 3, lines=6, timed=True)
    assert not crowded.air and 25 - crowded.checks - crowded.log - TIMING * crowded.timing >= 3 * CHART
    assert share(SHARES["-tall"], 29, 2, lines=0, timed=False).log == 1
    assert share(SHARES["-home"], 18, 2, lines=9, timed=False) == SHARES["-home"][0]
    assert share(SHARES["-home"], 15, 2, lines=9, timed=False).checks == 2

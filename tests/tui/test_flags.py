"""From a flag to its explanation, its mute and its fix; and the events of a run."""

import dataclasses
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import assert_fits, message, until
from textual.containers import VerticalScroll
from textual.pilot import Pilot

from launcher.record.check import Bound, Check
from launcher.record.events import Action, Alert, DriverExit, Event, LevelChange, Note, PhaseChange, StateChange, What
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.state import RunState, current
from launcher.runs.act.import_logs import import_logs
from tui.app import PpoTui
from tui.kit.charted import ViewLine
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import Items
from tui.kit.widgets.painted import Painted
from tui.pages.checks.check import CheckDetailScreen
from tui.pages.checks.screen import ChecksScreen
from tui.pages.dashboard.checklist import Checklist
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.events.screen import EventsScreen

LOGS = Path(__file__).parent.parent / "data" / "logs"
HOME, LARGE = (80, 24), (160, 48)


async def opened(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def text(widget: Painted) -> str:
    rows = widget.draw(*widget.size)
    return "\n".join("".join(part for part, _ in row) for row in rows)


def page(app: PpoTui) -> str:
    return text(app.screen.query_one("#inspected-rows", Lines))


def head(app: PpoTui) -> str:
    return text(app.screen.query_one("#inspected-head", Lines))


@pytest.fixture
def blown(home: Path) -> Path:
    """A real run whose KL climbed, imported."""
    run = import_logs([str(LOGS / "kl-blowup.log.gz")])[0].path
    return Path(shutil.move(run, run.with_name("7f3a1c-kl-blowup")))


async def test_enter_explains_the_worst_check(make: SimpleNamespace, blown: Path) -> None:
    app = make.app(blown)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter")
        await opened(pilot)
        assert isinstance(app.screen, CheckDetailScreen)
        assert "✖ CRITICAL   Unrewarded drift" in head(app)
        assert "since step 17 · KL-4 · 1/49" in head(app)
        assert "e lower actor.lr from 1e-4 to 2e-5" in page(app)
        assert "The reward is only reliable" in " ".join(page(app).split())
        assert "step 11     ▲ WARN" in page(app) and "step 17     ✖ CRITICAL" in page(app)
        shown = [chart for chart in app.screen.query(MetricChart) if chart.display]
        assert [chart.plot.title for chart in shown] == ["actor/reward_kl_penalty", "critic/score/mean"]
        assert [(mark.step, mark.sign) for mark in shown[0].plot.marks] == [(11, "▲"), (17, "✖")]
        await pilot.press("escape")
        assert isinstance(app.screen, DashboardScreen)


async def test_the_charts_of_a_check_have_the_keys_of_all_charts(make: SimpleNamespace, blown: Path) -> None:
    app = make.app(blown)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter")
        await opened(pilot)
        await pilot.press("number_sign", "1", "2", "enter")
        await opened(pilot)
        chart = app.screen.query(MetricChart).first(MetricChart)
        assert chart.plot.cursor == 12 and "step 12" in text(app.screen.query_one(ViewLine))
        for key, step in (("left", 11), ("home", 0), ("shift+right", 10), ("end", 27)):
            await pilot.press(key)
            assert chart.plot.cursor == step
        await pilot.press("escape")
        assert chart.plot.cursor is None and isinstance(app.screen, CheckDetailScreen)


async def test_a_stall_report_has_the_whole_screen(make: SimpleNamespace, blown: Path) -> None:
    """STALL-1 has no chart, so that its page may take the room of one."""
    (RunDir(blown).path / "attempts/1/stall.txt").write_text("\n".join(f"frame {n}" for n in range(30)))
    app = make.app(blown)
    async with app.run_test(size=LARGE) as pilot:
        await opened(pilot)
        app.push_screen(CheckDetailScreen(app.screen.view, "STALL-1"))
        await opened(pilot)
        room = app.screen.query_one(VerticalScroll)
        assert "frame 29" in page(app) and room.region.bottom == 47 and not room.max_scroll_y


async def test_the_limits_of_a_rule_are_on_its_chart(make: SimpleNamespace, blown: Path) -> None:
    app = make.app(blown)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter", "right_square_bracket")
        await opened(pilot)
        assert "KL-1" in head(app)
        chart = app.screen.query(MetricChart).first(MetricChart)
        assert {limit.label.split()[0] for limit in chart.plot.limits} == {"WARN", "CRITICAL"}
        assert "CRITICAL > 0.300 " in text(chart) and "WARN > 0.076 ╌" in text(chart)  # where they rose
        assert "✖ CRITICAL > 0.300, clears at 0.240" in page(app)
        await pilot.press("left_square_bracket", "left_square_bracket")  # from the first to the last
        assert "49/49" in head(app)


async def test_a_check_is_chosen_on_the_dashboard(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        listed = app.screen.query_one(Checklist)
        assert "❯" not in text(listed)
        for _ in range(6):
            await pilot.press("down")
        assert sum(line.startswith("❯") for line in text(listed).splitlines()) == 1
        assert "1 more WARN" in text(listed)  # the worst has scrolled out
        sixth = listed.chosen
        await pilot.press("enter")
        assert isinstance(app.screen, CheckDetailScreen) and app.screen.rule == sixth
        await pilot.press("escape", "escape")
        assert listed.chosen == "KL-4" and "❯" not in text(listed)


async def test_the_list_of_checks_has_a_cursor_that_stays_in_sight(make: SimpleNamespace, blown: Path) -> None:
    app = make.app(blown)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("h")
        assert isinstance(app.screen, ChecksScreen)
        await pilot.press("end")
        items = app.screen.query_one(Items)
        assert "more OK" in text(items) and "Reward drop" not in text(items)
        await pilot.press("enter")
        assert "Reward drop" in text(items)
        await pilot.press("end")
        await pilot.pause()
        row = next(y for y, line in enumerate(text(items).splitlines()) if line.startswith("❯"))
        assert items.region.y + row < 23
        last = items.cursor
        await pilot.press("enter")
        assert isinstance(app.screen, CheckDetailScreen) and app.screen.rule == last
        await pilot.press("backspace")
        assert isinstance(app.screen, ChecksScreen) and items.cursor == last


async def test_m_mutes_and_takes_it_back(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter", "M")
        sent = [json.loads(path.read_text()) for path in RunDir(warned).control.iterdir()]
        assert [(s["verb"], s["rule"], s["by"]) for s in sent] == [("mute", "KL-4", "screen")]
        state = current(RunDir(warned))
        muted = tuple(dataclasses.replace(check, muted=check.rule == "KL-4") for check in state.checks)
        make.write_state(warned, dataclasses.replace(state, checks=muted))
        await until(pilot, lambda: "muted" in head(app))
        await pilot.press("M")
        verbs = {json.loads(path.read_text())["verb"] for path in RunDir(warned).control.iterdir()}
        assert verbs == {"mute", "unmute"}


async def test_a_disk_that_takes_no_request_is_told(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    RunDir(warned).control.rmdir()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter", "M")
        await until(pilot, lambda: "Cannot send the request" in message(app))


@pytest.mark.parametrize(
    ("key", "kind", "sentence"),
    [
        ("M", "watched", "Read-only"),
        ("M", "ended", "has ended"),
        ("e", "watched", "Read-only"),
        ("e", "unknown", "contains no settings"),
    ],
)
async def test_what_cannot_be_done_is_refused(
    make: SimpleNamespace, warned: Path, blown: Path, key: str, kind: str, sentence: str
) -> None:
    if kind == "unknown":
        make.write_info(blown, preset=None)
    app = make.app(warned if kind == "watched" else blown, read_only=kind == "watched")
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter", key)
        await pilot.pause()
        assert sentence in message(app)
        assert list(RunDir(warned).control.iterdir()) == []


async def test_limits_follow_a_live_run(make: SimpleNamespace) -> None:
    """They are in the row of the check, which the supervisor writes anew with each step."""

    def limited(value: float) -> RunState:
        check = Check("ENT-1", level=Level.OK, keys=("actor/entropy",), bounds=(Bound(Level.WARN, "<", value),))
        state: RunState = make.running(checks=(check,))
        return state

    run = make.run(attempts=[make.recorded(62)], state=limited(0.2))
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter")
        await opened(pilot)
        chart = app.screen.query(MetricChart).first(MetricChart)
        assert "▲ WARN < 0.200" in page(app) and [limit.value for limit in chart.plot.limits] == [0.2]
        make.write_state(run, limited(0.3))
        await until(pilot, lambda: "▲ WARN < 0.300" in page(app))
        assert "0.200" not in page(app) and [limit.value for limit in chart.plot.limits] == [0.3]


@pytest.mark.parametrize("log", ["nan", "learning", "cpu-toy"])
async def test_every_check_of_a_real_run_has_a_page_at_any_size(make: SimpleNamespace, home: Path, log: str) -> None:
    run = import_logs([str(LOGS / f"{log}.log.gz")])[0].path
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter")
        await opened(pilot)
        for size in [HOME, LARGE, (50, 12), (20, 5), HOME]:
            await pilot.resize_terminal(*size)
            for _ in range(31 if size == HOME else 3):
                await pilot.press("right_square_bracket")
                assert "Meaning" in page(app)
            assert_fits(app)


ROSE = "KL rose by 0.12 in 20 steps while the reward changed by 0.01"
EVENTS: list[tuple[int, What]] = [  # seconds since the start
    (0, StateChange("queued", "starting")),
    (20, PhaseChange("engine")),
    (45, StateChange("starting", "running")),
    (100, LevelChange(57, "KL-4", Level.OK, Level.WARN, ROSE)),
    (102, Alert("on_alert: curl failed with exit code 7: no route to host")),
    (90000, LevelChange(70, "KL-4", Level.WARN, Level.CRITICAL, "KL rose by 0.3")),
    (90010, Action("mute", by="screen", rule="LEN-1")),
    (90100, LevelChange(78, "KL-4", Level.CRITICAL, Level.OK, "KL fell")),
    (90200, Action("stop", by="screen")),
    (90206, DriverExit(143, "SIGTERM", "screen")),
    (90207, Note("a process would not die: \x1b[2Jpython 77")),
    (90208, StateChange("stopping", "stopped")),
]


@pytest.fixture
def eventful(make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stopped run with one event of each kind, over two days, in UTC."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    events = [Event(make.start + seconds, what) for seconds, what in EVENTS]
    run: Path = make.run(
        attempts=[make.recorded(80)], state=make.ended("stopped", step=80), events=events, log=make.log
    )
    return run


async def test_events_are_told_newest_first_with_times_and_days(make: SimpleNamespace, eventful: Path) -> None:
    app = make.app(eventful)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("v")
        assert isinstance(app.screen, EventsScreen)
        lines = text(app.screen.query_one(Items)).splitlines()
        assert lines[0].strip() == "Sunday 22 November 2026" and "■ stopped" in lines[1]
        assert any("70  ✖ CRITICAL" in line and "KL rose by 0.3 (was WARN)" in line for line in lines)
        words = " ".join(" ".join(lines).split())
        assert "■ exit the driver exited with code 143 (SIGTERM), requested from the screen" in words
        assert any("mute" in line and "LEN-1 from the screen" in line for line in lines)
        assert "\x1b" not in "".join(lines)
        days = [line.strip() for line in lines if "November" in line]
        assert days == ["Sunday 22 November 2026", "Saturday 21 November 2026"]


async def test_events_can_be_narrowed_and_explained(make: SimpleNamespace, eventful: Path) -> None:
    app = make.app(eventful)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("v", "right")
        items = app.screen.query_one(Items)
        assert all("KL-4" in line for line in text(items).splitlines() if ":" in line[:6])
        await pilot.press("enter")
        assert isinstance(app.screen, CheckDetailScreen) and app.screen.rule == "KL-4"
        await pilot.press("escape", "left", "left")
        assert "stop" in text(items) and "KL-4" not in text(items)
        await pilot.press("v")
        assert isinstance(app.screen, DashboardScreen)


async def test_events_come_in_live_and_the_cursor_stays_on_its_own(make: SimpleNamespace, eventful: Path) -> None:
    app = make.app(eventful)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("v", "down")
        items = app.screen.query_one(Items)
        chosen = items.cursor
        make.add_events(eventful, Event(make.start + 90300, Note("one more")))
        await until(pilot, lambda: "one more" in text(items))
        assert items.cursor == chosen


async def test_a_thousand_events_are_bounded(make: SimpleNamespace, eventful: Path) -> None:
    make.add_events(eventful, *(Event(make.start + 90300 + index, Note("n")) for index in range(1000)))
    app = make.app(eventful)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("v", "end")
        await pilot.pause()
        assert "512 older events in events.jsonl" in text(app.screen.query_one(Items))


Compare = Any


@pytest.mark.parametrize(
    ("keys", "size"),
    [(["enter", "right_square_bracket"], HOME), (["h", "down"], HOME), (["h", "down"], LARGE)],
    ids=["KL-1-80x24", "list-80x24", "list-160x48"],
)
def test_looks_of_checks(
    snap_compare: Compare, make: SimpleNamespace, blown: Path, size: tuple[int, int], keys: list[str]
) -> None:
    async def pressed(pilot: Pilot[Any]) -> None:
        await opened(pilot)
        await pilot.press(*keys)
        await opened(pilot)

    assert snap_compare(make.app(blown), terminal_size=size, run_before=pressed)


@pytest.mark.parametrize("size", [HOME, LARGE], ids=["80x24", "160x48"])
def test_looks_of_events(snap_compare: Compare, make: SimpleNamespace, eventful: Path, size: tuple[int, int]) -> None:
    async def pressed(pilot: Pilot[Any]) -> None:
        await opened(pilot)
        await pilot.press("v", "down")
        await opened(pilot)

    assert snap_compare(make.app(eventful), terminal_size=size, run_before=pressed)

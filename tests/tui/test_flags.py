"""From a flag to its explanation, its mute and its fix; and the events of a run."""

import dataclasses
import json
import re
import shutil
import time
from pathlib import Path

import golden
import pytest
from pilots import assert_fits, words

from launcher.health.catalogue import rules
from launcher.record.check import Bound, Check
from launcher.record.events import Action, Alert, DriverExit, Event, LevelChange, Note, PhaseChange, StateChange
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.state import current
from launcher.runs.act.import_logs import import_logs
from tui.pages.checks.check import CheckDetailScreen
from tui.pages.dashboard.checklist import check_row

LOGS = Path(__file__).parent.parent / "data" / "logs"
LARGE = (160, 48)


def page(user):
    return words(user.one("#inspected-rows").draw(*user.one("#inspected-rows").size))


def head(user):
    return words(user.one("#inspected-head").draw(*user.one("#inspected-head").size))


@pytest.fixture
def blown(home):
    """A real run whose KL climbed, imported."""
    run = import_logs([str(LOGS / "kl-blowup.log.gz")])[0].path
    return Path(shutil.move(run, run.with_name("7f3a1c-kl-blowup")))


async def test_enter_explains_the_worst_check_with_its_charts_and_limits(make, blown):
    (blown / "attempts/1/stall.txt").write_text("\n".join(f"frame {n}" for n in range(30)))
    async with make.open(blown) as user:
        await user("enter", "CheckDetailScreen", "...")
        assert "since step 17 · KL-4 · 1/49" in head(user) and "e lower actor.lr from 1e-4 to 5e-6" in page(user)
        shown = [chart for chart in user.screen.query("MetricChart") if chart.display]
        assert [chart.plot.title for chart in shown] == ["actor/reward_kl_penalty", "critic/score/mean"]
        assert [(mark.step, mark.sign) for mark in shown[0].plot.marks] == [(11, "▲"), (17, "✖")]
        await user("number_sign", "1", "2", "enter", "...")
        assert shown[0].plot.cursor == 12 and "step 12" in user.drawn("ViewLine")
        for key, step in (("left", 11), ("home", 0), ("shift+right", 10), ("end", 27)):
            await user(key)
            assert shown[0].plot.cursor == step
        await user("escape", "CheckDetailScreen")
        assert shown[0].plot.cursor is None
        await user("right_square_bracket", "...")
        chart = user.screen.query("MetricChart").first()
        assert "KL-1" in head(user) and {limit.label.split()[0] for limit in chart.plot.limits} == {"WARN", "CRITICAL"}
        drawn = user.drawn("MetricChart")
        assert "CRITICAL > 0.300 " in drawn and "WARN > 0.076 " in drawn  # where they rose
        assert "✖ CRITICAL > 0.300, clears ≤ 0.240" in page(user)
        await user("left_square_bracket", "left_square_bracket")  # from the first to the last
        assert "49/49" in head(user)
        await user("escape", "DashboardScreen")
        await user.resize_terminal(*LARGE)
        user.app.push_screen(CheckDetailScreen(user.screen.view, "STALL-1"))  # it has no chart and takes its room
        await user("...")
        room = user.one("VerticalScroll")
        assert "frame 29" in page(user) and room.region.bottom == 47 and not room.max_scroll_y


async def test_a_check_is_chosen_on_the_dashboard(make, warned):
    async with make.open(warned) as user:
        listed = user.one("Checklist")
        assert "❯" not in user.drawn("Checklist")
        await user(*["down"] * 6)
        assert sum(line.startswith("❯") for line in user.drawn("Checklist").splitlines()) == 1
        assert "1 more WARN" in user.drawn("Checklist")  # the worst has scrolled out
        sixth = listed.chosen
        await user("enter", "CheckDetailScreen")
        assert user.screen.rule == sixth
        await user("escape", "escape")
        assert listed.chosen == "KL-4" and "❯" not in user.drawn("Checklist")


async def test_the_list_of_checks_has_a_cursor_that_stays_in_sight(make, blown):
    async with make.open(blown) as user:
        await user("h", "ChecksScreen", "end")
        items = user.one("Items")
        assert "more OK" in user.drawn("Items") and "Reward drop" not in user.drawn("Items")
        await user("enter")
        assert "Reward drop" in user.drawn("Items")
        await user("end")
        row = next(y for y, line in enumerate(user.drawn("Items").splitlines()) if line.startswith("❯"))
        last = items.cursor
        assert items.region.y + row < 23
        await user("enter", "CheckDetailScreen")
        assert user.screen.rule == last
        await user("backspace", "ChecksScreen")
        assert items.cursor == last


async def test_m_mutes_and_takes_it_back(make, warned):
    control = RunDir(warned).control
    async with make.open(warned) as user:
        await user("enter", "M")
        sent = [json.loads(path.read_text()) for path in control.iterdir()]
        assert [(s["verb"], s["rule"], s["by"]) for s in sent] == [("mute", "KL-4", "screen")]
        state = current(RunDir(warned))
        muted = tuple(dataclasses.replace(check, muted=check.rule == "KL-4") for check in state.checks)
        make.write_state(warned, dataclasses.replace(state, checks=muted))
        await user(lambda: "muted" in head(user), "M")
        assert {json.loads(path.read_text())["verb"] for path in control.iterdir()} == {"mute", "unmute"}
        shutil.rmtree(control)
        await user("M", lambda: "Cannot send the request" in user.message)


REFUSED = ("M watched Read-only", "M ended ended", "e watched Read-only", "e unknown settings")


@pytest.mark.parametrize(("key", "kind", "sentence"), [each.split() for each in REFUSED], ids=REFUSED)
async def test_what_cannot_be_done_is_refused(make, warned, blown, key, kind, sentence):
    if kind == "unknown":
        make.write_info(blown, preset=None)
    async with make.open(warned if kind == "watched" else blown, read_only=kind == "watched") as user:
        await user("enter", key, lambda: sentence in user.message)
        assert list(RunDir(warned).control.iterdir()) == []


async def test_limits_follow_a_live_run(make):
    """They are in the row of the check, which the supervisor writes with each step."""

    def limited(value):
        check = Check("ENT-1", level=Level.OK, keys=("actor/entropy",), bounds=(Bound(Level.WARN, "<", value),))
        return make.running(checks=(check,))

    run = make.run(attempts=[make.recorded(62)], state=limited(0.2))
    async with make.open(run) as user:
        await user("enter", "...")
        for value, before in ((0.2, "0.300"), (0.3, "0.200")):
            make.write_state(run, limited(value))
            await user(lambda value=value: f"▲ WARN < {value:.3f}" in page(user))
            limits = user.screen.query("MetricChart").first().plot.limits
            assert before not in page(user) and [limit.value for limit in limits] == [value]


@pytest.mark.nightly("tui/kit/", "tui/pages/checks/", "launcher/health/", every=3)
@pytest.mark.parametrize("log", ["nan", "learning", "cpu-toy"])
async def test_every_check_of_a_real_run_has_a_page_at_any_size(make, home, log):
    async with make.open(import_logs([str(LOGS / f"{log}.log.gz")])[0].path) as user:
        await user("enter", "...")
        for size in [(80, 24), LARGE, (50, 12), (20, 5)]:
            await user.resize_terminal(*size)
            for _ in range(50 if size == (80, 24) else 3):
                await user.press("right_square_bracket")
                assert "Meaning" in page(user)
            assert_fits(user.app)


ROSE = "KL rose by 0.12 in 20 steps while the reward changed by 0.01"
EVENTS = [  # seconds since the start
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
def eventful(make, monkeypatch):
    """A stopped run with one event of each kind, over two days, in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    events = [Event(make.start + seconds, what) for seconds, what in EVENTS]
    return make.run(attempts=[make.recorded(80)], state=make.ended("stopped", step=80), events=events, log=make.log)


async def test_events_are_told_newest_first_narrowed_explained_and_followed(make, eventful):
    async with make.open(eventful) as user:
        await user("v", "EventsScreen")
        lines = user.drawn("Items").splitlines()
        said = " ".join(user.drawn("Items").split())
        assert lines[0].strip() == "Sunday 22 November 2026" and "■ stopped" in lines[1]
        assert any("70  ✖ CRITICAL" in line and "KL rose by 0.3 (was WARN)" in line for line in lines)
        assert "■ exit the driver exited with code 143 (SIGTERM), requested from the screen" in said
        assert any("mute" in line and "LEN-1 from the screen" in line for line in lines) and "\x1b" not in said
        days = [line.strip() for line in lines if "November" in line]
        assert days == ["Sunday 22 November 2026", "Saturday 21 November 2026"]
        await user("right")
        assert all("KL-4" in line for line in user.drawn("Items").splitlines() if ":" in line[:6])
        await user("enter", "CheckDetailScreen")
        assert user.screen.rule == "KL-4"
        await user("escape", "left", "left")
        assert "stop" in user.drawn("Items") and "KL-4" not in user.drawn("Items")
        await user("v", "DashboardScreen", "v", "EventsScreen", "down")
        chosen = user.one("Items").cursor
        make.add_events(eventful, Event(make.start + 90300, Note("one more")))
        await user(lambda: "one more" in user.drawn("Items"))
        assert user.one("Items").cursor == chosen
        make.add_events(eventful, *(Event(make.start + 90400 + index, Note("n")) for index in range(1000)))
        await user("end", lambda: "513 older events in events.jsonl" in user.drawn("Items"))


@pytest.mark.parametrize(
    ("keys", "size"),
    [(["enter", "right_square_bracket"], (80, 24)), (["h", "down"], (80, 24)), (["h", "down"], LARGE)],
    ids=["KL-1-80x24", "list-80x24", "list-160x48"],
)
def test_looks_of_checks(shot, make, blown, size, keys):
    assert shot(make.app(blown), *keys, "...", size=size)


@pytest.mark.parametrize("size", [(80, 24), LARGE], ids=["80x24", "160x48"])
def test_looks_of_events(shot, make, eventful, size):
    assert shot(make.app(eventful), "v", "down", "...", size=size)


@pytest.mark.parametrize("flags", [2, 12])
async def test_the_chart_and_the_first_fix_of_the_chosen_flag_are_below_few_flags_else_enter_opens_them(make, flags):
    run = import_logs([str(LOGS / "kl-blowup.log.gz")])[0].path
    state = current(RunDir(run))
    levels = [Level.WARN] * flags + [Level.OK] * (len(state.checks) - flags)
    checks = tuple(dataclasses.replace(check, level=level) for check, level in zip(state.checks, levels, strict=True))
    make.write_state(run, dataclasses.replace(state, checks=checks))
    async with make.open(run) as user:
        await user("h", "ChecksScreen", "...")
        assert bool(user.one("Inspector").size) == (flags == 2)
        if flags == 2:
            assert user.one("MetricChart").size.height >= 5 and "lower actor.lr" in user.seen
        await user("enter", "CheckDetailScreen", "...")
        assert "lower actor.lr" in page(user)


def test_level_rule_and_number_of_each_message_of_the_bank_are_whole_at_80_columns():
    lines = "\n".join(golden.stored()["bank"].values()).splitlines()
    found = [re.fullmatch(r"(?:\d+ )?([A-Z]+-\d+) (OK|NOTICE|WARN|CRITICAL): (.*)", line) for line in lines]
    said = {each.groups() for each in found if each and each[1] != "ERR-1"}  # which quotes the log
    assert {level for _, level, _ in said} == {"OK", "NOTICE", "WARN", "CRITICAL"} and len(said) > 1000
    for rule, level, message in said:
        check = Check(rule, rules()[rule].title, Level[level], message)
        core = re.sub("^(clearing|held): ", "", message).partition("; ")[0]
        assert len(core) <= 45 or rule == "NUM-1", message  # which names a metric
        assert level in ("OK", "NOTICE") or re.search(r"\d", core), message
        (row,) = words([check_row(check, 80, len(check.name))]).splitlines()
        assert f"{level:<9}{check.name}" in row and (core in row or message != core), row

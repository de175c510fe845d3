"""What reaches somebody who looks away: message, bell, title, notification; and what was missed."""

import dataclasses
import os
import shutil
import sys
import time

import pytest
from pilots import words
from terminal import Terminal
from waiting import wait_until

from launcher.record.attempt import Exit
from launcher.record.note import last_look, looked
from launcher.record.state import RunState
from launcher.runs.watch.reader import RunReader
from tui.kit import terminal
from tui.pages.dashboard.attention import Notices, title


def notices(run):
    reader = RunReader(run)
    reader.poll()
    return reader, Notices(reader)


def test_each_flag_is_told_once_and_only_when_it_is_new(make, warned):
    reader, told = notices(warned)
    assert told.fresh() == []  # KL-4 was on before anybody looked
    flags = make.rise(63, "ENT-1", "NOTICE", "low"), make.rise(63, "KL-1", "CRITICAL", "KL 3 vs usual 0.1")
    make.add_events(warned, *flags)
    reader.poll()
    (found,) = told.fresh()
    assert found.text == "✖ CRITICAL KL-1 at step 63: KL 3 vs usual 0.1"
    assert (found.severity, found.loud) == ("error", True) and told.fresh() == []
    make.add_events(warned, make.rise(70, "KL-1", "WARN", "KL 1", before="CRITICAL"))  # it falls
    checks = tuple(dataclasses.replace(check, muted=check.rule == "SIG-1") for check in reader.state.checks)
    make.write_state(warned, dataclasses.replace(reader.state, checks=checks))
    make.add_events(warned, make.rise(71, "SIG-1", "CRITICAL", "m"))
    reader.poll()
    assert told.fresh() == []
    rules = ["KL-2", "KL-3", "ENT-2", "REW-1", "NUM-1"]
    make.add_events(warned, *(make.rise(72, rule, "CRITICAL" if rule == "NUM-1" else "WARN", "m") for rule in rules))
    reader.poll()
    found = told.fresh()
    assert [notice.loud for notice in found] == [True, False, False, False]  # warnings are quiet, a flood is short
    assert "NUM-1" in found[0].text and found[-1].text == "and 2 more flags; press v to list them"


@pytest.mark.parametrize(
    ("state", "exit_record", "severity", "loud"),
    [
        ("failed", Exit(1), "error", True),
        ("finished", Exit(0), "information", True),
        ("stopped", Exit(143, requested_by="stop_on: NUM-1 is CRITICAL"), "information", True),
        ("stopped", Exit(143, requested_by="screen"), "information", False),  # that was us
    ],
)
def test_the_end_is_told_once(make, warned, state, exit_record, severity, loud):
    reader, told = notices(warned)
    make.write_state(warned, make.ended(state, exit=exit_record, error="out of memory"))
    reader.poll()
    (found,) = told.fresh()
    assert (found.severity, found.loud) == (severity, loud)
    assert f"toy-cpu {state}" in found.text
    assert told.fresh() == []


async def test_toast_and_bell_as_the_preset_wants(make, warned, monkeypatch):
    make.write_info(warned, preset={"health": {"notify": ["bell"]}})
    app, rings, repainted = make.app(warned), [], []
    monkeypatch.setattr(app, "bell", lambda: rings.append(1))
    async with make.open(app) as user:
        make.add_events(warned, make.rise(63, "KL-1", "CRITICAL", "[red]KL[/] \x1b[2J"))
        await user(lambda: rings)
        assert not user.message and app.title == "▲ WARN KL-4 · running · toy-cpu"
        monkeypatch.setattr(app, "refresh", lambda *regions, **_: repainted.append(regions))
        app.title = "another verdict"
        await user()
        assert repainted == []


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (RunState("running", verdict="WARN", flags=("KL-4", "ENT-1")), "▲ WARN KL-4 · running · x"),
        (RunState("running", verdict="OK", phase="rollout"), "● OK · running · x"),
        (RunState("failed", verdict="CRITICAL", flags=("ERR-1",)), "✖ CRITICAL ERR-1 · failed · x"),
    ],
)
def test_the_title_has_the_verdict_and_the_state(state, expected):
    assert title("x", state) == expected


def test_what_goes_to_the_terminal_cannot_carry_an_escape():
    evil = "a\x1b]0;b\x07c\x9b2Jd\ne\x1b\\f" + "x" * 500
    for made, start in ((terminal.title(evil), "\x1b]2;"), (terminal.notification(evil), "\x1b]9;")):
        body = made.removeprefix(start).removesuffix("\x07")
        assert made == f"{start}{body}\x07" and body.isprintable() and len(body) <= terminal.LONGEST
    assert [name for name in ("xterm", "linux", "dumb", "") if terminal.understands({"TERM": name})] == ["xterm"]


@pytest.fixture
def missed(make):
    """A run that was looked at an hour ago; since then flags rose and it failed."""
    now, rose = (
        time.time(),
        ((20, "ENT-1", "CRITICAL", 7200), (40, "KL-4", "WARN", 1800), (50, "KL-1", "CRITICAL", 900)),
    )
    events = [dataclasses.replace(make.rise(*flag, "it went up"), t=now - ago) for *flag, ago in rose]
    state = make.ended("failed", error="no memory", exit=Exit(1, t=now - 600))
    run = make.run(attempts=[make.recorded(62)], events=events, machine=[make.host()], log=make.log, state=state)
    looked(run.name, now - 3600)
    return run


def panel(user):
    widget = user.one("AwayPanel")
    return words(widget.draw(80, 9)) if widget.display else ""


async def test_what_was_missed_is_told_until_it_is_closed(make, missed):
    for key, page in (("enter", "EventsScreen"), ("escape", "DashboardScreen")):
        async with make.open(missed) as user:
            said = panel(user)
            assert "while you were away (1h 00m): 2 flags " in said
            assert [line.split()[2] for line in said.splitlines()[1:]] == ["KL-1", "KL-4"]  # not ENT-1
            await user(key, page)
            if key == "enter":
                await user("v", "DashboardScreen")
            assert panel(user) == ""
        assert (last_look(missed.name) or 0) > time.time() - 60
        if key == "enter":
            looked(missed.name, time.time() - 3600)
    async with make.open(missed) as user:
        assert panel(user) == ""


async def test_a_read_only_cache_is_no_reason_to_stop(make, warned, home):
    shutil.rmtree(home / "cache" / "seen")
    (home / "cache" / "seen").write_text("in the way")
    async with make.open(warned) as user:
        await user("DashboardScreen", lambda: "WARN KL-4" in user.seen)


def attach(home, **more):
    show = "import sys; from tui.entry import main; sys.argv = ['ppo-tui', 'attach', 'last']; main()"
    return Terminal([sys.executable, "-c", show], {**os.environ, "PPO_TUI_HOME": str(home)}, **more)


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["q", "told by SIGHUP", "told by nobody"])
def test_a_real_terminal_gets_title_bell_and_notification(make, warned, home, ends):
    shown = attach(home, owned=ends != "told by nobody")
    try:
        shown.wait_for(lambda text: "Unrewarded drift" in text)
        if ends != "q":
            shown.hang_up()
            assert shown.process.poll() is not None
            return
        # pyte takes the shape of the pointer (OSC 22), which Textual tells later, for another title
        first = terminal.title("▲ WARN KL-4 · running · toy-cpu").encode()
        wait_until(lambda: shown.pump(0.1) or first in shown.raw, lambda: shown.raw[-300:])
        assert terminal.PUSH_TITLE.encode() in shown.raw
        titles = shown.raw.count(b"\x1b]2;")
        make.add_events(warned, make.rise(63, "KL-1", "CRITICAL", "KL 3 vs usual 0.1"))
        note = "\x1b]9;ppo-tui: ✖ CRITICAL KL-1 at step 63: KL 3 vs usual 0.1\x07".encode()
        wait_until(lambda: shown.pump(0.1) or note in shown.raw, lambda: shown.raw[-300:])
        assert b"\x07" in shown.raw.replace(note, b"").replace(b"\x1b]2;", b"").split(note)[0]
        shown.pump(2.5)
        assert shown.raw.count(note) == 1 and shown.raw.count(b"\x1b]2;") == titles  # said again only when it changes
        shown.send("q")
        wait_until(lambda: shown.pump(0.1) or shown.process.poll() is not None, lambda: shown.raw[-300:])
        shown.pump(0.3)
        assert shown.raw.rstrip().count(terminal.POP_TITLE.encode()) == 1
    finally:
        shown.close()

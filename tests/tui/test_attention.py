"""What reaches somebody who looks away: message, bell, title, notification; and what was missed."""

import dataclasses
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import message, until
from terminal import Terminal
from textual.pilot import Pilot
from waiting import PATIENCE

from launcher.record.attempt import Exit
from launcher.record.note import last_look, looked
from launcher.record.state import RunState
from launcher.runs.watch.reader import RunReader
from tui.kit import terminal
from tui.pages.dashboard.attention import Notices, title
from tui.pages.dashboard.head_lines import AwayPanel
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.events.screen import EventsScreen

HOME = (80, 24)


async def opened(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def notices(run: Path) -> tuple[RunReader, Notices]:
    reader = RunReader(run)
    reader.poll()
    return reader, Notices(reader)


def test_each_flag_is_told_once_and_only_when_it_is_new(make: SimpleNamespace, warned: Path) -> None:
    reader, told = notices(warned)
    assert told.fresh() == []  # KL-4 was on before anybody looked
    make.add_events(
        warned, make.rise(63, "ENT-1", "NOTICE", "low"), make.rise(63, "KL-1", "CRITICAL", "KL 3 vs usual 0.1")
    )
    reader.poll()
    (found,) = told.fresh()
    assert found.text == "✖ CRITICAL KL-1 at step 63: KL 3 vs usual 0.1"
    assert (found.severity, found.loud) == ("error", True)
    assert told.fresh() == []
    make.add_events(warned, make.rise(70, "KL-1", "WARN", "KL 1", before="CRITICAL"))  # it falls
    reader.poll()
    assert told.fresh() == []


def test_warnings_are_quiet_and_a_flood_is_short(make: SimpleNamespace, warned: Path) -> None:
    reader, told = notices(warned)
    rules = ["KL-1", "KL-2", "ENT-1", "REW-1", "NUM-1"]
    make.add_events(warned, *(make.rise(63, rule, "CRITICAL" if rule == "NUM-1" else "WARN", "m") for rule in rules))
    reader.poll()
    found = told.fresh()
    assert [notice.loud for notice in found] == [True, False, False, False]
    assert "NUM-1" in found[0].text and found[-1].text == "and 2 more flags; press v to list them"


def test_muted_rules_are_not_told(make: SimpleNamespace, warned: Path) -> None:
    reader, told = notices(warned)
    checks = tuple(dataclasses.replace(check, muted=check.rule == "KL-1") for check in reader.state.checks)
    make.write_state(warned, dataclasses.replace(reader.state, checks=checks))
    make.add_events(warned, make.rise(63, "KL-1", "CRITICAL", "m"))
    reader.poll()
    assert told.fresh() == []


@pytest.mark.parametrize(
    ("state", "exit_record", "severity", "loud"),
    [
        ("failed", Exit(1), "error", True),
        ("finished", Exit(0), "information", True),
        ("stopped", Exit(143, requested_by="stop_on: NUM-1 is CRITICAL"), "information", True),
        ("stopped", Exit(143, requested_by="screen"), "information", False),  # that was us
    ],
)
def test_the_end_is_told_once(
    make: SimpleNamespace, warned: Path, state: str, exit_record: Exit, severity: str, loud: bool
) -> None:
    reader, told = notices(warned)
    make.write_state(warned, make.ended(state, exit=exit_record, error="out of memory"))
    reader.poll()
    (found,) = told.fresh()
    assert (found.severity, found.loud) == (severity, loud)
    assert f"toy-cpu {state}" in found.text
    assert told.fresh() == []


async def test_toast_and_bell_as_the_preset_wants(
    make: SimpleNamespace, warned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.write_info(warned, preset={"health": {"notify": ["bell"]}})
    app = make.app(warned)
    rings: list[int] = []
    monkeypatch.setattr(app, "bell", lambda: rings.append(1))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        make.add_events(warned, make.rise(63, "KL-1", "CRITICAL", "[red]KL[/] \x1b[2J"))
        await until(pilot, lambda: rings)
        assert not message(app)
        assert app.title == "▲ WARN KL-4 · running · toy-cpu"


async def test_a_new_title_of_the_terminal_repaints_nothing(
    make: SimpleNamespace, warned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        repainted: list[object] = []
        monkeypatch.setattr(app, "refresh", lambda *regions, **_: repainted.append(regions))
        app.title = "another verdict"
        await pilot.pause()
        assert repainted == []


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (RunState("running", verdict="WARN", flags=("KL-4", "ENT-1")), "▲ WARN KL-4 · running · x"),
        (RunState("running", verdict="OK", phase="rollout"), "● OK · running · x"),
        (RunState("failed", verdict="CRITICAL", flags=("ERR-1",)), "✖ CRITICAL ERR-1 · failed · x"),
    ],
)
def test_the_title_has_the_verdict_and_the_state(state: RunState, expected: str) -> None:
    assert title("x", state) == expected


def test_what_goes_to_the_terminal_cannot_carry_an_escape() -> None:
    evil = "a\x1b]0;b\x07c\x9b2Jd\ne\x1b\\f" + "x" * 500
    for made, start in ((terminal.title(evil), "\x1b]2;"), (terminal.notification(evil), "\x1b]9;")):
        body = made.removeprefix(start).removesuffix("\x07")
        assert made == f"{start}{body}\x07" and body.isprintable() and len(body) <= terminal.LONGEST
    assert [terminal.understands({"TERM": name}) for name in ("xterm", "linux", "dumb", "")] == [
        True,
        False,
        False,
        False,
    ]


@pytest.fixture
def missed(make: SimpleNamespace) -> Path:
    """A run that was looked at an hour ago; since then flags rose and it failed."""
    now = time.time()
    events = [
        dataclasses.replace(make.rise(step, rule, level, "it went up"), t=now - ago)
        for step, rule, level, ago in (
            (20, "ENT-1", "CRITICAL", 7200),
            (40, "KL-4", "WARN", 1800),
            (50, "KL-1", "CRITICAL", 900),
        )
    ]
    run: Path = make.run(
        attempts=[make.recorded(62)],
        events=events,
        machine=[make.host()],
        log=make.log,
        state=make.ended("failed", error="no memory", exit=Exit(1, t=now - 600)),
    )
    looked(run.name, now - 3600)
    return run


def panel(app: Any) -> str:
    widget = app.screen.query_one(AwayPanel)
    return "\n".join("".join(text for text, _ in row) for row in widget.draw(80, 9)) if widget.display else ""


async def test_what_was_missed_is_told_until_it_is_closed(make: SimpleNamespace, missed: Path) -> None:
    app = make.app(missed)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        said = panel(app)
        assert "while you were away (1h 00m): 2 flags " in said
        assert [line.split()[2] for line in said.splitlines()[1:]] == ["KL-1", "KL-4"]  # not ENT-1
        await pilot.press("escape")
        assert panel(app) == "" and isinstance(app.screen, DashboardScreen)
    assert (last_look(missed.name) or 0) > time.time() - 60
    app = make.app(missed)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert panel(app) == ""


async def test_enter_on_what_was_missed_opens_the_events(make: SimpleNamespace, missed: Path) -> None:
    app = make.app(missed)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("enter")
        assert isinstance(app.screen, EventsScreen)
        await pilot.press("v")
        assert panel(app) == ""


async def test_a_read_only_cache_is_no_reason_to_stop(make: SimpleNamespace, warned: Path, home: Path) -> None:
    cache = home / "cache" / "seen"
    for path in cache.iterdir():
        path.unlink()
    cache.rmdir()
    cache.write_text("in the way")
    app = make.app(warned)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert isinstance(app.screen, DashboardScreen)


SHOW = "import sys; from tui.entry import main; sys.argv = ['ppo-tui', 'attach', 'last']; main()"


def attach(home: Path, **more: Any) -> Terminal:
    env = {**os.environ, "PPO_TUI_HOME": str(home), **more.pop("env", {})}
    return Terminal([sys.executable, "-c", SHOW], env, **more)


def wait(found: Any, shown: Terminal) -> None:
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline, shown.raw[-300:]
        shown.pump(0.1)


@pytest.mark.slow
def test_a_real_terminal_gets_title_bell_and_notification(make: SimpleNamespace, warned: Path, home: Path) -> None:
    shown = attach(home)
    try:
        shown.wait_for(lambda text: "Unrewarded drift" in text)
        # pyte takes the shape of the pointer (OSC 22), which Textual tells later, for another title
        wait(lambda: terminal.title("▲ WARN KL-4 · running · toy-cpu").encode() in shown.raw, shown)
        assert terminal.PUSH_TITLE.encode() in shown.raw
        titles = shown.raw.count(b"\x1b]2;")
        shown.pump(2.5)
        assert shown.raw.count(b"\x1b]2;") == titles  # said again only when it changes
        make.add_events(warned, make.rise(63, "KL-1", "CRITICAL", "KL 3 vs usual 0.1"))
        note = "\x1b]9;ppo-tui: ✖ CRITICAL KL-1 at step 63: KL 3 vs usual 0.1\x07".encode()
        wait(lambda: note in shown.raw, shown)
        assert b"\x07" in shown.raw.replace(note, b"").replace(b"\x1b]2;", b"").split(note)[0]
        shown.pump(2.5)
        assert shown.raw.count(note) == 1
        shown.send("q")
        wait(lambda: shown.process.poll() is not None, shown)
        shown.pump(0.3)
        assert shown.raw.rstrip().count(terminal.POP_TITLE.encode()) == 1
    finally:
        shown.close()


@pytest.mark.slow
@pytest.mark.parametrize("owned", [True, False], ids=["told by SIGHUP", "told by nobody"])
def test_a_terminal_that_hangs_up_ends_the_screen(make: SimpleNamespace, warned: Path, home: Path, owned: bool) -> None:
    shown = attach(home, owned=owned)
    try:
        shown.wait_for(lambda text: "Unrewarded drift" in text)
        shown.hang_up()
        assert shown.process.poll() is not None
    finally:
        shown.close()


@pytest.mark.slow
def test_e_edits_the_settings_of_the_run_from_the_first_fix_on(make: SimpleNamespace, warned: Path, home: Path) -> None:
    make.write_info(warned, preset={"algorithm": "ppo", "actor": {"lr": 3e-6}})
    shown = attach(home)
    try:
        shown.wait_for(lambda text: "Unrewarded drift" in text)
        shown.send("\r")
        shown.wait_for(lambda text: "e actor.lr 3e-6" in " ".join(text.split()))
        shown.send("e")
        shown.wait_for(lambda text: "actor.lr" in text and "6e-7" in text and "not saved" in text)
    finally:
        shown.close()

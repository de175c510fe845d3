"""What is selected stands beside the list, on a page that is wide enough."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from every_screen import diagnosed, settled, walk
from pilots import until
from textual.pilot import Pilot
from whole_run import whole_run

from launcher.record import queued
from launcher.record.events import Event, PhaseChange, StateChange
from launcher.record.queued import Queued
from tui.kit.run_page import EntryScreen
from tui.kit.widgets.inspector import Inspected, Inspection, Inspector
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import Listing

NARROW, WIDE = (109, 30), (110, 30)


def inspected(pilot: Pilot[Any]) -> str:
    """The words of the inspector; empty without one."""
    found = [each for each in pilot.app.screen.query(Inspector) if each.display and each.size]
    lines = [line for each in found for line in each.query(Lines)]
    return "\n".join("".join(text for text, _ in row) for each in lines for row in each.lines)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("ChecksScreen", "Meaning"),
        ("EventsScreen", "Log"),
        ("MetricsScreen", "now "),
        ("SamplesScreen", "Prompt"),
        ("SampleDiffScreen", "step "),
        ("DiagnosisScreen", "Fix 1 of 5"),
        ("QueueScreen", "until their GPUs are free"),
    ],
)
async def test_a_page_with_a_list_shows_the_selected_entry_from_110_columns_on(
    make: SimpleNamespace, home: Path, page: str, words: str
) -> None:
    app = make.app(whole_run(home).path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        await walk(pilot, page)
        assert isinstance(app.screen, Inspected)
        await until(pilot, lambda: words in inspected(pilot))
        await pilot.resize_terminal(*NARROW)
        await pilot.pause()
        assert not inspected(pilot)


async def test_a_held_key_reads_the_last_entry_alone(
    make: SimpleNamespace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make.app(whole_run(home).path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        await walk(pilot, "ChecksScreen")
        screen, seen = app.screen, []
        assert isinstance(screen, Inspected)
        monkeypatch.setattr(screen, "inspect", lambda key, _: seen.append(key) or Inspection())
        monkeypatch.setattr(screen, "poll", lambda: None)
        listed = screen.query_one(Listing)
        for _ in range(20):
            listed.action_move(1)
        await until(pilot, lambda: listed.cursor in seen)
        assert set(seen) <= {listed.names[0], listed.cursor}


async def test_enter_shows_the_same_entry_as_a_page(make: SimpleNamespace, home: Path) -> None:
    app = make.app(whole_run(home).path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await walk(pilot, "SamplesScreen")
        await pilot.press("enter")
        assert isinstance(app.screen, EntryScreen)
        await until(pilot, lambda: "Prompt" in inspected(pilot))
        before = inspected(pilot)
        await pilot.press("right")
        await until(pilot, lambda: inspected(pilot) != before)
        await pilot.press("escape")
        assert isinstance(app.screen, Inspected)


async def test_a_queued_run_is_inspected(make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.pages.queue.screen.wake_queue", lambda **_: None)
    entry = Queued(
        "0a11-ppo", "ppo", preset={"algorithm": "gae"}, host="h", needs=0, place=1.0, added=make.start, paused=True
    )
    entry.save()
    assert queued.entries()
    app = make.app(make.run(attempts=[make.recorded(2)], state=make.ended("finished", step=2)))
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        await walk(pilot, "QueueScreen")
        await until(pilot, lambda: "paused" in inspected(pilot) and "algorithm" in inspected(pilot))


async def test_a_fix_shows_its_whole_text(make: SimpleNamespace, home: Path) -> None:
    app = make.app(whole_run(home).path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        app.push_screen(diagnosed())
        await settled(pilot)
        await pilot.press(*["down"] * 4)
        await until(pilot, lambda: "Fix 5" in inspected(pilot))
        assert "memory estimate of every phase" in " ".join(inspected(pilot).split())


async def test_events_of_a_run_without_a_console_are_inspected(make: SimpleNamespace, home: Path) -> None:
    events = [
        Event(make.start, StateChange("queued", "starting")),
        Event(make.start + 1, PhaseChange("engine")),
        Event(make.start + 9, StateChange("starting", "failed")),
    ]
    run = make.run(attempts=[make.recorded(0)], state=make.ended("failed"), events=events)
    for console in run.glob("attempts/*/console.log"):
        console.unlink()
    app = make.app(run)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        await walk(pilot, "EventsScreen")
        for word in ("failed", "phase", "starting"):
            await until(pilot, lambda word=word: word in inspected(pilot) and "no line" in inspected(pilot))
            await pilot.press("down")

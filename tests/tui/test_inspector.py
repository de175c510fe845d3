"""What is selected stands beside the list, on a page that is wide enough; and what the reference says about it."""

from pathlib import Path

import pytest
from commands import call
from every_screen import back, walk
from pilots import words
from textual.command import Hit
from whole_run import whole_run

from launcher.check import finding
from launcher.console.causes import catalogue
from launcher.core.tables import read_tables
from launcher.health.catalogue import rules
from launcher.preset.schema import FIELDS
from launcher.record.events import Event, PhaseChange, StateChange
from launcher.record.queued import Queued
from launcher.topics import GUIDE, text_of, topics
from tui.kit.widgets.inspector import Inspection
from tui.palette import TopicPlaces

NARROW, WIDE = (109, 30), (110, 30)
NARROW, WIDE = (109, 30), (110, 30)
SEARCHES = Path(__file__).parents[1] / "data" / "searches.toml"


def inspected(user):
    """The words of the inspector; empty without one."""
    found = [each for each in user.screen.query("Inspector") if each.display and each.size]
    return "\n".join(words(lines.lines) for each in found for lines in each.query("Lines"))


async def test_a_page_with_a_list_shows_the_selected_entry_from_110_columns_on(make, home, monkeypatch):
    pages = {"ChecksScreen": "Meaning", "EventsScreen": "Log", "MetricsScreen": "now ", "SamplesScreen": "Prompt"}
    pages |= {"SampleDiffScreen": "step ", "DiagnosisScreen": "Fix 1 of 5", "QueueScreen": "until their GPUs are free"}
    async with make.open(whole_run(home).path, size=WIDE) as user:
        dashboard = user.screen
        for page, text in pages.items():
            await walk(user, page)
            await user(lambda text=text: text in inspected(user))
            if page == "DiagnosisScreen":
                await user(*["down"] * 4, lambda: "Fix 5" in inspected(user))
                assert "memory estimate of every phase" in " ".join(inspected(user).split())
            await user.resize_terminal(*NARROW)
            await user()
            few = user.one("Listing").length < NARROW[1] - 12
            assert bool(inspected(user)) == (few and user.screen.STACKS), page
            await user.resize_terminal(*WIDE)
            await back(user, dashboard)
        await walk(user, "ChecksScreen")
        screen, seen, listed = user.screen, [], user.one("Listing")
        monkeypatch.setattr(screen, "inspect", lambda key, _: seen.append(key) or Inspection())
        monkeypatch.setattr(screen, "poll", lambda: None)
        for _ in range(20):  # a held key reads the last entry alone
            listed.action_move(1)
        await user(lambda: listed.cursor in seen)
        assert set(seen) <= {listed.names[0], listed.cursor}


async def test_enter_shows_the_same_entry_as_a_page(make, home):
    run = whole_run(home)
    with (run.rollouts / "5.jsonl").open("a") as file:
        file.write('{"input": "2+2=", "output": "4", "gts": "4", "score": 1.0, "step": 5}\n')
    async with make.open(run.path) as user:
        await walk(user, "SamplesScreen")
        for key, text in (("enter", "1+1="), ("right", "2+2="), ("left", "1+1=")):
            await user(key, "EntryScreen", lambda text=text: text in inspected(user))
        await user("escape", "SamplesScreen")


async def test_a_queued_run_and_events_of_a_run_without_a_console_are_inspected(make, monkeypatch):
    monkeypatch.setattr("tui.pages.queue.screen.wake_queue", lambda **_: None)
    Queued("0a11-ppo", "ppo", {"algorithm": "gae"}, "h", 0, 1.0, make.start, paused=True).save()
    events = [
        Event(make.start, StateChange("queued", "starting")),
        Event(make.start + 1, PhaseChange("engine")),
        Event(make.start + 9, StateChange("starting", "failed")),
    ]
    run = make.run(attempts=[make.recorded(0)], state=make.ended("failed"), events=events)
    for console in run.glob("attempts/*/console.log"):
        console.unlink()
    async with make.open(run, size=WIDE) as user:
        await walk(user, "EventsScreen")
        for word in ("failed", "phase", "starting"):
            await user(lambda word=word: word in inspected(user) and "no such line" in inspected(user), "down")
        await user("escape", "DashboardScreen")
        await walk(user, "QueueScreen")
        await user(lambda: "paused" in inspected(user) and "algorithm" in inspected(user))


def reference(user):
    return "\n".join(words(each.draw(100, 1000)) for each in user.screen.query("Painted"))


async def test_a_key_opens_the_text_about_what_is_selected(make, warned):
    pages = {"OpenedDashboard": "What to try", "ChecksScreen": "What to try", "CheckDetailScreen": "What to try"}
    pages |= {"DiagnosisScreen": "What to try", "MetricsScreen": "(metric)", "MetricScreen": "(metric)"}
    async with make.open(warned) as user:
        dashboard = user.screen
        for page, part in {**pages, "EditorScreen": "Values:"}.items():
            await walk(user, page)
            await user(lambda: user.screen.topic)
            topic = user.screen.topic
            await user("K", "ReferenceScreen")
            assert part in reference(user) and f"ppo-tui help {topic}" in reference(user), page
            await user("K", lambda: not user.is_on("ReferenceScreen"))
            await back(user, dashboard)
        await walk(user, "MachineScreen")
        await user("K", lambda: "Select a rule" in user.message)


@pytest.mark.nightly("launcher/topics.py", "launcher/search.py", "tui/palette.py", "tui/kit/", every=2)
@pytest.mark.parametrize(
    ("typed", "text"),
    [("Reference gpu-oom-upd", "gpu-oom-update (cause)"), ("on_alert", "health.on_alert (preset setting)")],
)
async def test_the_palette_finds_a_topic(make, warned, typed, text):
    async with make.open(warned) as user:
        await user("colon", *typed, 0.5, "enter", "ReferenceScreen")
        assert text in reference(user)


async def test_the_palette_ranks_as_the_help_does(make, warned):
    async with make.open(warned) as user:
        places = TopicPlaces(user.screen)
        await places.startup()
        guides = {f"Reference {each.name}" for each in topics() if each.kind == GUIDE}
        for query, wanted in read_tables(SEARCHES).items():
            hits = [hit async for hit in places.search(query) if isinstance(hit, Hit)]
            found = [str(hit.text) for hit in sorted(hits, key=lambda hit: -hit.score)]
            best = [text for text in found if text not in guides][:3]
            assert f"Reference {wanted}" in best, (query, best)


def test_whatever_the_screen_names_has_a_text():
    known = {each.name for each in topics()}
    named = {*rules(), *(cause.id for cause in catalogue()), *FIELDS, finding.REHEARSAL, "PRESET", "CHECK"}
    assert named <= known


def test_screen_and_command_have_one_source():
    printed = " ".join(call(["help", "KL-4"])[0].decode().split())
    assert printed.partition(" See also: ")[0] == " ".join(text_of("KL-4").split())

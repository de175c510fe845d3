"""The reference on the screen: the same texts as `ppo-tui help TOPIC`, for what is selected."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import call
from every_screen import settled, walk
from pilots import until
from textual.command import Hit
from textual.pilot import Pilot

from launcher.check import finding
from launcher.console.causes import catalogue
from launcher.core.tables import read_tables
from launcher.health.catalogue import rules
from launcher.preset.schema import FIELDS
from launcher.topics import text_of, topics
from tui.kit.page import Page
from tui.kit.widgets.painted import Painted
from tui.pages.help.screen import ReferenceScreen
from tui.palette import TopicPlaces

SEARCHES = Path(__file__).parents[1] / "data" / "searches.toml"


def words(pilot: Pilot[Any]) -> str:
    drawn = (row for each in pilot.app.screen.query(Painted) for row in each.draw(100, 1000))
    return "\n".join("".join(text for text, _ in row) for row in drawn)


@pytest.mark.parametrize(
    ("page", "part"),
    [
        ("DashboardScreen", "What to try"),
        ("ChecksScreen", "What to try"),
        ("CheckDetailScreen", "What to try"),
        ("DiagnosisScreen", "What to try"),
        ("MetricsScreen", "(metric)"),
        ("MetricScreen", "(metric)"),
        ("EditorScreen", "Values:"),
    ],
)
async def test_a_key_opens_the_text_about_what_is_selected(
    make: SimpleNamespace, warned: Path, page: str, part: str
) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await walk(pilot, page)
        if page == "EditorScreen":
            await until(pilot, lambda: bool(app.screen.query("FormLines")) and app.screen.topic is not None)
        assert isinstance(app.screen, Page)
        topic = app.screen.topic
        assert topic
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, ReferenceScreen))
        shown = words(pilot)
        assert part in shown and f"ppo-tui help {topic}" in shown
        await pilot.press("K")
        await until(pilot, lambda: not isinstance(app.screen, ReferenceScreen))


async def test_a_page_without_a_selection_says_what_to_select(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await walk(pilot, "MachineScreen")
        await pilot.press("K")
        await until(pilot, lambda: app.said is not None and "Select a rule" in app.said.text)


@pytest.mark.parametrize(
    ("typed", "text"),
    [("Reference gpu-oom-upd", "gpu-oom-update (cause)"), ("on_alert", "health.on_alert (preset setting)")],
)
async def test_the_palette_finds_a_topic(make: SimpleNamespace, warned: Path, typed: str, text: str) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("colon")
        await pilot.press(*typed)
        await pilot.pause(0.5)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReferenceScreen))
        assert text in words(pilot)


async def test_the_palette_ranks_as_the_help_does(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        places = TopicPlaces(app.screen)
        await places.startup()
        for query, wanted in read_tables(SEARCHES).items():
            hits = [hit async for hit in places.search(query) if isinstance(hit, Hit)]
            best = [str(hit.text) for hit in sorted(hits, key=lambda hit: -hit.score)[:3]]
            assert f"Reference {wanted}" in best, (query, best)


def test_whatever_the_screen_names_has_a_text() -> None:
    known = {each.name for each in topics()}
    named = {*rules(), *(cause.id for cause in catalogue()), *FIELDS, finding.REHEARSAL, "PRESET", "CHECK"}
    assert named <= known


def test_screen_and_command_have_one_source() -> None:
    printed = " ".join(call(["help", "KL-4"])[0].decode().split())
    assert printed.partition(" See also: ")[0] == " ".join(text_of("KL-4").split())

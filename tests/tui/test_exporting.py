"""Figures of a run written into files from the screen."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import message, until
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tui.kit.dialogs.ask import AskScreen
from tui.kit.dialogs.choose import ConfirmScreen
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.runs.screen import RunsScreen


async def asked(pilot: Pilot[Any], *keys: str) -> Input:
    """The field that asks for the file, opened by keys."""
    app = pilot.app
    for key in keys:
        await app.workers.wait_for_complete()  # reading the run, or the list of runs
        await pilot.pause()
        await pilot.press(key)
    await until(pilot, lambda: isinstance(app.screen, AskScreen) and bool(app.screen.query(Input)))
    return app.screen.query_one(Input)


async def test_the_ending_of_the_file_is_the_format(
    make: SimpleNamespace, warned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make.app(warned, read_only=True)  # a copy changes nothing of the run
    async with app.run_test(size=(80, 24)) as pilot:
        field = await asked(pilot, "a", "e")
        assert field.value == f"{warned.name}.csv"
        assert ".parquet" in str(app.screen.query_one("#wrong", Static).content)
        await pilot.press("enter")
        await until(pilot, lambda: "Exported" in message(app))
        assert str(tmp_path / field.value) in message(app) and isinstance(app.screen, DashboardScreen)
        heads, *rows = csv.reader((tmp_path / field.value).open())
        assert heads[:2] == ["step", "attempt"] and len(rows) == 63


async def test_what_cannot_be_written_is_said_before_and_after(
    make: SimpleNamespace, warned: Path, tmp_path: Path
) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        field = await asked(pilot, "a", "e")
        field.value = str(tmp_path / "x.xlsx")
        await pilot.press("enter")
        await until(pilot, lambda: "use .csv" in str(app.screen.query_one("#wrong", Static).content))
        field.value = str(tmp_path / "nowhere" / "x.csv")
        await pilot.press("enter")
        await until(pilot, lambda: "Not exported" in message(app))
        assert "No such file" in message(app) and "--output" not in message(app)


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_a_file_is_replaced_only_when_told_so(
    make: SimpleNamespace, warned: Path, tmp_path: Path, answer: str
) -> None:
    there = tmp_path / "x.jsonl"
    there.write_text("mine")
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        field = await asked(pilot, "escape", "a", "e")
        field.value = str(there)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press(answer)
        if answer == "n":  # another name can be given
            await until(pilot, lambda: isinstance(app.screen, AskScreen))
            await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await app.workers.wait_for_complete()
        if answer == "y":
            assert json.loads(there.read_text().splitlines()[1])["step"] == 1
        else:
            assert there.read_text() == "mine"


@pytest.mark.parametrize("road", [("a", "h"), ("escape", "a", "h")])
async def test_a_report_is_written_from_the_dashboard_and_the_list(
    make: SimpleNamespace, warned: Path, tmp_path: Path, road: tuple[str, ...]
) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        field = await asked(pilot, *road)
        field.value = "report.pdf"
        await pilot.press("enter")
        await until(pilot, lambda: "HTML file" in str(app.screen.query_one("#wrong", Static).content))
        field.value = str(tmp_path / "r.html")
        await pilot.press("enter")
        await until(pilot, lambda: "Report: " in message(app))
        assert "<h2" in (tmp_path / "r.html").read_text()


async def test_a_bundle_is_written_from_the_dashboard(make: SimpleNamespace, warned: Path, tmp_path: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=(80, 24)) as pilot:
        field = await asked(pilot, "a", "b")
        assert field.value.endswith("-bundle.zip")
        field.value = "b.tar"
        await pilot.press("enter")
        await until(pilot, lambda: "ZIP file" in str(app.screen.query_one("#wrong", Static).content))
        field.value = "~no-such-user/b.zip"
        await pilot.press("enter")
        await until(pilot, lambda: "home directory" in str(app.screen.query_one("#wrong", Static).content))
        (there := tmp_path / "b.zip").write_text("mine")
        for answer in "ny":
            field.value = str(there)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            await pilot.press(answer)
            if answer == "n":
                assert there.read_text() == "mine"
                field = await asked(pilot, "a", "b")
        await until(pilot, lambda: "Bundle: " in message(app))
        assert there.read_bytes().startswith(b"PK")


async def test_where_there_is_hardly_room_a_question_shows_its_field(make: SimpleNamespace, warned: Path) -> None:
    app = make.app(warned)
    async with app.run_test(size=(20, 5)) as pilot:
        field = await asked(pilot, "a", "b")
        await until(pilot, lambda: 0 < field.region.y < 4)

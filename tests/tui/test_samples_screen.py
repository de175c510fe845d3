"""The answers of the model, on the dumps of a real toy run."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from launcher.runs.watch.responses import Sample
from tui.kit.drawing.rows import fold, width
from tui.kit.widgets.key_bar import KeyBar
from tui.pages.samples.sample_rows import ORDERS, about, ordered, sample_page
from tui.pages.samples.screen import SamplesScreen

HOME = (80, 24)
DATA = Path(__file__).parent.parent / "data" / "samples"
Compare = Callable[..., bool]


@pytest.fixture
def run(make: SimpleNamespace) -> Path:
    path: Path = make.run(attempts=[make.recorded(62)])
    shutil.copytree(DATA, path / "samples")
    return path


async def opened(pilot: Pilot[Any], *keys: str) -> SamplesScreen:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    for key in ("s", *keys):
        await pilot.press(key)
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
    assert isinstance(pilot.app.screen, SamplesScreen)
    return pilot.app.screen


def shown(screen: SamplesScreen) -> list[str]:
    """The answers on the screen's list, in its order."""
    from tui.kit.widgets.lists import ResponseTable

    return [screen.samples[int(key)].response for key in screen.query_one(ResponseTable).keys]


def seen(pilot: Pilot[Any]) -> str:
    return str(pilot.app.export_screenshot()).replace("&#160;", " ")


async def test_the_key_of_the_help_is_in_a_full_footer(make: SimpleNamespace, run: Path) -> None:
    async with make.app(run).run_test(size=HOME) as pilot:
        screen = await opened(pilot)
        keys = screen.query_one(KeyBar)
        for columns in (80, 60, 30):
            (row,) = keys.draw(columns, 1)
            words = "".join(text for text, _ in row)
            assert words.endswith("? help") and len(words) <= columns


async def test_steps_and_kinds(make: SimpleNamespace, run: Path) -> None:
    async with make.app(run).run_test(size=HOME) as pilot:
        screen = await opened(pilot)
        assert screen.dump is not None and screen.dump[:2] == ("rollout", 60)
        assert "rollout of step 60" in seen(pilot)
        screen = await pressed(pilot, "left")
        assert screen.dump is not None and screen.dump.step == 1 and len(shown(screen)) == 12
        screen = await pressed(pilot, "left", "right", "tab")
        assert screen.dump is not None and screen.dump[:2] == ("validation", 10)
        assert "validation of step 10" in seen(pilot) and "acc " in seen(pilot)


async def pressed(pilot: Pilot[Any], *keys: str) -> SamplesScreen:
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
    assert isinstance(pilot.app.screen, SamplesScreen)
    return pilot.app.screen


async def test_order_and_find(make: SimpleNamespace, run: Path) -> None:
    async with make.app(run).run_test(size=HOME) as pilot:
        screen = await opened(pilot, "left", "o")
        scores = [sample.score for sample in screen.samples]
        assert screen.samples[ordered(screen.samples, "best first")[0]].score == max(scores) == 1.0
        assert "best first" in seen(pilot) and "score 1" in seen(pilot)
        screen = await pressed(pilot, "slash", *"#### 4", "enter")
        assert shown(screen) and set(shown(screen)) == {"#### 4"}
        screen = await pressed(pilot, "escape")
        assert len(shown(screen)) == 12


async def test_it_waits_for_dumps_and_survives_wild_ones(make: SimpleNamespace, home: Path) -> None:
    run = make.run(attempts=[make.recorded(3)])
    async with make.app(run).run_test(size=(30, 8)) as pilot:
        screen = await opened(pilot, "right", "o", "down", "tab", "tab")
        assert "No samples yet" in seen(pilot)
        folder = run / "samples" / "rollout"
        folder.mkdir(parents=True)
        wild = {"output": "[red]漢字\x1b[2J " * 300, "score": float("nan"), "gts": ["a", 1]}
        (folder / "1.jsonl").write_text(json.dumps(wild) + "\n" + json.dumps({"output": "", "score": 1e400}) + "\n")
        await pilot.pause(2.2)
        await pilot.app.workers.wait_for_complete()
        screen = await pressed(pilot, "down", "up", "pagedown", "end", "home", "o", "o")
        assert len(shown(screen)) == 2 and "\x1b" not in shown(screen)[0]


def test_an_answer_is_shown_whole_in_any_script() -> None:
    """Of 漢字 forty take eighty cells; nothing of what is judged by reading may be cut off."""
    answer = "答えは " + "漢字" * 90 + "。 2 + 2 = 4 " + "x" * 100 + "\n    indented  code\n\n" + "the end " * 20
    rows = sample_page(Sample("", answer, "", math.nan, ()), 79)
    assert all(width(row) <= 78 for row in rows)
    said = ["".join(text for text, _ in row) for row in rows]
    assert said[0].startswith(" no score · ") and "   " + "    indented  code" in said and "   " in said
    page = said[said.index(" Response") + 1 :]
    assert "".join("".join(page).split()) == "".join(answer.split())


@given(st.text(), st.integers(1, 40))
def test_folded_lines_hold_every_letter_and_are_never_too_wide(line: str, columns: int) -> None:
    found = fold(line, columns)
    assert "".join("".join(found).split()) == "".join(line.split())
    assert all(width([(piece, "text")]) <= max(columns, 2) for piece in found)


def test_orders_keep_every_sample_and_unscored_ones_last() -> None:
    samples = [Sample("", "a" * size, "", score, ()) for size, score in ((1, 0.5), (9, float("nan")), (3, 1.0))]
    assert [ordered(samples, order) for order in ORDERS] == [[0, 1, 2], [2, 0, 1], [0, 2, 1], [1, 2, 0]]
    assert about(samples) == "3 responses, 3 distinct"
    assert about([]) == "0 responses, 0 distinct"


def test_looks(snap_compare: Compare, make: SimpleNamespace, run: Path) -> None:
    async def ready(pilot: Pilot[Any]) -> None:
        await opened(pilot, "left", "o", "down")

    assert snap_compare(make.app(run), terminal_size=HOME, run_before=ready)

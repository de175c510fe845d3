"""One prompt through the training: finding its answers, and what changed between two of them."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from launcher.runs.watch.responses import Sample
from tui.kit.drawing.rows import width
from tui.kit.widgets.lists import ResponseTable
from tui.pages.samples.diff_screen import SampleDiffScreen
from tui.pages.samples.sample_rows import score_course, score_row
from tui.pages.samples.word_diff import compare, flow, plain

HOME = (80, 24)
Compare = Callable[..., bool]
THOUGHT = "She sells 3 eggs a day.\nSo she makes 6 dollars.\n"


@pytest.fixture
def run(make: SimpleNamespace) -> Path:
    """Validations of steps 10, 20 and 30, and a rollout that asks one of their prompts once."""
    path: Path = make.run(attempts=[make.recorded(62)])
    for kind, step, answers in (
        ("validation", 10, [(THOUGHT + "#### 7", 0.0), ("no idea", 0.0)]),
        ("validation", 20, [(THOUGHT + "#### 6", 1.0), ("#### 5", 1.0)]),
        ("rollout", 25, [("#### 6", 1.0)]),
        ("validation", 30, [("#### 6 #### 6 #### 6", 1.0), ("#### 5", 1.0)]),
    ):
        folder = path / "samples" / kind
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            {"input": f"user\nquestion {n}\nassistant\n", "output": answer, "gts": "6", "score": score}
            for n, (answer, score) in enumerate(answers)
        ]
        (folder / f"{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


async def settle(pilot: Pilot[Any], *keys: str) -> Any:
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
    return pilot.app.screen


async def opened(pilot: Pilot[Any]) -> SampleDiffScreen:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    screen = await settle(pilot, "s", "tab", "right", "c")
    assert isinstance(screen, SampleDiffScreen)
    return screen


def seen(app: Any) -> str:
    return str(app.export_screenshot()).replace("&#160;", " ")


async def test_the_answers_of_all_steps_come_newest_first_and_differ_word_by_word(
    make: SimpleNamespace, run: Path
) -> None:
    async with make.app(run).run_test(size=HOME) as pilot:
        screen = await opened(pilot)
        where = [(each.dump.kind, each.dump.step) for each in screen.responses]
        assert where == [("validation", 30), ("rollout", 25), ("validation", 20), ("validation", 10)]
        assert screen.query_one(ResponseTable).cursor == "1"
        assert "4 responses to this prompt at 4 steps" in seen(pilot.app)
        assert "{+#### 6 #### 6+}" in seen(pilot.app)
        await settle(pilot, "left", "left")
        text = seen(pilot.app)
        assert "step 10, score 0 → step 30, score 1" in text and "[-She sells 3 eggs a day.-]" in text
        await settle(pilot, "right", "right", "right")
        assert "step 30, score 1" in seen(pilot.app)  # the chosen answer itself
        await settle(pilot, "c")
        assert not isinstance(pilot.app.screen, SampleDiffScreen)


async def test_of_an_older_answer_the_newer_ones_are_what_it_became(make: SimpleNamespace, run: Path) -> None:
    async with make.app(run).run_test(size=HOME) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        screen = await settle(pilot, "s", "tab", "left", "left", "c")
        assert screen.dump.step == 10
        assert "step 10, score 0 → step 20, score 1" in seen(pilot.app)
        assert "[-7-]" in seen(pilot.app) and "{+6+}" in seen(pilot.app)


async def test_a_prompt_that_was_asked_once_says_so(make: SimpleNamespace, run: Path) -> None:
    (run / "samples" / "rollout" / "26.jsonl").write_text(
        json.dumps({"input": "only here", "output": "漢字 " * 90, "score": 0.5}) + "\n"
    )
    for size in (HOME, (20, 5)):
        async with make.app(run).run_test(size=size) as pilot:
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            screen = await settle(pilot, "s", "c", "left", "pagedown", "right")
            assert len(screen.responses) == 1
            assert size != HOME or "No other step used this prompt" in seen(pilot.app)


@given(st.text(), st.text())
def test_a_difference_holds_every_word_of_both(older: str, newer: str) -> None:
    found = compare(older, newer)
    said = [word for word, _ in found.words if word != "\n"]
    stripped = [(word.removeprefix("[-").removesuffix("-]"), role) for word, role in found.words if word != "\n"]
    assert found.kept + found.gone == len(older.split()) and found.kept + found.new == len(newer.split())
    assert len(said) == found.kept + found.gone + found.new
    assert sum(role == "critical" for _, role in stripped) == found.gone


@given(st.text(max_size=60), st.integers(1, 40))
def test_lines_are_never_too_wide(text: str, columns: int) -> None:
    for row in flow(plain(text), columns):
        assert width(row) <= max(columns, 4) + 1  # a wide character in a single cell


def test_marks_stand_in_each_line_of_a_change() -> None:
    found = compare("a b\nc d", "a x")
    assert [word for word, _ in found.words] == ["a", "[-b-]", "[-c", "d-]", "{+x+}"]
    assert compare("a\nb", "a\nb").words == [("a", "text"), ("\n", "text"), ("b", "text")]


def test_scores_of_a_step_in_one_line() -> None:
    def samples(*scores: float) -> list[Sample]:
        return [Sample("", "", "", score, ()) for score in scores]

    def told(*scores: float, columns: int = 80) -> str:
        return "".join(text for text, _ in score_row(samples(*scores), columns))

    assert told() == " no scores"
    assert told(0, 0, 0, 1) == " scores  0 █ 75 %  1 ▃ 25 %    mean 0.250"
    assert told(1, float("nan")).endswith("mean 1  1 without a score")
    spread = told(*(n / 10 for n in range(20)))
    assert spread.startswith(" scores  0 █") and "1.90  median 1" in spread
    assert len(told(*(n * 1e307 for n in range(9)))) < 80 and "inf" not in told(5e-324, *range(9))[:20]


def test_the_course_of_a_prompts_scores() -> None:
    assert score_course([0.0]) == []
    assert "".join(text for text, _ in score_course([0, 0.5, float("nan"), 1])) == "  score ▁▄█ 0 to 1"


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_looks(snap_compare: Compare, make: SimpleNamespace, run: Path, size: tuple[int, int]) -> None:
    async def ready(pilot: Pilot[Any]) -> None:
        await opened(pilot)
        await settle(pilot, "left", "left")

    assert snap_compare(make.app(run), terminal_size=size, run_before=ready)

"""The responses of the model, and one prompt through the training: what changed between two of its responses."""

import json
import math
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pilots import words

from launcher.runs.watch.responses import Sample
from tui.kit.drawing.rows import fold, width
from tui.pages.samples.sample_rows import ORDERS, about, ordered, sample_page, score_course, score_row
from tui.pages.samples.word_diff import compare, flow, plain

DATA = Path(__file__).parent.parent / "data" / "samples"
THOUGHT = "She sells 3 eggs a day.\nSo she makes 6 dollars.\n"


@pytest.fixture
def run(make):
    """The dumps of a real toy run."""
    path = make.run(attempts=[make.recorded(62)])
    shutil.copytree(DATA, path / "samples")
    return path


@pytest.fixture
def asked(make):
    """Validations of steps 10, 20 and 30, and a rollout that asks one of their prompts once."""
    path = make.run(attempts=[make.recorded(62)])
    for kind, step, answers in (
        ("validation", 10, [(THOUGHT + "#### 7", 0.0), ("no idea", 0.0)]),
        ("validation", 20, [(THOUGHT + "#### 6", 1.0), ("#### 5", 1.0)]),
        ("rollout", 25, [("#### 6", 1.0)]),
        ("validation", 30, [("#### 6 #### 6 #### 6", 1.0), ("#### 5", 1.0)]),
    ):
        rows = [
            {"input": f"user\nquestion {n}\nassistant\n", "output": answer, "gts": "6", "score": score}
            for n, (answer, score) in enumerate(answers)
        ]
        (path / "samples" / kind).mkdir(parents=True, exist_ok=True)
        (path / "samples" / kind / f"{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


async def press(user, *keys):
    """Each key reads files."""
    for key in keys:
        await user(key, "...")


def shown(user):
    """The answers on the screen's list, in its order."""
    return [user.screen.samples[int(key)].response for key in user.one("ResponseTable").keys]


async def test_steps_kinds_order_and_find(make, run):
    async with make.open(run) as user:
        await press(user, "s")
        for columns in (80, 60, 30):
            footer = words(user.one("KeyBar").draw(columns, 1))
            assert footer.endswith("? help") and len(footer) <= columns
        assert user.screen.dump[:2] == ("rollout", 60) and "rollout of step 60" in user.seen
        await press(user, "left")
        assert user.screen.dump.step == 1 and len(shown(user)) == 12
        await press(user, "o")
        samples = user.screen.samples
        scores = [sample.score for sample in samples]
        assert samples[ordered(samples, "best first")[0]].score == max(scores) == 1.0
        assert "best first" in user.seen and "score 1" in user.seen
        await press(user, "slash", *"#### 4", "enter")
        assert shown(user) and set(shown(user)) == {"#### 4"}
        await press(user, "escape")
        assert len(shown(user)) == 12
        await press(user, "left", "right", "tab")
        assert user.screen.dump[:2] == ("validation", 10)
        assert "validation of step 10" in user.seen and "acc " in user.seen


async def test_it_waits_for_dumps_and_survives_wild_ones(make):
    run = make.run(attempts=[make.recorded(3)])
    async with make.open(run, size=(30, 8)) as user:
        await press(user, "s", "right", "o", "down", "tab", "tab")
        assert "No samples yet" in user.seen
        folder = run / "samples" / "rollout"
        folder.mkdir(parents=True)
        wild = {"output": "[red]漢字\x1b[2J " * 300, "score": float("nan"), "gts": ["a", 1]}
        (folder / "1.jsonl").write_text(json.dumps(wild) + "\n" + json.dumps({"output": "", "score": 1e400}) + "\n")
        await user(lambda: len(user.screen.samples) == 2, "...")
        await press(user, "down", "up", "pagedown", "end", "home", "o", "o")
        assert len(shown(user)) == 2 and "\x1b" not in shown(user)[0]


def test_an_answer_is_shown_whole_in_any_script():
    """Of 漢字 forty take eighty cells; nothing of what is judged by reading may be cut off."""
    answer = "答えは " + "漢字" * 90 + "。 2 + 2 = 4 " + "x" * 100 + "\n    indented  code\n\n" + "the end " * 20
    rows = sample_page(Sample("", answer, "", math.nan, ()), 79)
    assert all(width(row) <= 78 for row in rows)
    said = ["".join(text for text, _ in row) for row in rows]
    assert said[0].startswith(" no score · ") and "   " + "    indented  code" in said and "   " in said
    page = said[said.index(" Response") + 1 :]
    assert "".join("".join(page).split()) == "".join(answer.split())


@given(st.text(), st.integers(1, 40))
def test_folded_lines_hold_every_letter_and_are_never_too_wide(line, columns):
    found = fold(line, columns)
    assert "".join("".join(found).split()) == "".join(line.split())
    assert all(width([(piece, "text")]) <= max(columns, 2) for piece in found)


async def test_the_answers_of_all_steps_come_newest_first_and_differ_word_by_word(make, asked):
    alone = {"input": "only here", "output": "漢字 " * 90, "score": 0.5}
    (asked / "samples" / "rollout" / "26.jsonl").write_text(json.dumps(alone) + "\n")
    async with make.open(asked) as user:
        await press(user, "s", "c", "left", "pagedown", "right")
        assert len(user.screen.responses) == 1 and "No other step used this prompt" in user.seen
        await press(user, "c", "tab", "right", "c")
        where = [(each.dump.kind, each.dump.step) for each in user.screen.responses]
        assert where == [("validation", 30), ("rollout", 25), ("validation", 20), ("validation", 10)]
        assert user.one("ResponseTable").cursor == "1"
        assert "4 responses to this prompt at 4 steps" in user.seen and "{+#### 6 #### 6+}" in user.seen
        await press(user, "left", "left")
        assert "step 10, score 0 → step 30, score 1" in user.seen and "[-She sells 3 eggs a day.-]" in user.seen
        await press(user, "right", "right", "right")
        assert "step 30, score 1" in user.seen  # the chosen answer itself
        await press(user, "c", "left", "left", "c")
        assert user.screen.dump.step == 10  # of an older answer, the newer ones are what it became
        assert "step 10, score 0 → step 20, score 1" in user.seen
        assert "[-7-]" in user.seen and "{+6+}" in user.seen
        await press(user, "c")
        await user("SamplesScreen")


@given(st.text(), st.text())
def test_a_difference_holds_every_word_of_both(older, newer):
    found = compare(older, newer)
    said = [word for word, _ in found.words if word != "\n"]
    stripped = [(word.removeprefix("[-").removesuffix("-]"), role) for word, role in found.words if word != "\n"]
    assert found.kept + found.gone == len(older.split()) and found.kept + found.new == len(newer.split())
    assert len(said) == found.kept + found.gone + found.new
    assert sum(role == "critical" for _, role in stripped) == found.gone


@given(st.text(max_size=60), st.integers(1, 40))
def test_lines_are_never_too_wide(text, columns):
    for row in flow(plain(text), columns):
        assert width(row) <= max(columns, 4) + 1  # a wide character in a single cell


def test_marks_stand_in_each_line_of_a_change():
    found = compare("a b\nc d", "a x")
    assert [word for word, _ in found.words] == ["a", "[-b-]", "[-c", "d-]", "{+x+}"]
    assert compare("a\nb", "a\nb").words == [("a", "text"), ("\n", "text"), ("b", "text")]


def test_orders_keep_every_sample_and_scores_of_a_step_are_one_line():
    samples = [Sample("", "a" * size, "", score, ()) for size, score in ((1, 0.5), (9, float("nan")), (3, 1.0))]
    assert [ordered(samples, order) for order in ORDERS] == [[0, 1, 2], [2, 0, 1], [0, 2, 1], [1, 2, 0]]
    assert (about(samples), about([])) == ("3 responses, 3 distinct", "0 responses, 0 distinct")

    def told(*scores):
        return words([score_row([Sample("", "", "", score, ()) for score in scores], 80)])

    assert told() == " no scores"
    assert told(0, 0, 0, 1) == " scores  0 █ 75 %  1 ▃ 25 %    mean 0.250"
    assert told(1, float("nan")).endswith("mean 1  1 without a score")
    spread = told(*(n / 10 for n in range(20)))
    assert spread.startswith(" scores  0 █") and "1.90  median 1" in spread
    assert len(told(*(n * 1e307 for n in range(9)))) < 80 and "inf" not in told(5e-324, *range(9))[:20]
    assert score_course([0.0]) == [] and words([score_course([0, 0.5, float("nan"), 1])]) == "  score ▁▄█ 0 to 1"


def test_looks(shot, make, run):
    assert shot(make.app(run), "s", "...", "left", "...", "o", "...", "down", "...")


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_a_prompt_looks(shot, make, asked, size):
    steps = [step for key in ("s", "tab", "right", "c", "left", "left") for step in (key, "...")]
    assert shot(make.app(asked), *steps, size=size)

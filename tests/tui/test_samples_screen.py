"""The responses of the model, and one prompt through the training: what changed between two of its responses."""

import json
import math
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pilots import words

from launcher.metrics.scores import ScoreCounts
from launcher.record.layout import RunDir
from launcher.runs.watch.responses import Dump, Sample, ToldByResponses
from tui.kit.drawing.glyphs import to_ascii
from tui.kit.drawing.rows import fold, width
from tui.pages.samples.sample_rows import ORDERS, about, ordered, sample_page, score_course, score_row
from tui.pages.samples.score_strip import score_strip
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


@pytest.fixture
def learning(make):
    """Real responses at 62 steps, ever more of them from the end of the toy run; two validations."""
    first, last = ((DATA / "rollout" / f"{step}.jsonl").read_text().splitlines(True) for step in (1, 60))
    records = make.recorded(62)
    path = make.run(attempts=[records])
    run = RunDir(path)
    shutil.copytree(DATA / "validation", run.validations)
    (run.validations / "20.jsonl").write_text("".join(last))
    run.rollouts.mkdir()
    for step in range(1, 63):
        late = len(first) * step // 62
        (run.rollouts / f"{step}.jsonl").write_text("".join([*last[:late], *first[late:]]))
    told = ToldByResponses(run, run.attempt(1), lambda part: nullcontext())
    for record in records[20:]:  # the first are as an earlier ppo-tui wrote them
        told.add(record)
    run.attempt(1).steps.write_bytes(b"".join(record.to_line() for record in records))
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


async def test_the_scores_of_all_steps_are_shades(make, learning):
    async with make.open(learning) as user:
        await press(user, "s")
        rows = user.drawn("#samples-state").splitlines()
        ones, zeros, axis = rows[-4:-1]
        assert ones.startswith("  score 1 ▒") and ones.endswith("█") and zeros.startswith("  score 0 █")
        assert len(ones) == 10 + 62 and axis.index("↑") == 10 + 61 and user.one("ResponseTable").size.height >= 8
        assert sorted(user.screen.reader.scores) == list(range(20, 63))
        await press(user, *["left"] * 31)
        assert user.drawn("#samples-state").splitlines()[-2].index("↑") == 10 + 30
        for size, found in (((120, 36), True), ((160, 48), True), ((20, 5), False), ((80, 24), True)):
            await user.resize_terminal(*size)
            await user("...")
            assert ("↑" in user.drawn("#samples-state")) == found, size
            assert not found or user.one("ResponseTable").size.height >= 8, size
        await press(user, "tab")
        seen = user.drawn("#samples-state").splitlines()
        assert "validation of step 20" in seen[0] and seen[-2].startswith("     step 10")
        late = [RunDir(learning).validations / f"{step}.jsonl" for step in (30, 40)]
        late[0].write_text('{"output": "", "score": 0.5}\n{"outp')  # still being written
        await user(lambda: len(user.screen.dumps) == 65, "...")
        shutil.copy(DATA / "rollout" / "60.jsonl", late[0])
        late[1].touch()
        await user(lambda: len(user.screen.dumps) == 66, "...")
        assert user.screen._known(Dump("validation", 30, late[0])) == (
            True,
            user.screen._known(user.screen.dumps[59])[1],
        )
        steps = learning / "attempts/1/steps.jsonl"
        recorded = [user.screen._known(dump)[1] for dump in user.screen.dumps[:62]]
        steps.write_text("".join(line.partition(',"scores"')[0] + "}\n" for line in steps.open()))
    async with make.open(learning) as user:
        await press(user, "s")
        assert not user.screen.reader.scores
        assert [user.screen._known(dump)[1] for dump in user.screen.dumps[:62]] == recorded
        assert user.drawn("#samples-state").splitlines() == rows


def test_shades_of_other_scores_and_of_many_steps():
    def told(steps, columns=80, room=9, waiting=0):
        found = [(step, ScoreCounts.of(scores)) for step, scores in enumerate(steps)]
        return words(score_strip(found, 0, columns, room, waiting)).splitlines()

    parts = [[0, 0.3, 0.7, 1], [0, 0.3, 0.3, 0.3], [math.nan], [0.7]]
    shades = ["▓" * 6, "█" * 12 + " " * 6 + "█" * 6, "▓" * 12, "0  ↑" + " " * 19 + "3  ░ >0 ▒ 10 ▓ 25 █ 50 %"]
    assert [line[10:].rstrip() for line in told(parts, room=4)] == shades
    assert [len(told(parts, room=room)) for room in (3, 4, 5, 8, 16)] == [0, 4, 5, 8, 13]
    assert [line[:9].strip() for line in told([[-2, 3], [5]])] == ["5", "", "", "", "-2", "step"]
    assert told([[-2]] * 2)[0].startswith("       -2 █") and told([[1]], 80) == told([[1]] * 3, 20) == []
    assert (
        "15 steps per column" in told([[1, 2]] * 1000)[-1]
        and "21 steps to count" in told([[1], []] * 40, 80, 9, 21)[-1]
    )
    assert len(set(to_ascii("░▒▓█"))) == 4


@given(st.lists(st.lists(st.floats(), max_size=4), max_size=90), st.integers(1, 200), st.integers(-8, 20))
def test_any_scores_have_shades(steps, columns, room):
    found = [(step, ScoreCounts.of(scores)) for step, scores in enumerate(steps)]
    rows = score_strip(found, len(steps) // 2, columns, room, 0)
    assert len(rows) <= max(room, 0) and all(width(row) < columns for row in rows)
    shades = [words([row])[10:] for row in rows[:-1]]
    assert not rows or any(set(shade) & set("░▒▓█") for shade in shades)
    if rows and len(steps) <= columns - 11:
        cells = min((columns - 11) // len(steps), 6)
        blank = [not any(shade[step * cells : (step + 1) * cells].strip() for shade in shades) for step, _ in found]
        assert blank == [counts is None for _, counts in found]


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
def test_looks(shot, make, learning, size):
    assert shot(make.app(learning), "s", "...", "left", "...", "o", "...", "down", "...", size=size)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_a_prompt_looks(shot, make, asked, size):
    steps = [step for key in ("s", "tab", "right", "c", "left", "left") for step in (key, "...")]
    assert shot(make.app(asked), *steps, size=size)

"""What a step's responses tell: figures from veRL's dump, added to the step within bounds."""

import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import tabled

from launcher.metrics import responses
from launcher.metrics.glossary import UNKNOWN, describe
from launcher.metrics.records import StepRecord
from launcher.metrics.responses import ResponseFigures
from launcher.record.layout import RunDir
from launcher.runs.watch.responses import Dump, ToldByResponses, rows

DATA = Path(__file__).parent.parent / "data" / "samples"  # of our own toy task
SOLUTION = "first we add {0} apples to the {0} pears, which makes {0} fruits and so the answer must be #### {1}"


def said(prompt: str, *outputs: str, truth: str = "7", right: int = 0) -> list[dict[str, Any]]:
    """The responses to one prompt, the first so many of them right."""
    return [
        {"input": prompt, "output": output, "gts": truth, "score": float(place < right)}
        for place, output in enumerate(outputs)
    ]


def figures(*groups: list[dict[str, Any]], of: ResponseFigures | None = None) -> dict[str, float]:
    found = (of or ResponseFigures()).of([row for group in groups for row in group])
    return {key.removeprefix("responses/"): value for key, value in found.items()}


def real(kind: str, step: int) -> Dump:
    return Dump(kind, step, DATA / kind / f"{step}.jsonl")


def test_real_dumps_of_a_run_that_learned() -> None:
    validation = figures(rows(real("validation", 10), 1 << 20))
    assert validation["unvaried_groups"] == 0 and validation["format_only"] == 1 / 8
    assert (validation["near_equal"], validation["equal_truths"]) == (0.25, 0.5)
    told = ResponseFigures()
    early, late = (figures(rows(real("rollout", step), 1 << 20), of=told) for step in (1, 60))
    assert "unvaried_groups" not in early, "one response a prompt is no group"
    assert late["near_equal"] < 0.5 and late["prompt_copied"] == 0
    assert not [key for key in (*validation, *late) if describe(f"responses/{key}").meaning == UNKNOWN]


def test_a_best_score_so_far_is_not_a_right_answer() -> None:
    part = [{**row, "score": 0.2 * row["score"]} for row in (*said("a", "x", "y", right=2), *said("b", "x", "y"))]
    assert "all_right_groups" not in figures(part)
    assert figures(said("a", "x", "y", right=2), said("b", "x", "y"))["all_right_groups"] == 0.5


def test_advantages_that_follow_from_the_scores() -> None:
    found = figures(said("a", *"wxyz", right=1), said("b", *"wxyz", right=2), said("c", "x", "y", right=2))
    assert (found["advantage_high"], found["advantage_low"]) == pytest.approx((1.5, -0.866), abs=1e-3)
    assert "advantage_high" not in figures(said("c", "x", "y", right=2))


def test_prompts_of_one_word_and_responses_past_their_turn() -> None:
    long = [said(f"user Add the {n} apples and the {n + 2} pears now. assistant", "x") for n in range(8)]
    short = [said(f"user word{n} assistant", "fine\nuser\nwhat now") for n in range(8)]
    mixed = figures(*long, *short)
    assert (mixed["one_word_prompts"], mixed["past_turn"]) == (0.5, 0.5)
    assert figures(*short)["one_word_prompts"] == 0 == figures(*long)["one_word_prompts"]


def test_longer_responses_that_score_higher_and_answers_that_are_expected() -> None:
    grows = [
        {**row, "score": len(row["output"])}
        for row in said("a", "x", "xx 7", "xxxx #### 8", "x #### 1,007 ok", truth="1007")
    ]
    found = figures(grows)
    assert (found["longer_pays"], found["true_answers"]) == (1, 0.25)
    equal, opposite = (figures([{**row, "score": sign * row["score"]} for row in grows]) for sign in (0, -1))
    assert (equal["longer_pays"], opposite["longer_pays"]) == (0, -1)
    assert "true_answers" not in figures(said("a", "x", "y", truth="x > 2"))


def test_groups_without_variance_are_told_apart() -> None:
    found = figures(said("a", "x", "y", right=2), said("b", "x", "y"), said("c", "x", "y", right=1), said("d", "x"))
    assert found["unvaried_groups"] == pytest.approx(2 / 3)
    assert found["all_right_groups"] == found["all_wrong_groups"] == pytest.approx(1 / 3)
    continuous = [{**row, "score": 0.01 * n} for n, row in enumerate(said("a", *"abcdefghijkl"))]
    assert "length_right" not in figures(continuous), "a reward model's score makes no response right"


@tabled
def test_the_audit_is_what_the_reward_function_says_beside_the_score(beside, audit):
    found = figures([{**row, **beside} for row in said("a", "x", "y")])
    assert found.get("audit") == audit


def test_what_the_texts_are_like() -> None:
    sound = [
        said(f"how many {n} fruits {n}{n}", *[SOLUTION.format(w, n) for w in (f"{n}a", f"{n}b")]) for n in "qrstuv"
    ]
    found = figures(*sound)
    assert found["near_equal"] < 0.5 and found["prompt_dependence"] > 0.9
    assert found["format_only"] == 1, "the expected answer is a number, and none stands there"
    same = figures(*[said(f"how many {n} fruits", *[SOLUTION.format("no", 3)] * 2) for n in "qrstuv"])
    assert same["near_equal"] == 1 and same["prompt_dependence"] == 0 and same["format_only"] == 0
    prompt = "a farmer has three red barns and four blue barns next to the old river; how many barns are there?"
    copied = figures(said(prompt, f"the question: {prompt}", "there are seven of them, so the answer is 7" * 2))
    assert copied["prompt_copied"] == 0.5
    looping = figures(said("count", "one two three four five six " * 200), said("sum", "啊这是一个好问题" * 200))
    assert looping["repetition"] > 0.9


def test_prompts_that_are_never_solved_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    told = ResponseFigures()
    first = figures(said("a", "x", right=1), said("b", "x"), said("c", "x", right=1), of=told)
    assert "forgotten" not in first
    again = figures(said("a", "x", right=1), said("b", "x"), said("c", "x"), of=told)
    for name in ("never_solved", "always_solved", "forgotten"):
        assert again[name] == pytest.approx(1 / 3)
    once_more = figures(said("b", "x", right=1), of=told)
    assert (once_more["never_solved"], once_more["always_solved"]) == (0, pytest.approx(1 / 3))
    monkeypatch.setattr(responses, "_REMEMBERED", 3)
    assert "forgotten" not in figures(said("new", "x"), of=told)
    assert "forgotten" not in figures(said("new", "x"), of=told), "what is known of prompts is bounded"


WILD = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)
ROW = st.dictionaries(st.sampled_from(["input", "output", "gts", "score", "uid", "acc", "audit"]), WILD)


@given(st.lists(ROW, max_size=12))
def test_any_rows_are_counted(found: list[dict[str, Any]]) -> None:
    told = ResponseFigures()
    for _ in range(2):
        counted = told.of(found)
        assert math.isfinite(counted.pop("responses/audit", 0.0))
        assert all(-1 <= value <= 1 for key, value in counted.items() if "length" not in key and "advantage" not in key)


def test_figures_are_added_to_a_step_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDir(tmp_path)
    attempt = run.attempt(1)
    attempt.path.mkdir(parents=True)
    run.rollouts.mkdir(parents=True)
    (run.rollouts / "2.jsonl").write_bytes((DATA / "rollout" / "1.jsonl").read_bytes() + b'{"output": "cut of')
    (run.rollouts / "3.jsonl").mkdir()
    steps = [StepRecord(n, 0.0, None, {"actor/pg_loss": 0.1}) for n in (1, 2, 3)]
    told = ToldByResponses(run, attempt, lambda part: nullcontext())
    for record in steps:
        told.add(record)
    assert [len(record.data) > 1 for record in steps] == [False, True, False]
    attempt.steps.write_bytes(steps[1].to_line())
    (run.rollouts / "2.jsonl").unlink()
    later = StepRecord(2, 0.0, None, {"actor/pg_loss": 0.1})
    ToldByResponses(run, attempt).add(later)
    assert later.data == steps[1].data
    (run.rollouts / "4.jsonl").write_text(json.dumps(said("a", "x")[0]))
    monkeypatch.setattr("launcher.runs.watch.responses._AHEAD", -1.0)
    late = StepRecord(4, 0.0, None, {})
    told.add(late)
    assert late.data == {}, "its share of the processor is spent"

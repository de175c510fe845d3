"""Base and trained model on the same prompts."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from valid_json import validate

from launcher.compare.paired import Paired, last_validation, paired
from launcher.core.errors import UserError
from launcher.record.layout import RunDir
from launcher.runs.watch.responses import Dump


def dump(folder: Path, scores: dict[str, list[float]], step: int = 0) -> Dump:
    """A validation with these scores by prompt, as veRL writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"input": prompt, "output": f"response {at}", "gts": "7", "score": score, "step": step}
        for prompt, of in scores.items()
        for at, score in enumerate(of)
    ]
    path = folder / f"{step}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Dump("validation", step, path)


def test_the_difference_is_of_the_same_prompts(tmp_path: Path) -> None:
    before = dump(tmp_path / "a", {"p1": [0.0, 0.0], "p2": [1.0], "p3": [0.0], "only before": [1.0]})
    after = dump(tmp_path / "b", {"p3": [1.0], "p2": [0.0], "p1": [1.0, 0.0], "only after": [0.0], "p4": [math.nan]})
    found = paired(before, after)
    assert (found.prompts, found.before, found.after) == (3, pytest.approx(1 / 3), pytest.approx(0.5))
    assert [(each.prompt, each.before, each.after) for each in found.gained] == [("p3", 0.0, 1.0), ("p1", 0.0, 0.5)]
    assert [each.prompt for each in found.lost] == ["p2"]
    assert found.low < 1 / 6 < found.high
    written = json.loads(json.dumps(found.to_json()))
    assert written["gained"][0] == {"prompt": "p3", "before": 0.0, "after": 1.0}
    validate(["eval", "--json"], json.dumps({"run": "x", "scores": {"val-core": "nan"}, "base": written}))
    assert written["difference"] == pytest.approx(1 / 6)


def test_a_question_is_what_the_prompts_do_not_share(tmp_path: Path) -> None:
    def prompts(score: float) -> dict[str, list[float]]:
        return {f"system\nYou are kind.\nuser\n{asked}?\nassistant\n": [score] for asked in ("1 + 1", "2 + 2")}

    found = paired(dump(tmp_path / "a", prompts(0)), dump(tmp_path / "b", prompts(1)))
    assert [found.question(each) for each in found.gained] == ["1 + 1?", "2 + 2?"]
    only = found.gained[0]._replace(prompt="whole")
    assert found._replace(around=(1, 0)).question(only) == "whole", "of equal prompts nothing would be left"


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
def test_the_interval_is_around_the_difference_and_turns_with_the_order(
    tmp_path_factory: pytest.TempPathFactory, scores: list[tuple[float, float]]
) -> None:
    folder = tmp_path_factory.mktemp("validations")
    first = dump(folder / "a", {f"p{at}": [before] for at, (before, _) in enumerate(scores)})
    second = dump(folder / "b", {f"p{at}": [after] for at, (_, after) in enumerate(scores)})
    found, turned = paired(first, second), paired(second, first)
    assert found.low - 1e-9 <= found.after - found.before <= found.high + 1e-9
    assert (turned.low, turned.high) == (pytest.approx(-found.high, abs=1e-9), pytest.approx(-found.low, abs=1e-9))
    assert len(found.gained) == len(turned.lost)


def test_validations_of_other_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no prompts in common"):
        paired(dump(tmp_path / "a", {"p1": [1.0]}), dump(tmp_path / "b", {"p2": [1.0]}))


def test_the_last_validation_of_a_run_or_that_of_a_step(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert last_validation(run) is None
    dump(run.validations, {"p": [0.0]}, 0)
    dump(run.validations, {"p": [1.0]}, 10)
    assert (last_validation(run) or Paired).step == 10  # type: ignore[union-attr]
    assert (last_validation(run, 0) or Paired).step == 0  # type: ignore[union-attr]
    assert last_validation(run, 5) is None

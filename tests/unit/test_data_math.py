r"""MATH from files: the answer in the box, veRL's schema, and what a user is told when a file is not right.

The problems are made up here, in MATH's form.
"""

import gzip
import importlib.util
import json
import socket
from pathlib import Path

import pytest
from tables import tabled

from launcher.core.errors import UserError
from launcher.data import math

needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow: pip install ppo-tui[cpu]"
)
SOLUTIONS = {
    r"So $x = \boxed{7}$.": "7",
    r"Half of it: \boxed{\frac{1}{2}}": r"\frac{1}{2}",
    r"First \boxed{3}, no, $\boxed{\text{(A)}}$.": r"\text{(A)}",
    r"It is $\boxed 5$ and no more.": "5",
    r"An old box: $\fbox{2x+1}$": "2x+1",
    r"A set: $\boxed{\{1, 2\}}$": r"\{1, 2\}",
}


def problem(solution: str, text: str = "What is $x$?") -> dict[str, str]:
    return {"problem": text, "solution": solution, "level": "Level 2", "type": "Algebra"}


def lines(*solutions: str) -> str:
    return "".join(json.dumps(problem(solution)) + "\n" for solution in solutions)


@pytest.mark.parametrize(("solution", "truth"), SOLUTIONS.items())
def test_the_answer_stands_in_the_last_box(solution, truth):
    assert math.ground_truth(solution) == truth


@pytest.mark.parametrize("solution", ["no box", r"\boxed{never closed", ""])
def test_no_box_is_no_answer(solution):
    assert math.ground_truth(solution) is None


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_verls_own_reward_accepts_every_ground_truth(solution):
    if importlib.util.find_spec("verl") is None:
        pytest.skip("veRL is not installed")
    folder = Path(importlib.util.find_spec("verl").submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location("scorer", folder / "utils/reward_score/math_reward.py")
    scorer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    truth = math.ground_truth(solution)
    assert scorer.compute_score(rf"\boxed{{{truth}}}", truth) == 1.0
    assert scorer.compute_score(r"\boxed{wrong}", truth) == 0.0


@needs_pyarrow
def test_rows_are_what_verl_reads(tmp_path):
    import pyarrow.parquet

    (tmp_path / "train.jsonl").write_text(lines(*SOLUTIONS))
    with gzip.open(tmp_path / "test.jsonl.gz", "wt") as file:
        file.write(lines(r"\boxed{1}"))
    assert math.write(str(tmp_path), tmp_path / "new") == {"train": len(SOLUTIONS), "test": 1}
    rows = pyarrow.parquet.read_table(tmp_path / "new" / "train.parquet").to_pylist()
    assert [row["reward_model"]["ground_truth"] for row in rows] == list(SOLUTIONS.values())
    assert rows[0] == {
        "data_source": "DigitalLearningGmbH/MATH-lighteval",
        "prompt": [{"role": "user", "content": f"What is $x$? {math.INSTRUCTION}"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "7"},
        "extra_info": {"split": "train", "index": 0, "answer": r"So $x = \boxed{7}$.", "question": "What is $x$?"},
    }


@needs_pyarrow
def test_the_original_folders_with_one_file_a_problem(tmp_path):
    import pyarrow.parquet

    for split, kind, number in (("train", "algebra", 10), ("train", "algebra", 2), ("test", "geometry", 1)):
        folder = tmp_path / split / kind
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.json").write_text(json.dumps(problem(rf"\boxed{{{number}}}")))
    assert math.write(str(tmp_path), tmp_path / "new") == {"train": 2, "test": 1}
    rows = pyarrow.parquet.read_table(tmp_path / "new" / "train.parquet").to_pylist()
    assert [row["reward_model"]["ground_truth"] for row in rows] == ["2", "10"]


@tabled
@needs_pyarrow
def test_what_is_wrong_is_named(tmp_path, content, complaint):
    (tmp_path / "train.jsonl").write_text(content)
    (tmp_path / "test.jsonl").write_text(lines(r"\boxed{1}"))
    with pytest.raises(UserError, match=complaint):
        math.write(str(tmp_path), tmp_path / "new")


def test_a_folder_without_the_files_and_one_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"neither train\.jsonl nor train\.jsonl\.gz"):
        math.write(str(tmp_path), tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(UserError, match=r"has no \.json files"):
        math.write(str(tmp_path), tmp_path)
    with pytest.raises(UserError, match=r"neither train\.jsonl"):
        math.write("./not-there", tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="needs the package datasets")
def test_no_hub_is_told_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"MATH could not be downloaded.*no/such-set.*--from"):
        math.write("no/such-set", tmp_path)


@needs_pyarrow
@pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="needs the package datasets")
def test_the_real_set(tmp_path):
    try:
        socket.getaddrinfo("huggingface.co", 443)
        rows = math.write(None, tmp_path)
    except (OSError, UserError) as error:
        pytest.skip(f"the Hugging Face hub cannot be reached: {error}")
    assert rows == {"train": 7500, "test": 5000}

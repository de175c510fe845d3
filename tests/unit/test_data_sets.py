r"""GSM8K, MATH and tables of one's own from files: veRL's schema, ground truths, and errors with their place.

The questions are made up here, in the form of the sets.
"""

import gzip
import importlib.util
import json
import socket
import subprocess
import sys

import pytest
from tables import parts, tabled

from launcher.core.errors import UserError
from launcher.data import gsm8k, math
from launcher.data.table import Form, rows, write

needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow: pip install ppo-tui[cpu]"
)
SOLUTIONS = dict(parts("data_sets")["solutions"][1])
OWN = ("q", "a", "mine")
QUESTION = "Two boxes hold 6 pens each. How many pens?"


def item(answer, question=QUESTION):
    return json.dumps({"question": question, "answer": answer})


def problem(solution):
    return {"problem": "What is $x$?", "solution": solution, "level": "Level 2", "type": "Algebra"}


def lines(*solutions):
    return "".join(json.dumps(problem(solution)) + "\n" for solution in solutions)


def table_of(folder, split="train"):
    return importlib.import_module("pyarrow.parquet").read_table(folder / f"{split}.parquet").to_pylist()


@pytest.fixture
def source(tmp_path):
    """A folder of GSM8K with one plain and one compressed split."""
    folder = tmp_path / "original"
    folder.mkdir()
    answers = [item("6 * 2 = <<6*2=12>>12\n#### 12"), item("It is much.\n#### 1,250"), item("#### -3.5")]
    (folder / "train.jsonl").write_text("\n".join(answers) + "\n")
    with gzip.open(folder / "test.jsonl.gz", "wt") as file:
        file.write(item("#### 7") + "\n")
    return folder


@needs_pyarrow
def test_rows_of_gsm8k_are_what_verl_reads(source, tmp_path):
    assert gsm8k.write(source, tmp_path / "new" / "data") == {"train": 3, "test": 1}
    found = table_of(tmp_path / "new" / "data")
    instruction = 'Let\'s think step by step and output the final answer after "####".'
    assert found[1] == {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": f"{QUESTION} {instruction}"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "1250"},
        "extra_info": {"split": "train", "index": 1, "answer": "It is much.\n#### 1,250", "question": QUESTION},
    }
    assert [row["reward_model"]["ground_truth"] for row in found] == ["12", "1250", "-3.5"]
    assert [row["extra_info"]["index"] for row in found] == [0, 1, 2]


@needs_pyarrow
def test_rows_of_math_are_what_verl_reads(tmp_path):
    (tmp_path / "train.jsonl").write_text(lines(*SOLUTIONS))
    with gzip.open(tmp_path / "test.jsonl.gz", "wt") as file:
        file.write(lines(r"\boxed{1}"))
    assert math.write(str(tmp_path), tmp_path / "new") == {"train": len(SOLUTIONS), "test": 1}
    found = table_of(tmp_path / "new")
    assert [row["reward_model"]["ground_truth"] for row in found] == list(SOLUTIONS.values())
    assert found[0] == {
        "data_source": "DigitalLearningGmbH/MATH-lighteval",
        "prompt": [{"role": "user", "content": f"What is $x$? {math.INSTRUCTION}"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "7"},
        "extra_info": {"split": "train", "index": 0, "answer": r"So $x = \boxed{7}$.", "question": "What is $x$?"},
    }


@needs_pyarrow
def test_the_original_folders_of_math_with_one_file_a_problem(tmp_path):
    for split, kind, number in (("train", "algebra", 10), ("train", "algebra", 2), ("test", "geometry", 1)):
        folder = tmp_path / split / kind
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.json").write_text(json.dumps(problem(rf"\boxed{{{number}}}")))
    assert math.write(str(tmp_path), tmp_path / "new") == {"train": 2, "test": 1}
    assert [row["reward_model"]["ground_truth"] for row in table_of(tmp_path / "new")] == ["2", "10"]


def test_the_answer_is_in_the_last_box():
    assert {solution: math.ground_truth(solution) for solution in SOLUTIONS} == SOLUTIONS
    assert [math.ground_truth(solution) for solution in ("no box", r"\boxed{never closed", "")] == [None] * 3


@pytest.mark.slow
def test_verls_own_rewards_accept_every_ground_truth(source):
    scorer = pytest.importorskip("verl.utils.reward_score.gsm8k")
    for row in gsm8k.rows(((str(source), json.loads(item(f"#### {n}"))) for n in ("12", "1,250", "-3")), "test"):
        truth = row["reward_model"]["ground_truth"]
        assert scorer.compute_score(row["extra_info"]["answer"], truth) == 1.0
        assert scorer.compute_score(f"#### {truth}0", truth) == 0.0
    scorer = pytest.importorskip("verl.utils.reward_score.math_reward")
    for truth in SOLUTIONS.values():
        assert scorer.compute_score(rf"\boxed{{{truth}}}", truth) == 1.0
        assert scorer.compute_score(r"\boxed{wrong}", truth) == 0.0


@tabled
@needs_pyarrow
def test_what_is_wrong_is_named_and_nothing_is_written(kind, files, complaint, source, tmp_path):
    """Files of GSM8K, of MATH or of a table, with its form and share."""
    folder = source if kind == "gsm8k" else tmp_path
    for name, content in files.items():
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_text(content)
    with pytest.raises(UserError, match=complaint):
        if kind == "gsm8k":
            gsm8k.write(source, tmp_path / "new")
        elif kind == "math":
            math.write(str(tmp_path), tmp_path / "new")
        else:
            form, share = kind
            write(tmp_path / next(iter(files), "none.csv"), tmp_path / "new", Form(*form), share)
    assert not list(tmp_path.rglob("*.parquet"))


@needs_pyarrow
def test_a_damaged_archive_is_named(source, tmp_path):
    whole = (source / "test.jsonl.gz").read_bytes()
    for damaged in (whole[:-9], b"not an archive"):
        (source / "test.jsonl.gz").write_bytes(damaged)
        with pytest.raises(UserError, match=r"test\.jsonl\.gz, line \d+: not valid JSON lines"):
            gsm8k.write(source, tmp_path / "data")


def test_a_folder_of_math_without_files_and_one_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"neither train\.jsonl"):
        math.write("./not-there", tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(UserError, match=r"has no \.json files"):
        math.write(str(tmp_path), tmp_path)


def test_without_pyarrow_the_extra_is_named(source, tmp_path):
    script = f"""
import sys
from pathlib import Path
sys.modules["pyarrow"] = None  # an import of it fails from here on
from launcher.data import gsm8k
gsm8k.write(Path({str(source)!r}), Path({str(tmp_path / "data")!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert "UserError" in done.stderr and "pip install pyarrow" in done.stderr


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
        counts = math.write(None, tmp_path)
    except (OSError, UserError) as error:
        pytest.skip(f"the Hugging Face hub cannot be reached: {error}")
    assert counts == {"train": 7500, "test": 5000}


def test_a_row_of_ones_own_is_left_as_it_is():
    (row,) = rows([("here", {"q": " Why? ", "a": 42, "more": None})], Form(*OWN))
    assert (row["data_source"], row["prompt"]) == ("mine", [{"role": "user", "content": "Why?"}])
    assert row["reward_model"] == {"style": "rule", "ground_truth": "42"}


@tabled
def test_a_reward_of_verls_brings_its_instruction_and_its_answer(reward, answer, truth, source, word):
    (row,) = rows([("here", {"q": "Why?", "a": answer})], Form(*OWN, reward))
    assert (row["data_source"], row["reward_model"]["ground_truth"]) == (source, truth)
    content = row["prompt"][0]["content"]
    assert content.startswith("Why? Let's think step by step") and word in content


@tabled
def test_what_is_wrong_with_a_row(item, complaint):
    with pytest.raises(UserError, match=f"my.csv, line 3: {complaint}"):
        list(rows([("my.csv, line 3", item)], Form(*OWN)))


@needs_pyarrow
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize(("share", "test"), [(0.1, 4), (0.25, 10), (0.5, 20), (0.03, 1)])
def test_the_test_set_is_spread_over_the_table(tmp_path, kind, share, test):
    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        path.write_text("\ufeffq,a\n" + "".join(f'"why, {n}?",{n}\n' for n in range(40)), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps({"q": f"why, {n}?", "a": n}) + "\n\n" for n in range(40)))
    assert write(path, tmp_path / "new", Form(*OWN), share) == {"train": 40 - test, "test": test}
    found = {split: table_of(tmp_path / "new", split) for split in ("train", "test")}
    assert sorted(row["extra_info"]["index"] for part in found.values() for row in part) == list(range(40))
    assert all(row["extra_info"]["split"] == split for split, part in found.items() for row in part)
    assert found["train"][0]["prompt"][0]["content"] == "why, 0?"


@needs_pyarrow
def test_the_command(in_process, tmp_path):
    (tmp_path / "sums.csv").write_text("question,answer\n" + "".join(f"{n} + 1?,{n + 1}\n" for n in range(20)))
    words = ("data", "jsonl", "sums.csv", "--prompt", "question", "--answer", "answer", "--output", "out")
    done = in_process(*words)
    assert (done.returncode, done.stdout) == (0, "out: 18 train rows, 2 test rows\n"), done.stderr
    assert "set reward.path" in done.stderr and "set reward.path" not in in_process(*words, "--reward", "gsm8k").stderr
    assert in_process(*words, "--reward", "code").returncode == 2
    assert json.loads(in_process(*words, "--json").stdout) == {"dir": "out", "rows": {"train": 18, "test": 2}}

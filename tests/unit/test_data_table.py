"""Tables of one's own in veRL's schema: columns, the test share, errors with their place."""

import importlib.util
import json

import pytest
from tables import tabled

from launcher.core.errors import UserError
from launcher.data.table import Form, rows, write

needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow: pip install ppo-tui[cpu]"
)
OWN = Form("q", "a", "mine")


def test_a_row_of_ones_own_is_left_as_it_is():
    (row,) = rows([("here", {"q": " Why? ", "a": 42, "more": None})], OWN)
    assert row["data_source"] == "mine"
    assert row["prompt"] == [{"role": "user", "content": "Why?"}]
    assert row["reward_model"] == {"style": "rule", "ground_truth": "42"}


@tabled
def test_a_reward_of_verls_brings_its_instruction_and_its_answer(reward, answer, truth, source, word):
    (row,) = rows([("here", {"q": "Why?", "a": answer})], Form("q", "a", "mine", reward))
    assert row["data_source"] == source
    assert row["reward_model"]["ground_truth"] == truth
    assert row["prompt"][0]["content"].startswith("Why? Let's think step by step")
    assert word in row["prompt"][0]["content"]


@tabled
def test_what_is_wrong_with_a_row(item, complaint):
    with pytest.raises(UserError, match=f"my.csv, line 3: {complaint}"):
        list(rows([("my.csv, line 3", item)], OWN))


def test_a_mistyped_column_gets_the_nearest_one():
    with pytest.raises(UserError, match=r"no column 'anwser'; did you mean 'answer'\?"):
        list(rows([("here", {"q": "x", "answer": "1"})], Form("q", "anwser", "mine")))


@needs_pyarrow
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize(("share", "test"), [(0.1, 4), (0.25, 10), (0.5, 20), (0.03, 1)])
def test_the_test_set_is_spread_over_the_table(tmp_path, kind, share, test):
    import pyarrow.parquet

    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        path.write_text("\ufeffq,a\n" + "".join(f'"why, {n}?",{n}\n' for n in range(40)), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps({"q": f"why, {n}?", "a": n}) + "\n\n" for n in range(40)))
    assert write(path, tmp_path / "new", OWN, share) == {"train": 40 - test, "test": test}
    found = {s: pyarrow.parquet.read_table(tmp_path / f"new/{s}.parquet").to_pylist() for s in ("train", "test")}
    indices = sorted(row["extra_info"]["index"] for part in found.values() for row in part)
    assert indices == list(range(40))
    assert all(row["extra_info"]["split"] == split for split, part in found.items() for row in part)
    assert found["train"][0]["prompt"][0]["content"] == "why, 0?"


@pytest.mark.parametrize(
    ("name", "content", "form", "share", "complaint"),
    [
        ("t.txt", "x", OWN, 0.1, r"use \.jsonl, \.jsonl\.gz or \.csv"),
        ("t.jsonl", '{"q": 1, "a": 1}\n', OWN, 0.1, "no rows left for the test set"),
        ("t.jsonl", "", OWN, 0.5, "no rows left for the train set"),
        ("t.jsonl", "{", OWN, 0.1, "line 1: not valid JSON lines"),
        ("t.csv", "q,a\n1\n", OWN, 0.1, "line 2: no column 'a'"),
        ("t.csv", "q,a\n1,2\n", OWN, 1.0, "--test-share 1.0 is not"),
        ("t.csv", "q,a\n1,2\n", Form("q", "a", "mine", "code"), 0.1, "--reward 'code'"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path, name, content, form, share, complaint):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=complaint):
        write(tmp_path / name, tmp_path / "new", form, share)
    assert not (tmp_path / "new").exists()


@needs_pyarrow
def test_the_command(ppo_tui, tmp_path):
    (tmp_path / "sums.csv").write_text("question,answer\n" + "".join(f"{n} + 1?,{n + 1}\n" for n in range(20)))
    words = ("data", "jsonl", "sums.csv", "--prompt", "question", "--answer", "answer", "--output", "out")
    done = ppo_tui(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out: 18 train rows, 2 test rows\n"
    assert "set reward.path" in done.stderr
    assert "set reward.path" not in ppo_tui(*words, "--reward", "gsm8k").stderr
    assert ppo_tui(*words, "--reward", "code").returncode == 2
    assert json.loads(ppo_tui(*words, "--json").stdout) == {"dir": "out", "rows": {"train": 18, "test": 2}}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"file not found: .*none\.csv"):
        write(tmp_path / "none.csv", tmp_path, OWN, 0.1)

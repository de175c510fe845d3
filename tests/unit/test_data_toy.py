"""The toy task as a run finds it: built once, whole, and at a level from which PPO can learn."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from launcher.core.errors import UserError
from launcher.data import schema, toy
from launcher.inside.ppo_tui_inside.probes import toy_task

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs torch and transformers: pip install ppo-tui[cpu]"
)

# How often the model answers right when sampling, from the probabilities themselves.
PROBE = """
import itertools, json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from launcher.inside.ppo_tui_inside.probes import toy_task as toy
folder = sys.argv[1] + "/model"
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
pairs = list(itertools.product(toy.OPERANDS, toy.OPERANDS))
ids, labels, shares = toy._answers(tokenizer, pairs)
with torch.no_grad():
    flat = ids.flatten(0, 1)
    logits = model(input_ids=flat, attention_mask=flat != tokenizer.pad_token_id).logits[:, :-1]
    targets = labels.flatten(0, 1)[:, 1:]
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=-100, reduction="none"
    ).sum(dim=1)
chances = (-losses).exp().view(shares.shape)
totals = sorted({sum(pair) for pair in pairs})
right = [chances[i, totals.index(sum(pair))].item() for i, pair in enumerate(pairs)]
greedy = [totals[chances[i].argmax()] == sum(pair) for i, pair in enumerate(pairs)]
print(json.dumps({"right": sum(right) / 25, "lowest": min(right), "greedy": sum(greedy) / 25,
                  "form": chances.sum().item() / 25, "parameters": model.num_parameters()}))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path / "cache"


@pytest.mark.e2e
@pytest.mark.xdist_group("toy run")  # which uses what is built here
@needs_torch
def test_two_runs_at_once_build_it_once_and_it_is_ready_for_ppo(toy_build: Any) -> None:
    import pyarrow.parquet

    cache = toy_build.cache
    assert [lines[-1] for lines in toy_build.lines] == [str(cache / "toy")] * 2
    assert sorted("toy: done" in lines for lines in toy_build.lines) == [False, True]
    assert sorted(path.name for path in cache.glob("*toy*")) == ["toy", "toy.lock"], "nothing unfinished stays"

    rows = pyarrow.parquet.read_table(cache / "toy" / "data" / "train.parquet").to_pylist()
    assert pyarrow.parquet.read_schema(cache / "toy" / "data" / "test.parquet") == schema._arrow_schema(pyarrow)
    assert len(rows) == 25 * toy_task.COPIES
    assert rows[0]["prompt"][0]["content"] == 'What is 2 + 2? Give the answer after "####".'
    assert {len(row["reward_model"]["ground_truth"]) for row in rows} == {1, 2}, "answers differ in length"

    probe = [sys.executable, "-c", PROBE, str(cache / "toy")]
    level = json.loads(subprocess.run(probe, capture_output=True, text=True, check=True, timeout=300).stdout)
    assert 0.25 < level["right"] < 0.42
    assert level["lowest"] > 0.1, "no question is hopeless"
    assert level["greedy"] < 0.5, "the greedy validation has somewhere to go"
    assert level["form"] > 0.95, "the form of the answer is known"


def test_a_finished_folder_is_taken_as_it_is(cache: Path) -> None:
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "recipe").write_text(toy.RECIPE)
    assert toy.ensure(python="/no/such/python") == cache / "toy"


def test_a_failed_build_says_why_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'toy: rows'\necho \"No module named 'torch'\" >&2\nexit 1\n")
    broken.chmod(0o755)
    told: list[str] = []
    with pytest.raises(UserError, match=r"could not be built with .*python: No module named 'torch'"):
        toy.ensure(python=str(broken), progress=told.append)
    assert told[0] == "toy: rows"
    assert not (cache / "toy").exists()


def test_a_full_disk_is_named_with_the_folder(cache: Path, tmp_path: Path) -> None:
    full = tmp_path / "python"
    full.write_text(f"#!/bin/sh\nexit {toy_task.FULL}\n")
    full.chmod(0o755)
    with pytest.raises(UserError, match=r"cannot write .*toy: No space left on device; free disk space"):
        toy.ensure(python=str(full))


def test_the_builder_knows_a_full_disk_from_other_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path) -> None:
        raise RuntimeError("file write failed")  # as PyTorch and safetensors do

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(manual_seed=int, set_num_threads=int))
    monkeypatch.setattr(toy_task, "_write_rows", fail)
    with pytest.raises(RuntimeError):
        toy_task.build(tmp_path / "toy", progress=str)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=toy_task.ROOM - 1))
    with pytest.raises(SystemExit) as ended:
        toy_task.build(tmp_path / "toy", progress=str)
    assert ended.value.code == toy_task.FULL and not list(tmp_path.iterdir())


def test_an_interpreter_that_is_not_there_is_a_users_mistake(cache: Path) -> None:
    with pytest.raises(UserError, match="/no/such/python"):
        toy.ensure(python="/no/such/python")


def test_a_folder_of_an_older_recipe_is_built_anew(cache: Path, tmp_path: Path) -> None:
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "recipe").write_text("0")
    builder = tmp_path / "python"
    builder.write_text(f'#!/bin/sh\nmkdir "$5" && echo {toy.RECIPE} > "$5/recipe" && touch "$5/new"\n')
    builder.chmod(0o755)
    assert (toy.ensure(python=str(builder)) / "new").exists()

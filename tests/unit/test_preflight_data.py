"""Data files: real parquet files, good ones and broken ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from data_files import columns, judged, rows, table, what
from tables import tabled

from launcher.check import data, row_rules
from launcher.check.facts import known_names
from launcher.check.subject import subject
from launcher.core.errors import UserError
from launcher.data import schema
from launcher.preset.files import load

pytest.importorskip("pyarrow")

pytestmark = pytest.mark.slow  # each file is read in a process of its own


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(home))


def test_a_missing_file_has_its_neighbour_named(tmp_path: Path) -> None:
    schema.write(tmp_path / "train.parquet", rows(64))
    (only,) = [each for each in judged(tmp_path, train=tmp_path / "trian.parquet") if "trian" in each.message]
    assert (only.id, only.level, only.keys) == ("P28", "error", ("data.train_files",))
    assert "file not found" in only.message


def test_the_nearest_name_is_offered(tmp_path: Path) -> None:
    schema.write(tmp_path / "train.parquet", rows(64))
    schema.write(tmp_path / "val.parquet", rows(64))
    missing = what(tmp_path, f"data.train={tmp_path}/trian.parquet")
    (only,) = [each for each in data.checks(missing) if each.id != "DATA-3"]
    assert "did you mean 'train.parquet'?" in only.message


def test_the_toy_is_made_on_the_first_start(tmp_path: Path, home: Path) -> None:
    found = list(data.checks(subject(load("toy-cpu"))))
    assert {(each.id, each.level) for each in found} == {("DATA-0", "info")}


@pytest.mark.parametrize(
    ("name", "content", "rule", "words"),
    [
        ("data.csv", b"a,b\n1,2\n", "P28", "veRL reads .parquet, .json, .jsonl, not '.csv'"),
        ("data.parquet", b"not a parquet file at all", "P28", "cannot be read: ArrowInvalid"),
    ],
)
def test_files_that_veRL_cannot_open(tmp_path: Path, name: str, content: bytes, rule: str, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    (only,) = judged(tmp_path, train=tmp_path / name)
    assert (only.id, only.level) == (rule, "error")
    assert words in only.message


@pytest.mark.parametrize("missing", ["prompt", "data_source", "reward_model"])
def test_each_column_is_needed(tmp_path: Path, missing: str) -> None:
    have = {name: values for name, values in columns().items() if name != missing}
    found = judged(tmp_path, train=table(tmp_path / "t.parquet", have))
    assert [(each.id, each.level) for each in found] == [("P29", "error")]
    assert f"no column '{missing}'" in found[0].message


def test_a_misspelt_column_is_recognised(tmp_path: Path) -> None:
    have = columns()
    have["prompts"] = have.pop("prompt")
    (only,) = judged(tmp_path, train=table(tmp_path / "t.parquet", have))
    assert "did you mean 'prompts'?" in only.message and only.keys == ("data.prompt_key",)
    assert judged(tmp_path, "data.prompt_key=prompts", train=tmp_path / "t.parquet", val=tmp_path / "t.parquet") == []


@tabled
def test_prompts_are_messages(tmp_path: Path, prompt: Any) -> None:
    path = tmp_path / "t.jsonl"
    line = {name: values[0] for name, values in columns().items()} | {"prompt": prompt}
    path.write_text((json.dumps(line) + "\n") * 64)
    (only,) = judged(tmp_path, train=path)
    assert only.id == "P29" and "64 of 64 rows" in only.message


def test_the_truth_must_be_there(tmp_path: Path) -> None:
    have = columns() | {"reward_model": [{"style": "rule"}] * 64}
    (only,) = judged(tmp_path, train=table(tmp_path / "t.parquet", have))
    assert only.id == "P29" and "ground_truth" in only.message


def test_what_veRL_reads_beside_the_prompt(tmp_path: Path) -> None:
    have = columns() | {"extra_info": ['{"index": 0}'] * 64}
    (only,) = judged(tmp_path, train=table(tmp_path / "t.parquet", have))
    assert only.id == "P29" and "extra_info is not a mapping" in only.message


def test_agent_loops_that_rows_name_are_known(tmp_path: Path) -> None:
    path = table(tmp_path / "t.parquet", columns() | {"agent_name": ["single_turn_agent", "tool_agnt"] * 32})
    (only,) = judged(tmp_path, train=path)
    assert (only.id, only.level) == ("AGENT-1", "error") and "did you mean 'tool_agent'" in only.message
    loops = tmp_path / "loops.yaml"
    loops.write_text("- {name: tool_agnt, _target_: mine.Loop}\n")
    assert judged(tmp_path, f"rollout.agent_loop_config_path={loops}", train=path) == []


def test_no_rows(tmp_path: Path) -> None:
    (only,) = judged(tmp_path, train=[])
    assert (only.id, only.group) == ("P6", "data")


@pytest.mark.parametrize(("count", "batch", "fails"), [(63, 64, True), (64, 64, False), (3, 64, True)])
def test_rows_make_a_batch(tmp_path: Path, count: int, batch: int, fails: bool) -> None:
    found = judged(tmp_path, f"data.train_batch_size={batch}", train=rows(count))
    assert [(each.id, each.group, each.level) for each in found] == [("P6", "config", "error")] * fails
    if fails:
        assert f"to {32 if count == 63 else 2} or less" in found[0].fix


def test_steps_beyond_the_epochs(tmp_path: Path) -> None:
    found = judged(tmp_path, "trainer.epochs=2", "trainer.steps=10", train=rows(256))
    assert [(each.id, each.change) for each in found] == [("P34b", {"trainer.epochs": 3})]
    assert judged(tmp_path, "trainer.epochs=3", "trainer.steps=10", train=rows(256)) == []


def test_a_source_that_nobody_scores(tmp_path: Path) -> None:
    mine = rows(64, source="my/sums")
    (only,) = judged(tmp_path, train=mine, val=mine)
    assert (only.id, only.level) == ("P31", "error") and "'my/sums'" in only.message
    (some,) = judged(tmp_path, train=mine + rows(64))
    assert some.level == "warning" and "64 of 128 training rows" in some.message
    function = tmp_path / "score.py"
    function.write_text("def compute_score(**_):\n    return 1\n")
    assert judged(tmp_path, f"reward.path={function}", train=mine, val=mine) == []


@pytest.mark.parametrize(
    "source", ["openai/gsm8k", "aime2024", "math", "searchR1_nq", "DigitalLearningGmbH/MATH-lighteval"]
)
def test_sources_that_veRL_knows(source: str) -> None:
    assert row_rules.known_source(source)


def test_the_table_of_sources_is_that_of_the_installed_veRL() -> None:
    scores = pytest.importorskip("importlib.util").find_spec("verl")
    if scores is None:
        pytest.skip("veRL is not installed")
    text = (Path(scores.submodule_search_locations[0]) / "utils/reward_score/__init__.py").read_text()
    assert [source for source in known_names().data_sources if f'"{source}"' not in text] == []


def test_without_pyarrow_it_says_so(tmp_path: Path) -> None:
    """An interpreter that has nothing: the answer names the package."""
    import subprocess
    import sys

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    schema.write(tmp_path / "t.parquet", rows(4))
    request = {"file": str(tmp_path / "t.parquet"), "prompt_key": "prompt", "template": {}}
    answer = data.worker.ask(str(tmp_path / "bare/bin/python"), "read_rows", request, timeout=30)
    assert answer == {"missing": "pyarrow"}
    (only,) = data._content(what(tmp_path), "data.train_files", "t.parquet", row_rules.Rows.from_json(answer))
    assert (only.id, only.level) == ("DATA-1", "info") and "pyarrow" in only.message


def test_escapes_in_foreign_text_do_not_reach_the_terminal(tmp_path: Path) -> None:
    mine = rows(64, source="\x1b[31mred")
    (only,) = judged(tmp_path, train=mine, val=mine)
    assert "\x1b" not in only.message


def test_a_file_of_json_holds_a_row_a_line_or_a_list_of_rows(tmp_path: Path) -> None:
    """Both are read by veRL (`datasets.load_dataset("json")`); what is none of them has its line named."""
    lines, array = tmp_path / "lines.jsonl", tmp_path / "array.json"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows(64)))
    array.write_text(json.dumps(rows(64), indent=1))
    assert judged(tmp_path, train=lines) == judged(tmp_path, train=array) == []
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps(rows(1)[0]) + "\n\n" + '{"prompt": [}\n')
    (only,) = judged(tmp_path, train=broken)
    assert only.id == "P28" and "line 3, column 13: Expecting value" in only.message
    broken.write_text("7\n")
    (only,) = judged(tmp_path, train=broken)
    assert only.id == "P28" and "line 1 is not an object" in only.message


def test_patterns_folders_and_commas(tmp_path: Path) -> None:
    """What veRL makes of a name: `*` and `[` are patterns, a folder and a comma are nothing."""
    for name in ("part-1.parquet", "part-2.parquet", "odd[1].parquet"):
        schema.write(tmp_path / name, rows(32))
    assert judged(tmp_path, train=tmp_path / "part-*.parquet") == []
    (odd,) = judged(tmp_path, train=tmp_path / "odd[1].parquet")
    assert "reads *, ? and [ in a name as a pattern" in odd.message
    (none,) = judged(tmp_path, train=tmp_path / "prat-*.parquet")
    assert "file not found" in none.message
    (folder,) = judged(tmp_path, train=tmp_path)
    assert "is a folder" in folder.message
    (comma,) = judged(tmp_path, train=Path(f"{tmp_path}/part-1.parquet,{tmp_path}/part-2.parquet"))
    assert comma.fix == f"use a list: [{tmp_path}/part-1.parquet,{tmp_path}/part-2.parquet]"


@pytest.mark.parametrize("nothing", ["[]", "''"])
def test_no_file_at_all(tmp_path: Path, nothing: str) -> None:
    with pytest.raises(UserError, match=r"does not set data\.train"):
        what(tmp_path, f"data.train={nothing}")


def test_rows_that_nobody_scores_end_the_run_where_they_are_all_of_a_set(tmp_path: Path) -> None:
    mine, theirs = rows(64, source="mine"), rows(64)
    for train, val, settings, level in (
        (mine, theirs, [], "error"),
        (mine + theirs, theirs, [], "warning"),
        (theirs, mine, [], "error"),
        (theirs, mine, ["trainer.validate_first=false", "trainer.validate_every=-1"], "warning"),
    ):
        (only,) = judged(tmp_path, *settings, train=train, val=val)
        assert (only.id, only.level) == ("P31", level)
    (only,) = judged(tmp_path, train=rows(64, source="GSM8K"))
    assert "did you mean 'openai/gsm8k'?" in only.message


@tabled
def test_truths_that_veRLs_own_function_finds_in_no_answer(tmp_path: Path, truth: Any, words: str) -> None:
    path = tmp_path / "odd.jsonl"
    for odd, level in ((64, "error"), (63, "warning")):
        like = [dict(row) for row in rows(64)]
        for row in like[:odd]:
            row["reward_model"] = {"style": "rule", "ground_truth": truth}
        path.write_text("".join(json.dumps(row) + "\n" for row in like))
        (only,) = judged(tmp_path, train=path)
        assert (only.id, only.level) == ("REWARD-6", level) and words in only.message
    own = tmp_path / "own.py"
    own.write_text("def compute_score(**named): return 1.0")
    assert judged(tmp_path, f"reward.path={own}", train=path) == []


def test_a_limit_of_zero_rows_is_no_limit(tmp_path: Path) -> None:
    from launcher.check.config.trainer import enough_samples

    assert list(enough_samples(what(tmp_path, "data.train_max_samples=0"))) == []
    (only,) = enough_samples(what(tmp_path, "data.train_max_samples=8"))
    assert "or set data.train_batch_size=8 or less" in only.fix

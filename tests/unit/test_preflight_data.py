"""Data files: real ones, good and broken, and the length of prompts with the tokenizer of a real small model."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus import assert_only
from data_files import judged, rows, what
from quoted import quoted
from tables import tabled

from launcher.check import data, row_rules
from launcher.check.facts import known_names
from launcher.check.subject import subject
from launcher.core.errors import UserError
from launcher.data import schema
from launcher.preset.files import load

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.slow  # each file is read in a process of its own


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(home))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tokenizer with a chat template, as the toy's."""
    pytest.importorskip("transformers")
    from ppo_tui_inside.probes import toy_task

    folder = tmp_path_factory.mktemp("model")
    toy_task._tokenizer([(2, 3), (4, 5)]).save_pretrained(folder)
    yield folder


@pytest.fixture(scope="module")
def bare(model, tmp_path_factory):
    """The same without a chat template."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    config = json.loads((model / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def written(folder, split, spec):
    """The path that a preset names; its file is written unless it is there."""
    path = folder / spec.get("name", f"{split}.parquet")
    content = [
        {name: value for name, value in {**row, **more}.items() if value is not None}
        for count, how, more in spec.get("rows", [[64, {}, {}]])
        for row in rows(count, **how)
    ]
    if "text" in spec:
        path.write_text(spec["text"])
    elif path.suffix == ".json":
        path.write_text(json.dumps(content, indent=1))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    elif not content:
        schema.write(path, content)
    elif not path.exists() or spec.get("at") != path.name:
        parquet.write_table(pyarrow.Table.from_pylist(content), path)
    return Path(",".join(f"{folder}/{at}" for at in spec["at"].split(","))) if "at" in spec else path


@pytest.mark.nightly(
    "launcher/check/", "launcher/data/", "launcher/inside/", "tests/data/tables/preflight_data", every=9
)
@tabled
def test_a_data_file(train, val, settings, expected, tmp_path, request):
    (tmp_path / "score.py").write_text("def compute_score(**_):\n    return 1\n")
    (tmp_path / "loops.yaml").write_text("- {name: tool_agnt, _target_: mine.Loop}\n")
    for fixture in ("model", "bare"):
        if f"path={{{fixture}}}" in str(settings):
            settings = [each.replace(f"{{{fixture}}}", str(request.getfixturevalue(fixture))) for each in settings]
    settings = [each.replace("{tmp}", str(tmp_path)) for each in settings]
    files = {"train": written(tmp_path, "train", train)}
    found = judged(tmp_path, *settings, **files, val=written(tmp_path, "val", val))
    longest = re.search(r"\d+(?= *;|\}$)", "".join(f"{each.message}; {each.change}" for each in found))
    assert_only(found, [each.replace("LONGEST", longest[0]) if longest else each for each in expected])
    if "LONGEST" in str(expected):
        assert judged(tmp_path, *settings, f"data.max_prompt_length={longest[0]}", **files) == []
        assert judged(tmp_path, *settings, f"data.max_prompt_length={int(longest[0]) - 1}", **files) != []


def test_long_prompts_that_are_dropped_leave_too_few(tmp_path, model):
    mixed = [*rows(48), *rows(16, words=60)]
    settings = f"model.path={model}", "data.max_prompt_length=128", "data.filter_overlong_prompts=true"
    dropped = judged(tmp_path, *settings, train=mixed)
    assert [each.id for each in dropped] == ["DATA-2", "P6"] and "about 48 of them short enough" in dropped[1].message


def test_the_toy_is_made_on_the_first_start(tmp_path: Path, home: Path) -> None:
    found = list(data.checks(subject(load("toy-cpu"))))
    assert {(each.id, each.level) for each in found} == {("DATA-0", "info")}


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


@pytest.mark.parametrize("nothing", ["[]", "''"])
def test_no_file_at_all(tmp_path: Path, nothing: str) -> None:
    with pytest.raises(UserError, match=r"does not set data\.train"):
        what(tmp_path, f"data.train={nothing}")


def test_a_limit_of_zero_rows_is_no_limit(tmp_path: Path) -> None:
    from launcher.check.config.trainer import enough_samples

    assert list(enough_samples(what(tmp_path, "data.train_max_samples=0"))) == []
    (only,) = enough_samples(what(tmp_path, "data.train_max_samples=8"))
    assert "or set data.train_batch_size=8 or less" in only.fix


def test_without_the_model_lengths_are_not_known(tmp_path: Path) -> None:
    for split in ("train", "val"):
        schema.write(tmp_path / f"{split}.parquet", rows(64))
    only = next(each for each in data.checks(what(tmp_path)) if each.id != "DATA-5")
    assert (only.id, only.level) == ("DATA-3", "info")


@pytest.mark.nightly("launcher/check/", "launcher/data/")
@pytest.mark.parametrize("trust", ["false", "true"], ids=["tokenizers", "transformers"])
def test_lengths_are_what_the_tokenizer_itself_says(tmp_path: Path, model: Path, trust: str) -> None:
    from transformers import AutoTokenizer

    schema.write(tmp_path / "t.parquet", rows(3, words=7))
    found = data.look(
        what(tmp_path, f"model.path={model}", f"model.trust_remote_code={trust}"),
        str(tmp_path / "t.parquet"),
        measured=True,
    )
    tokenizer = AutoTokenizer.from_pretrained(model)
    text = tokenizer.apply_chat_template(rows(1, words=7)[0]["prompt"], add_generation_prompt=True, tokenize=False)
    assert found.lengths == {str(len(tokenizer(text, add_special_tokens=False)["input_ids"])): 3}


@pytest.mark.nightly("launcher/check/", "launcher/data/")
def test_a_template_beyond_plain_jinja_is_left_to_transformers(tmp_path: Path, model: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for file in model.iterdir():
        (own / file.name).write_bytes(file.read_bytes())
    (own / "chat_template.jinja").write_text(
        "{% for message in messages %}{% generation %}{{ message.content }}{% endgeneration %}{% endfor %}"
    )
    schema.write(tmp_path / "t.parquet", rows(2))
    found = data.look(what(tmp_path, f"model.path={own}"), str(tmp_path / "t.parquet"), measured=True)
    assert sum(found.lengths.values()) == 2


def test_an_engine_without_room_for_any_prompt_is_an_error(tmp_path: Path, model: Path) -> None:
    found = judged(tmp_path, f"model.path={model}", "trainer.device=cuda", "rollout.max_model_len=4")
    assert [(each.id, each.level) for each in found if each.id == "P18"] == [("P18", "error")]


def test_what_was_found_is_kept_until_the_file_changes(tmp_path, model, monkeypatch):
    asked = []
    ask = data.worker.ask

    def counting(*args: Any, **named: Any) -> dict[str, Any]:
        asked.append(args)
        return ask(*args, **named)

    monkeypatch.setattr(data.worker, "ask", counting)
    path = tmp_path / "t.parquet"
    schema.write(path, rows(4))
    judge = what(tmp_path)
    first = data.look(judge, str(path))
    assert data.look(judge, str(path)) == first and len(asked) == 1
    schema.write(path, rows(5))
    assert data.look(judge, str(path)).rows == 5 and len(asked) == 2


def test_rows_with_the_same_prompt_are_reported(tmp_path: Path, model: Path) -> None:
    for split in ("train", "val"):
        schema.write(tmp_path / f"{split}.parquet", rows(64))
    found = {each.id: each for each in data.checks(what(tmp_path, f"model.path={model}"))}
    assert quoted(found["DATA-5"].message) == ["64", "64"]

"""The length of prompts, measured with the tokenizer of a real small model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from data_files import judged, rows, what

from launcher.check import data
from launcher.data import schema

pytest.importorskip("pyarrow")

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


def test_good_files_say_nothing(tmp_path: Path, model: Path) -> None:
    assert judged(tmp_path, f"model.path={model}") == []


def test_without_the_model_lengths_are_not_known(tmp_path: Path) -> None:
    for split in ("train", "val"):
        schema.write(tmp_path / f"{split}.parquet", rows(64))
    only = next(each for each in data.checks(what(tmp_path)) if each.id != "DATA-5")
    assert (only.id, only.level) == ("DATA-3", "info")


def test_long_prompts_are_measured_with_the_models_tokenizer(tmp_path: Path, model: Path) -> None:
    mixed = [*rows(48), *rows(16, words=60)]
    path = f"model.path={model}"
    (cut,) = judged(tmp_path, path, "data.max_prompt_length=128", train=mixed)
    assert (cut.id, cut.level) == ("DATA-2", "warning")
    assert "25 % of the training prompts are longer than 128 tokens and will lose their beginning" in cut.message
    longest = int(cut.message.rpartition(" ")[2])
    assert judged(tmp_path, path, f"data.max_prompt_length={longest}", train=mixed) == []
    assert judged(tmp_path, path, f"data.max_prompt_length={longest - 1}", train=mixed) != []
    dropped = judged(tmp_path, path, "data.max_prompt_length=128", "data.filter_overlong_prompts=true", train=mixed)
    assert [each.id for each in dropped] == ["DATA-2", "P6"]  # 48 rows are left for a batch of 64
    assert "about 48 of them short enough" in dropped[1].message


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


@pytest.mark.nightly("launcher/check/", "launcher/data/")
def test_a_model_without_a_chat_template(tmp_path: Path, model: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    config = json.loads((model / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (bare / "tokenizer_config.json").write_text(json.dumps(config))
    assert judged(tmp_path, f"model.path={bare}") == [], "the check of the model tells it, once"
    own = "model.custom_chat_template='{% for turn in messages %}{{ turn.content }} {% endfor %}'"
    assert judged(tmp_path, f"model.path={bare}", own) == []
    broken = "model.custom_chat_template='{% for turn in messages %}{{ turn'"
    (only,) = judged(tmp_path, f"model.path={bare}", broken)
    assert (only.id, only.group) == ("P27", "model") and "TemplateSyntaxError" in only.message


def test_a_template_that_prints_structures_is_reported(tmp_path: Path, model: Path) -> None:
    path = f"model.path={model}"
    (found,) = judged(tmp_path, path, "model.custom_chat_template='{% for m in messages %}{{ m }}{% endfor %}'")
    assert found.id == "DATA-6" and "prints structures instead of text into 64 of 64" in found.message


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


def test_prompts_that_are_nearly_all_too_long_are_not_to_be_dropped(tmp_path: Path, model: Path) -> None:
    (only,) = judged(tmp_path, f"model.path={model}", train=rows(64, words=40))
    (longest,) = (only.change or {}).values()
    assert only.change == {"data.max_prompt_length": longest} and longest > 64
    some = rows(64, words=40) + rows(128)
    (only,) = judged(tmp_path, f"model.path={model}", train=some)
    assert only.change == {"data.filter_overlong_prompts": True}


def test_a_validation_set_of_which_nothing_is_left_cannot_be_opened(tmp_path: Path, model: Path) -> None:
    settings = f"model.path={model}", "data.filter_overlong_prompts=true"
    (only,) = judged(tmp_path, *settings, val=rows(64, words=40))
    assert (only.id, only.level) == ("DATA-2", "error") and "validation" in only.message
    assert judged(tmp_path, *settings, val=rows(64, words=40) + rows(1)) == []


def test_a_template_that_cuts_messages_is_reported(tmp_path: Path, model: Path) -> None:
    path = f"model.path={model}"
    template = "{% for m in messages %}{{ m['content'][:12] }}{% endfor %}"
    (cut,) = judged(tmp_path, path, f"actor_rollout_ref.model.custom_chat_template={template!r}")
    assert (cut.id, cut.level) == ("DATA-6", "warning")
    assert cut.message.startswith(
        "the chat template cuts or leaves out a message of 64 of 64 training prompts: 'What is 2"
    )


def test_rows_with_the_same_prompt_are_reported(tmp_path: Path, model: Path) -> None:
    for split in ("train", "val"):
        schema.write(tmp_path / f"{split}.parquet", rows(64))
    found = {each.id: each for each in data.checks(what(tmp_path, f"model.path={model}"))}
    assert found["DATA-5"].message == (
        "64 of 64 training prompts are the same: a batch consists of copies of one prompt"
    )

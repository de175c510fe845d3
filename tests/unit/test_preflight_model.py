"""Models: sizes from files or the table, folders that are not whole, the hub, and what the sizes forbid."""

import http.server
import json
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tables import tabled

from launcher.check import model
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.estimate import models
from launcher.preset.files import load

CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "vocab_size": 300,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}


def safetensors(path: Path, **tensors: tuple[int, ...]) -> None:
    """A file of the format with zeros in fp16."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in tensors.items():
        size = 2
        for each in shape:
            size *= each
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model that is whole."""
    place = tmp_path / "model"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(CONFIG))
    (place / "tokenizer.json").write_text("{}")
    (place / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    safetensors(place / "model.safetensors", a=(300, 64), b=(64,))
    return place


def judge(path: object, *settings: str, assume: str | None = "1x24") -> Subject:
    return subject(load("gsm8k-0.5b-24gb", [f"model.path={path}", *settings]), assume=assume)


def checked(path: object, *settings: str, assume: str | None = "1x24") -> list[Finding]:
    return list(model.checks(judge(path, *settings, assume=assume)))


@tabled
def test_the_table_counts_what_the_models_cards_say(name: str, parameters: int) -> None:
    found = models.facts(name, {"HF_HOME": "/nowhere"})
    assert found is not None and (found.parameters, found.source) == (parameters, "table")


def test_every_shipped_preset_has_a_model_in_the_table() -> None:
    from launcher.preset.files import shipped

    names = {load(name).preset.model.path for name in shipped() if not name.startswith("toy")}
    assert names and all(models.facts(str(name), {"HF_HOME": "/nowhere"}) for name in names)


def test_a_folder_is_counted_from_its_weights(folder: Path) -> None:
    found = models.facts(str(folder))
    assert found is not None
    assert (found.parameters, found.source) == (300 * 64 + 64, "weights")
    (folder / "model.safetensors").unlink()
    found = models.facts(str(folder))
    assert found is not None and found.source == "config.json"
    layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64 + (64 + 64)
    assert found.parameters == 2 * 300 * 64 + 2 * layer + 64


@pytest.mark.slow
def test_counting_agrees_with_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    with torch.device("meta"):
        real = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**CONFIG))
    sizes = models.architecture(CONFIG)
    assert sizes is not None and sizes.count() == sum(each.numel() for each in real.parameters())


def test_the_cache_of_the_hub_is_found(tmp_path: Path, folder: Path) -> None:
    repo = tmp_path / "hub/models--me--mine"
    (repo / "snapshots").mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text("abc123\n")
    folder.rename(repo / "snapshots/abc123")
    assert models.folder_of("me/mine", {"HF_HOME": str(tmp_path)}) == repo / "snapshots/abc123"
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        assert models.folder_of("me/mine", {variable: str(tmp_path / "hub")}) is not None
    assert models.folder_of("me/other", {"HF_HOME": str(tmp_path)}) is None


def test_a_whole_model_says_nothing(folder: Path) -> None:
    assert checked(folder) == []


def _without(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


def _cut(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def _part_missing(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def _no_tokenizer(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_without("config.json"), "has no config.json"),
        (_without("model.safetensors"), "has no weights"),
        (_cut, "model.safetensors is truncated"),
        (_part_missing, "1 of 2 weight files are missing: model-00002-of-00002.safetensors"),
        (_no_tokenizer, "has no tokenizer"),
    ],
)
def test_a_model_that_is_not_whole(folder: Path, harm: Any, words: str) -> None:
    harm(folder)
    (only,) = checked(folder)
    assert (only.id, only.level) == ("MODEL-3", "error") and words in only.message


def test_old_weight_files_do(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert checked(folder) == []


def test_the_chat_template(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{}")
    (only,) = checked(folder)
    assert (only.id, only.level) == ("P27", "error")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert checked(folder) == []


def test_a_folder_that_is_not_there(tmp_path: Path, folder: Path) -> None:
    (only,) = checked(tmp_path / "modle", assume=None)
    assert (only.id, only.level) == ("MODEL-4", "error") and "did you mean 'model'?" in only.message


@tabled
def test_what_the_sizes_forbid(settings: tuple[str, ...], rule: str) -> None:
    what = judge("Qwen/Qwen2.5-0.5B-Instruct", *settings, assume="3x24")
    (only,) = model.shape(what)
    assert (only.id, only.level, only.group) == (rule, "error", "model")


def test_a_context_that_is_shorter_than_the_lengths_cuts_responses() -> None:
    (only,) = model.shape(judge("Qwen/Qwen2.5-0.5B-Instruct", "data.max_response_length=40000"))
    assert (only.id, only.level) == ("MODEL-2", "warning") and "end there" in only.message
    (only,) = model.shape(judge("Qwen/Qwen2.5-0.5B-Instruct", "data.max_response_length=40000", "trainer.device=cpu"))
    assert (only.id, only.level) == ("MODEL-2", "error")


def test_good_sizes_say_nothing() -> None:
    assert list(model.shape(judge("Qwen/Qwen2.5-0.5B-Instruct"))) == []
    assert list(model.shape(judge("Qwen/Qwen2.5-0.5B-Instruct", "rollout.tensor_model_parallel_size=2"))) == []


@pytest.fixture
def hub() -> Iterator[str]:
    """A hub of our own: `me/gated` answers 401, `me/good` 200, the rest 404."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            known = {"/me/good/resolve/main/config.json": 200, "/me/gated/resolve/main/config.json": 401}
            self.send_response(known.get(self.path, 404))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
@tabled
def test_what_the_hub_says(hub, name, rule, level, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_ENDPOINT", hub)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    for variable in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    (only,) = checked(name, assume=None)
    assert (only.id, only.level) == (rule, level)
    assert checked(name) == []  # a machine that is assumed may have it


def test_what_the_cache_lacks_is_fetched(hub, tmp_path, folder, monkeypatch):
    """A tokenizer alone in the cache is no broken model, unless the hub must not be asked."""
    repo = tmp_path / "hub/models--me--good"
    (repo / "snapshots").mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text("abc123")
    (folder / "model.safetensors").unlink()
    folder.rename(repo / "snapshots/abc123")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_ENDPOINT", hub)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    (only,) = checked("me/good", assume=None)
    assert (only.id, only.level) == ("MODEL-5", "info")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (only,) = checked("me/good", assume=None)
    assert (only.id, only.level) == ("MODEL-3", "error")


def test_offline_and_unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (only,) = checked("me/good", assume=None)
    assert only.id == "MODEL-4" and "HF_HUB_OFFLINE" in only.message
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (only,) = checked("me/good", assume=None)
    assert only.id == "MODEL-7" and "cannot be reached" in only.message
    monkeypatch.setenv("HF_ENDPOINT", "http://me:hunter2@mirror")
    (only,) = checked("me/good", assume=None)
    assert only.id == "MODEL-7" and "hunter2" not in only.message


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 8, b"\xff" * 64, struct.pack("<Q", 4) + b"[1]]", b"\x02" + b"\0" * 7 + b"{}"]
)
def test_no_file_upsets_the_reader_of_headers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    assert models.read_header(path) in (None, {})


@tabled
def test_a_configuration_that_says_nothing(folder: Path, content: str, words: str) -> None:
    (folder / "config.json").write_text(content)
    (only,) = checked(folder)
    assert (only.id, only.level) == ("MODEL-3", "error") and words in only.message


def test_other_tokenizers_and_configurations_are_looked_for(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for field, key in (
        ("model.tokenizer_path", "actor_rollout_ref.model.tokenizer_path"),
        ("critic.tokenizer_path", "critic.model.tokenizer_path"),
        ("model.hf_config_path", "actor_rollout_ref.model.hf_config_path"),
    ):
        assert checked(folder, f"{field}={folder}") == []
        (only,) = checked(folder, f"{field}={tmp_path}/nowhere", assume=None)
        assert (only.id, only.keys) == ("MODEL-4", (key,))
        (only,) = checked(folder, f"{field}={bare}")
        assert (only.id, only.keys) == ("MODEL-3", (key,))


def test_a_pointer_of_git_lfs_is_no_weight_file(folder: Path) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    (only,) = checked(folder)
    assert "git-lfs pointer" in only.message and "lfs pull" in only.fix


def test_a_reward_model_is_looked_for(folder: Path, tmp_path: Path) -> None:
    away = f"reward.model_path={tmp_path}/nowhere"
    assert checked(folder, away, assume=None) == []  # not used
    (only,) = checked(folder, away, "reward.use_model=true", assume=None)
    assert (only.id, only.keys) == ("MODEL-4", ("reward.reward_model.model_path",))


def test_a_template_is_a_text_and_no_path(folder: Path) -> None:
    (only,) = checked(folder, "model.custom_chat_template=/data/template.jinja")
    assert only.id == "P27" and "not a path" in only.message


def test_adapters_and_checkpoints_are_no_models(folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    (only,) = checked(adapter)
    assert "this is a LoRA adapter" in only.message and "model.lora_adapter_path" in only.fix
    (tmp_path / "global_step_3/actor").mkdir(parents=True)
    (tmp_path / "global_step_3/actor/model_world_size_1_rank_0.pt").touch()
    (only,) = checked(tmp_path / "global_step_3")
    assert "no config.json" in only.message and "ppo-tui export --model" in only.fix


@tabled
def test_names_that_are_none(name: str, words: str, fix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (only,) = checked(name, assume=None)
    assert only.id == "MODEL-4" and words in only.message and fix in only.fix


def test_who_is_logged_in_is_only_warned_of_a_gate(hub: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    for variable in ("HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "token").write_text("kept by hf auth login")
    (only,) = checked("me/gated", assume=None)
    assert (only.id, only.level) == ("MODEL-6", "warning")


def test_the_layers_that_an_adapter_may_name(folder: Path) -> None:
    safetensors(
        folder / "model.safetensors",
        **{
            "model.embed_tokens.weight": (300, 64),
            "model.layers.0.self_attn.q_proj.weight": (64, 64),
            "model.layers.0.input_layernorm.weight": (64,),
        },
    )
    assert models.modules(str(folder)) == ["model.layers.0.self_attn.q_proj"]
    assert "model.layers.0.mlp.up_proj" in models.modules("Qwen/Qwen2.5-0.5B-Instruct")
    assert models.modules("me/unknown") == []

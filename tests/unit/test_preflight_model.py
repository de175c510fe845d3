"""Models: sizes from files or the table, folders that are not whole, the hub, and what the sizes forbid."""

import http.server
import json
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus import assert_only
from tables import parts, tabled

from launcher.check import model
from launcher.check.finding import Finding
from launcher.check.subject import subject
from launcher.estimate import models
from launcher.preset.files import load

CONFIG = dict(parts("preflight_model")["config"][1])


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


def checked(path: object, *settings: str, assume: str | None = None) -> list[Finding]:
    return list(model.checks(subject(load("gsm8k-0.5b-24gb", [f"model.path={path}", *settings]), assume=assume)))


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


def in_the_cache(folder, cache, name):
    """Moves a model to a cache of the hub."""
    repo = cache / f"models--me--{name}"
    (repo / "snapshots").mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text("abc123\n")
    return folder.rename(repo / "snapshots/abc123")


def test_the_cache_of_the_hub_is_found(tmp_path: Path, folder: Path) -> None:
    place = in_the_cache(folder, tmp_path / "hub", "mine")
    assert models.folder_of("me/mine", {"HF_HOME": str(tmp_path)}) == place
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        assert models.folder_of("me/mine", {variable: str(tmp_path / "hub")}) is not None
    assert models.folder_of("me/other", {"HF_HOME": str(tmp_path)}) is None


@tabled
def test_a_model_folder(files, settings, expected, folder, tmp_path):
    (tmp_path / "bare").mkdir()
    for name, change in files.items():
        file = folder / name
        if change is None:
            file.unlink()
        elif isinstance(change, int):
            file.write_bytes(file.read_bytes()[:-change])
        elif change.startswith("-> "):
            file.rename(folder / change[3:])
        else:
            file.parent.mkdir(exist_ok=True)
            file.write_text(change)
    assert_only(checked(folder, *(each.format(tmp=tmp_path) for each in settings)), expected)


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
def test_a_name_of_the_hub(name, env, expected, hub, folder, tmp_path, monkeypatch):
    for variable in ("HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "login").mkdir()
    (tmp_path / "login" / "token").write_text("x")
    (folder / "model.safetensors").unlink()
    in_the_cache(folder, tmp_path / "cache", "good")
    for variable, value in {"HF_HOME": "{tmp}", **env}.items():
        monkeypatch.setenv(variable, value.format(hub=hub, tmp=tmp_path))
    assert_only(checked(name), expected)
    assert expected[0] not in ("MODEL-5", "MODEL-6") or checked(name, assume="1x24") == [], "it may have it"


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 8, b"\xff" * 64, struct.pack("<Q", 4) + b"[1]]", b"\x02" + b"\0" * 7 + b"{}"]
)
def test_no_file_upsets_the_reader_of_headers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    assert models.read_header(path) in (None, {})


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

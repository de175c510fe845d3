"""What a preset becomes for a rehearsal on the CPU."""

import json
import sys
from pathlib import Path

import pytest
from ppo_tui_inside.probes.small_model import shrunk
from tables import tabled
from waiting import PATIENCE

from launcher.check import worker
from launcher.check.checks import quick
from launcher.check.subject import subject
from launcher.core.errors import UserError
from launcher.preset import rehearsal
from launcher.preset.files import LoadedPreset, load, shipped
from launcher.preset.schema import FIELDS, value_of


def rehearsed(name: str, *settings: str) -> LoadedPreset:
    loaded = load(name, settings)
    return rehearsal.rehearsed(loaded, dict.fromkeys(rehearsal.models(loaded), "/small"), 4)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_preset_is_one_that_the_cpu_can_run(name: str):
    small = rehearsed(name, "model.path=/large", "data.train=/rows", "data.val=/rows")
    errors = [finding for finding in quick(subject(small)) if finding.level == "error"]
    assert [finding.id for finding in errors if finding.id != "CPU-1"] == []  # of another veRL
    preset = small.preset
    assert (preset.trainer.device, preset.rollout.engine, preset.model.path) == ("cpu", "hf", "/small")
    assert (preset.trainer.steps, preset.data.train_batch_size, preset.data.max_response_length) == (2, 2, 16) or (
        name == "toy-cpu" and preset.data.max_response_length == 8
    )


@tabled
def test_a_rehearsal_has_these_values(name, settings, expected):
    preset = rehearsed(name, *settings).preset
    assert {field: value_of(preset, FIELDS[field]) for field in expected} == expected
    assert preset.overrides.get("+data.mine") == (3 if "+data.mine=3" in settings else None)


@tabled
def test_what_no_cpu_can_rehearse_is_refused(setting: str, why: str):
    with pytest.raises(UserError, match=why):
        rehearsal.models(load("gsm8k-grpo-24gb", [setting]))


@pytest.mark.nightly("launcher/inside/", every=4)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "qwen3", "qwen3_moe", "gemma3_text", "deepseek_v3", "gpt_oss", "qwen3_next"])
def test_models_of_many_kinds_can_be_made_small(kind: str):
    auto = pytest.importorskip("transformers.models.auto")
    import torch

    config = shrunk(auto.configuration_auto.CONFIG_MAPPING[kind]())
    model = auto.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        logits = model(input_ids=torch.randint(5, 100, (1, 12))).logits
    assert logits.shape == (1, 12, config.vocab_size)
    assert model.num_parameters() < 30_000_000


@pytest.mark.nightly("launcher/preset/rehearsal", "launcher/inside/")
@pytest.mark.slow
def test_a_small_model_keeps_tokenizer_vocabulary_and_kind(tmp_path: Path, toy_build):
    pytest.importorskip("transformers")
    large = tmp_path / "large"
    large.mkdir()
    for file in (toy_build.cache / "toy" / "model").iterdir():
        if file.suffix != ".safetensors":
            (large / file.name).write_bytes(file.read_bytes())
    config = json.loads((large / "config.json").read_text())
    heads = {"num_attention_heads": 14, "num_key_value_heads": 2, "hidden_size": 896}
    sizes = {**heads, "num_hidden_layers": 24, "layer_types": ["full_attention"] * 24, "vocab_size": 151936}
    (large / "config.json").write_text(json.dumps(config | sizes))
    request = {"model": str(large), "trust": False, "folder": str(tmp_path / "small")}
    reply = worker.ask(sys.executable, "small_model", request, timeout=PATIENCE)
    assert reply == {"path": str(tmp_path / "small")}
    small = json.loads((tmp_path / "small" / "config.json").read_text())
    assert (small["vocab_size"], small["num_hidden_layers"], small["num_attention_heads"]) == (151936, 2, 7)
    assert (tmp_path / "small" / "tokenizer.json").read_bytes() == (large / "tokenizer.json").read_bytes()
    assert sum(file.stat().st_size for file in (tmp_path / "small").iterdir()) < 100e6

"""The veRL plugin in real veRL processes: its versions, the attention of models, and the engine "hf"."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from verl_process import WITH_VERL, Parent, environment

pytestmark = WITH_VERL

# A Qwen2 small enough to be made in a moment; saved as a model for the critic's loader.
TINY = """
from transformers import Qwen2Config, Qwen2ForCausalLM
config = Qwen2Config(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                     num_attention_heads=2, num_key_value_heads=1)
Qwen2ForCausalLM(config).save_pretrained({folder!r})
"""
CRITIC = """
import verl
from transformers import AutoConfig
from verl.utils.model import load_valuehead_model
config = AutoConfig.from_pretrained({folder!r}, num_labels=1)
model = load_valuehead_model({folder!r}, "float32", config, False)
print("attention", model.config._attn_implementation)
"""
ACTOR = """
from transformers import AutoModelForCausalLM
from verl.plugin.platform import PlatformRegistry
for attention in ("flash_attention_2", "eager", "sdpa"):
    config = AutoConfig.from_pretrained({folder!r}, attn_implementation=attention)
    model = AutoModelForCausalLM.from_pretrained({folder!r}, config=config)
    print(attention, "becomes", model.config._attn_implementation)
print(PlatformRegistry.get("cpu"))
"""
CPU = """
import ppo_tui_inside.plugin.rollout, verl, torch, sys
from transformers import AutoModelForCausalLM
from ppo_tui_inside.plugin.rollout import HFServer, Sampling
from verl.plugin.platform import get_platform
from verl.workers.rollout.base import get_rollout_class
from verl.workers.rollout.replica import get_rollout_replica_class
print(type(get_platform()).__name__, get_rollout_class("hf").__name__, get_rollout_replica_class("hf").__name__)
print(torch.cpu.max_memory_allocated() >= torch.cpu.memory_allocated() / 2 > 1e6)
for ignore_eos in (False, True):
    server = HFServer(sys.argv[1], 64, 8, 1, 0, ignore_eos)
    server.model = AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
    found = server._sample([[5, 6, 7]] * 50, Sampling(1.0, 1.0, 0, 8))
    print("lengths", *sorted({len(each.token_ids) == len(each.log_probs) == 8 for each in found}))
"""
OLDER = "import verl; verl.__version__ = '0.8.0'\nimport ppo_tui_inside.plugin\n"
BARE = {"VERL_USE_EXTERNAL_MODULES": ""}


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory, verl: Parent) -> tuple[str, str]:
    """The folder of the model, and what its critic says without the plugin."""
    folder = str(tmp_path_factory.mktemp("tiny"))
    return folder, verl.python((TINY + CRITIC).format(folder=folder), **BARE).stderr


def test_verl_runs_on_the_cpu_platform_and_responses_are_as_long_as_allowed(verl: Parent, toy_build: Any) -> None:
    """The plugin comes first, as in a Ray worker that meets a pickled class of it before it imports verl."""
    done = verl.python(CPU, str(toy_build.cache / "toy" / "model"), VERL_PLATFORM="cpu")
    assert done.stdout.splitlines()[-4:] == [
        "CpuPlatform HFAdapter HFReplica",
        "True",
        "lengths False True",
        "lengths True",
    ], done.stderr[-2000:]


def test_another_verl_is_refused_in_one_sentence(verl: Parent) -> None:
    done = verl.python(OLDER, VERL_PLATFORM="cpu", **BARE)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ppo_tui_inside.plugin.UnsupportedVerl: ppo-tui's CPU platform (VERL_PLATFORM=cpu) works with "
        "veRL 0.9.1 only, but veRL 0.8.0 is installed; install verl==0.9.1 or choose a preset for GPUs"
    )


without_flash_attention = pytest.mark.skipif(
    importlib.util.find_spec("flash_attn") is not None, reason="flash-attn is installed here"
)


@without_flash_attention
def test_models_load_without_flash_attention(verl: Parent, without: tuple[str, str]) -> None:
    folder, said = without
    assert "is not a value head model" in said, "veRL can do without the fallback: drop it"
    done = verl.python((CRITIC + ACTOR).format(folder=folder))
    becomes = [
        f"{asked} becomes {got}" for asked, got in (("flash_attention_2", "sdpa"), ("eager",) * 2, ("sdpa",) * 2)
    ]
    assert done.stdout.splitlines()[-5:] == ["attention sdpa", *becomes, "None"], done.stderr
    assert done.stderr.count("ppo-tui: flash-attn is not usable here") == done.stderr.count("ppo-tui:") == 1


@without_flash_attention
def test_on_another_verl_the_fallback_warns_and_steps_aside(verl: Parent, without: tuple[str, str]) -> None:
    done = verl.python(OLDER + CRITIC.format(folder=without[0]), **BARE)
    assert "ppo-tui: flash-attn is not usable here, but veRL 0.8.0 is not 0.9.1" in done.stderr
    assert "is not a value head model" in done.stderr


def test_flash_attention_that_fails_to_import_counts_as_missing(without: tuple[str, str], tmp_path: Path) -> None:
    """A wheel for another torch is found and then has undefined symbols."""
    metadata = tmp_path / "flash_attn-2.8.3.dist-info"
    for folder in (tmp_path / "flash_attn", metadata):
        folder.mkdir()
    (tmp_path / "flash_attn/__init__.py").write_text("raise ImportError('undefined symbol: _ZN3c105ErrorC2E')\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.8.3\n")
    (metadata / "top_level.txt").write_text("flash_attn\n")
    words = [sys.executable, "-c", CRITIC.format(folder=without[0])]
    env = environment(PYTHONPATH=str(tmp_path))
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split()[-2:] == ["attention", "sdpa"], done.stderr

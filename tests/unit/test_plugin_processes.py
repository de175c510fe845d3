"""The veRL plugin in real veRL processes: which versions it works with, and what attention models get."""

import importlib.util
import subprocess
import sys
from pathlib import Path

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
import verl
from transformers import AutoConfig, AutoModelForCausalLM
for attention in ("flash_attention_2", "eager", "sdpa"):
    config = AutoConfig.from_pretrained({folder!r}, attn_implementation=attention)
    model = AutoModelForCausalLM.from_pretrained({folder!r}, config=config)
    print(attention, "becomes", model.config._attn_implementation)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, verl: Parent) -> str:
    folder = str(tmp_path_factory.mktemp("tiny"))
    assert verl.python(TINY.format(folder=folder), VERL_USE_EXTERNAL_MODULES="").returncode == 0
    return folder


def test_the_cpu_platform_is_what_verl_then_runs_on(verl: Parent) -> None:
    script = """
import verl, torch
from verl.plugin.platform import get_platform
from verl.workers.rollout.base import get_rollout_class
from verl.workers.rollout.replica import get_rollout_replica_class
print(type(get_platform()).__name__)
print(get_rollout_class("hf").__name__, get_rollout_replica_class("hf").__name__)
print(torch.cpu.max_memory_allocated() >= torch.cpu.memory_allocated() / 2 > 1e6)
"""
    done = verl.python(script, VERL_PLATFORM="cpu")
    assert done.stdout.split() == ["CpuPlatform", "HFAdapter", "HFReplica", "True"], done.stderr


def test_without_the_cpu_platform_verl_stays_as_it_is(verl: Parent) -> None:
    script = """
import verl
from verl.plugin.platform import PlatformRegistry
print(PlatformRegistry.get("cpu"))
"""
    assert verl.python(script).stdout.split() == ["None"]


def test_another_verl_is_refused_in_one_sentence(verl: Parent) -> None:
    script = """
import verl
verl.__version__ = "0.8.0"
import ppo_tui_inside.plugin
"""
    done = verl.python(script, VERL_PLATFORM="cpu", VERL_USE_EXTERNAL_MODULES="")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ppo_tui_inside.plugin.UnsupportedVerl: ppo-tui's CPU platform (VERL_PLATFORM=cpu) works with "
        "veRL 0.9.1 only, but veRL 0.8.0 is installed; install verl==0.9.1 or choose a preset for GPUs"
    )


def test_importing_the_plugin_first_works_too(verl: Parent) -> None:
    """A Ray worker may meet a pickled class of the plugin before it imports verl."""
    done = verl.python("import ppo_tui_inside.plugin.rollout, verl; print(verl.__version__)", VERL_PLATFORM="cpu")
    assert done.returncode == 0, done.stderr


without_flash_attention = pytest.mark.skipif(
    importlib.util.find_spec("flash_attn") is not None, reason="flash-attn is installed here"
)


@without_flash_attention
def test_verls_critic_loads_without_flash_attention(verl: Parent, model: str) -> None:
    without = verl.python(CRITIC.format(folder=model), VERL_USE_EXTERNAL_MODULES="")
    assert "is not a value head model" in without.stderr, "veRL can do without the fallback: drop it"
    done = verl.python(CRITIC.format(folder=model))
    assert done.stdout.split()[-2:] == ["attention", "sdpa"], done.stderr
    assert done.stderr.count("ppo-tui: flash-attn is not usable here") == 1


@without_flash_attention
def test_an_actor_gets_the_attention_it_asks_for_but_flash_attention(verl: Parent, model: str) -> None:
    done = verl.python(ACTOR.format(folder=model))
    assert done.stdout.splitlines()[-3:] == [
        "flash_attention_2 becomes sdpa",
        "eager becomes eager",
        "sdpa becomes sdpa",
    ], done.stderr
    assert done.stderr.count("ppo-tui:") == 1


@without_flash_attention
def test_on_another_verl_the_fallback_warns_and_steps_aside(verl: Parent, model: str) -> None:
    script = "import verl; verl.__version__ = '0.8.0'\nimport ppo_tui_inside.plugin\n"
    done = verl.python(script + CRITIC.format(folder=model), VERL_USE_EXTERNAL_MODULES="")
    assert "ppo-tui: flash-attn is not usable here, but veRL 0.8.0 is not 0.9.1" in done.stderr
    assert "is not a value head model" in done.stderr


def test_flash_attention_that_fails_to_import_counts_as_missing(model: str, tmp_path: Path) -> None:
    """A wheel for another torch is found and then has undefined symbols."""
    package = tmp_path / "flash_attn"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('undefined symbol: _ZN3c105ErrorC2E')\n")
    metadata = tmp_path / "flash_attn-2.8.3.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.8.3\n")
    (metadata / "top_level.txt").write_text("flash_attn\n")
    done = subprocess.run(
        [sys.executable, "-c", CRITIC.format(folder=model)],
        env=environment(PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.split()[-2:] == ["attention", "sdpa"], done.stderr

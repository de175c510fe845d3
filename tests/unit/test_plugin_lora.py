"""The v1 trainer's real `_compute_values`: what the critic is told about adapters."""

import importlib.util
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"
)

# The critic's workers answer with the note they got, which ends the call where they would compute.
SCRIPT = """
from types import SimpleNamespace
import verl
from verl.trainer.ppo.v1.trainer_base import PPOTrainer

class Asked(Exception): pass

class Critic:
    def infer_batch(self, batch):
        raise Asked(sorted(batch.extra_info))

trainer = SimpleNamespace(
    critic_wg=Critic(),
    config=SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(temperature=1.0))
    ),
)
batch = SimpleNamespace(extra_info={"no_lora_adapter": True})  # as _compute_ref_log_prob leaves it
try:
    PPOTrainer._compute_values(trainer, batch, metrics={})
except Asked as asked:
    print(asked.args[0])
"""


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        ("launcher.verl_plugin", "['compute_loss', 'temperature']"),
        ("", "['compute_loss', 'no_lora_adapter', 'temperature']"),  # or the change is not needed any more
    ],
)
def test_the_critic_is_not_told_to_leave_its_adapter_out(plugin: str, told: str) -> None:
    env = {**os.environ, "VERL_USE_EXTERNAL_MODULES": plugin}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip().splitlines()[-1:] == [told], done.stderr[-2000:]

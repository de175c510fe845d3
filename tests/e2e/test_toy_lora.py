"""PPO with LoRA on the real veRL: actor and critic train adapters; the reference is the actor without one."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"
    ),
]


def test_actor_and_critic_learn_with_adapters(tmp_path: Path) -> None:
    words = ["model.lora_rank=4", "critic.lora_rank=4", "trainer.steps=3", "trainer.validate_first=false"]
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ppo-tui"), "run", "toy-cpu", *words, "--plain"],
        env={**os.environ, "PPO_TUI_HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (log,) = tmp_path.glob("runs/*/attempts/1/metrics.jsonl")
    steps = [json.loads(line)["data"] for line in log.read_text().splitlines()][-3:]
    assert all(step["actor/grad_norm"] > 0 and step["critic/grad_norm"] > 0 for step in steps)
    # the first update is made where actor and reference are the same; by the third the adapter has moved it
    assert 0 <= steps[0]["actor/kl_loss"] < steps[2]["actor/kl_loss"]

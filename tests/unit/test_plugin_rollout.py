"""The engine "hf" with the real toy model: responses of full length, as `tune` requests them."""

from typing import Any

from verl_process import WITH_VERL, Parent

pytestmark = WITH_VERL

SCRIPT = """
import sys
import verl
from transformers import AutoModelForCausalLM
from ppo_tui_inside.plugin.rollout import HFServer, Sampling

for ignore_eos in (False, True):
    server = HFServer(sys.argv[1], 64, 8, 1, 0, ignore_eos)
    server.model = AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
    found = server._sample([[5, 6, 7]] * 50, Sampling(1.0, 1.0, 0, 8))
    print("lengths", *sorted({len(each.token_ids) == len(each.log_probs) == 8 for each in found}))
"""


def test_all_responses_are_as_long_as_allowed(verl: Parent, toy_build: Any) -> None:
    model = str(toy_build.cache / "toy" / "model")
    done = verl.python(SCRIPT, model, VERL_PLATFORM="cpu", VERL_USE_EXTERNAL_MODULES="ppo_tui_inside.plugin")
    lines = [line for line in done.stdout.splitlines() if line.startswith("lengths")]
    assert lines == ["lengths False True", "lengths True"], done.stderr[-2000:]

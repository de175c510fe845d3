"""The v1 trainer's real `_compute_values`: what the critic is told about adapters."""

import json

import pytest
from verl_process import WITH_VERL, Parent

pytestmark = WITH_VERL

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
        ("ppo_tui_inside.plugin", "['compute_loss', 'temperature']"),
        ("", "['compute_loss', 'no_lora_adapter', 'temperature']"),  # or the change is not needed any more
    ],
)
def test_the_critic_is_not_told_to_leave_its_adapter_out(verl: Parent, plugin: str, told: str) -> None:
    done = verl.python(SCRIPT, VERL_USE_EXTERNAL_MODULES=plugin)
    assert done.stdout.strip().splitlines()[-1:] == [told], done.stderr[-2000:]


# What `_build_lora_module` of veRL 0.9.1 does with each model, with real ones of transformers and peft.
ADAPTED = """
import json, sys
import verl
from peft import LoraConfig, TaskType, get_peft_model
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2ForTokenClassification

shape = Qwen2Config(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                    num_attention_heads=2, num_key_value_heads=1, num_labels=1)
for writes, targets, excluded in json.loads(sys.argv[1]):
    model = (Qwen2ForCausalLM if writes else Qwen2ForTokenClassification)(shape)
    adapted = get_peft_model(model, LoraConfig(task_type=TaskType.CAUSAL_LM, r=2, target_modules=targets,
                                               exclude_modules=excluded, bias="none"))
    learns = [name for name, weight in adapted.named_parameters() if weight.requires_grad]
    print(json.dumps([type(adapted).__name__, learns]))
"""
CASES: list[tuple[bool, str | list[str], str | list[str] | None]] = [  # writes text, adapted, not adapted
    (False, "all-linear", None),
    (False, ["q_proj"], ["k_proj"]),
    (False, "all-linear", r".*\.k_proj"),
    (True, "all-linear", None),
]


def test_a_critic_has_an_adapter_and_a_head_that_learn(verl: Parent) -> None:
    done = verl.python(ADAPTED, json.dumps(CASES))
    assert done.returncode == 0, done.stderr[-2000:]
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    found = [
        (
            kind,
            *(any(part in name for name in learns) for part in ("q_proj.lora_A", "k_proj.lora_A")),
            sorted(name.split(".")[-1] for name in learns if "score.modules_to_save" in name),
        )
        for kind, learns in told
    ]
    head = ["bias", "weight"]
    assert found == [
        ("PeftModelForTokenClassification", True, True, head),
        ("PeftModelForTokenClassification", True, False, head),
        ("PeftModelForTokenClassification", True, False, head),
        ("PeftModelForCausalLM", True, True, []),
    ]

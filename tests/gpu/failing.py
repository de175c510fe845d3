"""Fifteen failures made for real, whose consoles `ppo-tui diagnose` is measured with: ten on a GPU, five with the toy.

PYTHONPATH=tests/support python tests/gpu/failing.py [PLACES]   those of the toy, so many at a time
"""

import sys
from collections.abc import Sequence

from judged import GROUPED, REWARDS, TOY, Row, judged

BROKEN = "{% for m in messages %}{{ m.content.text.strip() }}{% endfor %}{{ undefined_macro() }}"


def _fails(name: str, fault: str, *settings: str) -> Row:
    return Row(f"fails-{name}", fault, "", (*GROUPED, "trainer.steps=2", *settings))


def _toy(name: str, fault: str, *settings: str) -> Row:
    return Row(f"fails-{name}", fault, "", (*TOY, "trainer.steps=2", *settings), preset="toy-cpu")


ROWS: Sequence[Row] = (
    _fails("tensor-parallel", "two GPUs for the engine, and there is one", "rollout.tensor_model_parallel_size=2"),
    _fails(
        "engine-memory",
        "no memory for the KV cache",
        "rollout.gpu_memory_utilization=0.005",
        "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=null",
    ),
    _fails(
        "lora-target",
        "a LoRA target that the model does not have",
        *(
            "actor.strategy=fsdp2",
            "rollout.load_format=safetensors",
            "model.lora_rank=8",
            "model.target_modules=[wqkv]",
        ),
    ),
    _fails("dtype", "a dtype that torch does not have", "actor.model_dtype=bf8"),
    _fails("template", "a chat template that calls an undefined macro", f"model.custom_chat_template={BROKEN}"),
    _fails("flash-attention", "flash-attn is not installed", "model.attention=flash_attention_2"),
    _fails("length", "the engine's length is below that of a prompt", "rollout.max_model_len=32"),
    _fails("sglang", "SGLang is not installed", "rollout.engine=sglang"),
    _fails("loader", "a load format that vLLM does not have", "rollout.load_format=safetensor"),
    _fails("quantization", "a quantization that vLLM does not have", "rollout.quantization=int3"),
)
TOYS: Sequence[Row] = (
    _toy("tracker", "the tracker is not installed", "trainer.loggers=[swanlab]"),
    _toy("column", "the column of the prompts is not in the data", "data.prompt_key=question"),
    _toy("critic", "the critic's model is not there", "critic.model.path=/nowhere/model"),
    _toy("reward", "the reward function raises", REWARDS, "reward.function=fails"),
    _toy("truncation", "prompts are longer than the limit", "data.max_prompt_length=4", "data.truncation=error"),
)
if __name__ == "__main__":
    judged(None, TOYS, places=int(sys.argv[1]) if sys.argv[1:] else 2)

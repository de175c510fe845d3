"""Steps of one fixed piece of work for a GPU, to see what disturbs them.

    python3 fixed_work.py KIND METRICS    until it is ended; a line a step, in the shape of veRL's file logger

A model of 0.5B parameters with random weights (without a GPU a toy) learns from 32 rows. Of the kind
`rollout` it writes for most of each step, token by token: many small kernels that one Python thread launches,
as an eager engine does, which feel a busy CPU at once. Of the kind `update` it only learns, from rows so long
that the GPU is what is waited for.
"""

import json
import sys
import time
from pathlib import Path

import torch
from models import SHAPES
from transformers import Qwen2Config, Qwen2ForCausalLM

LENGTHS = {"rollout": (128, 24), "update": (512, 0)}  # tokens of a prompt, and of its answer
TOY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@torch.no_grad()
def answers(model: Qwen2ForCausalLM, prompts: torch.Tensor, length: int) -> torch.Tensor:
    """Prompts with their answers, rows x tokens; the likeliest token each time."""
    found, last, cache = [prompts], prompts, None
    for _ in range(length):
        out = model(input_ids=last, past_key_values=cache, use_cache=True, logits_to_keep=1)
        last, cache = out.logits[:, -1:].argmax(-1), out.past_key_values
        found.append(last)
    return torch.cat(found, 1)


def main(kind: str, metrics: Path) -> None:
    prompt, answer = LENGTHS[kind]
    on_gpu = torch.cuda.is_available()
    device, shape, vocabulary, rows = ("cuda", SHAPES["qwen-0.5b"], 151_936, 32) if on_gpu else ("cpu", TOY, 512, 4)
    torch.manual_seed(0)
    with torch.device(device):
        model = Qwen2ForCausalLM(Qwen2Config(vocab_size=vocabulary, **shape)).to(torch.bfloat16)
        prompts = torch.randint(vocabulary, (rows, prompt))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=on_gpu)
    step = 0
    with metrics.open("w", buffering=1) as file:
        while True:
            began = time.perf_counter()
            tokens = answers(model, prompts, answer)
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()  # waits for the GPU
            seconds = time.perf_counter() - began
            step += 1
            data = {"perf/throughput": tokens.numel() / seconds, "perf/time_per_step": seconds}
            file.write(json.dumps({"step": step, "data": data}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

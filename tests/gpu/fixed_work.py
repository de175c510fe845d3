"""Steps of one fixed piece of work for a GPU, to see what disturbs them.

    python3 fixed_work.py KIND METRICS [SPANS]    until it is ended; a line a step, in the shape of veRL's file logger

A model of 0.5B parameters with random weights (without a GPU a toy) learns from 32 rows. Of the kind
`rollout` it writes for most of each step, token by token: many small kernels that one Python thread launches,
as an eager engine does, which feel a busy CPU at once. Of the kind `update` it only learns, from rows so long
that the GPU is what is waited for. The kind `spans` is an update which in every second block of steps writes spans into
the folder SPANS, by the plugin of ppo-tui (PPO_TUI_INSIDE is its folder): as many per step as veRL does for so many
responses, those of a rank by itself, those of the other processes by another one.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from models import SHAPES
from transformers import Qwen2Config, Qwen2ForCausalLM

LENGTHS = {"rollout": (128, 24), "update": (512, 0), "spans": (512, 0)}  # tokens of a prompt, and of its answer
BLOCK, ON = 16, (True, False, False, True)  # steps with or without spans, in turn
RANK = ("compute_log_prob", "compute_ref_log_prob", "infer_batch", "update_actor", "train_batch", "update_weights")
TRAINER = ("data", "gen", "reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor", "step")
RESPONSE = ("generate", "session", "reward")
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


def plugin(folder: str) -> Any:
    """ppo-tui's module of spans, without the rest of the plugin, which needs veRL."""
    os.environ["PPO_TUI_SPANS"] = folder
    sys.path.insert(0, os.environ["PPO_TUI_INSIDE"])
    package = ModuleType("ppo_tui_inside.plugin")
    package.__path__ = [os.environ["PPO_TUI_INSIDE"] + "/ppo_tui_inside/plugin"]
    sys.modules[package.__name__] = package
    return importlib.import_module("ppo_tui_inside.plugin.spans")


def others(folder: str) -> None:
    """The spans of trainer, rollout and reward: for each number of a step that comes in."""
    spans = plugin(folder)
    for line in sys.stdin:
        rows = int(line)
        for name in TRAINER:
            with spans.Span(name, "trainer", None, ',"step":1'):
                pass
        for name in RESPONSE:
            for _ in range(rows):
                with spans.Span(name, "replica_0", long=False):
                    pass


class Spans:
    """The spans of a step by this process, and by another one."""

    def __init__(self, folder: str, rows: int) -> None:
        self.own, self.rows = plugin(folder), rows
        self.other = subprocess.Popen([sys.executable, __file__, "others", folder], stdin=subprocess.PIPE, text=True)

    def write(self) -> None:
        for _ in range(3):  # a pass of the actor, of the critic, and mini-batches
            for name in RANK:
                with self.own.Span(name, "rank_0"):
                    pass
        now = time.time()
        for _ in range(4):
            parts = json.dumps([(4096, 0.123456)] * 8)
            self.own.write("micro_batches", "rank_0", now, now, f',"count":8,"parts":{parts}')
        assert self.other.stdin is not None
        self.other.stdin.write(f"{self.rows}\n")
        self.other.stdin.flush()


def main(kind: str, metrics: Path, folder: str = "") -> None:
    prompt, answer = LENGTHS[kind]
    on_gpu = torch.cuda.is_available()
    device, shape, vocabulary, rows = ("cuda", SHAPES["qwen-0.5b"], 151_936, 32) if on_gpu else ("cpu", TOY, 512, 4)
    torch.manual_seed(0)
    with torch.device(device):
        model = Qwen2ForCausalLM(Qwen2Config(vocab_size=vocabulary, **shape)).to(torch.bfloat16)
        prompts = torch.randint(vocabulary, (rows, prompt))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=on_gpu)
    step, spans = 0, Spans(folder, rows) if kind == "spans" else None
    with metrics.open("w", buffering=1) as file:
        while True:
            began = time.perf_counter()
            tokens = answers(model, prompts, answer)
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()  # waits for the GPU
            on = spans is not None and ON[step // BLOCK % len(ON)]
            if spans is not None and on:
                spans.write()
            seconds = time.perf_counter() - began
            step += 1
            data = {"perf/throughput": tokens.numel() / seconds, "perf/time_per_step": seconds, "spans": on}
            file.write(json.dumps({"step": step, "data": data}) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "others":
        others(sys.argv[2])
    else:
        main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])

"""Makes a small model of another one's kind, with random weights; a script for veRL's interpreter.

Request on stdin: {"model", "trust", "folder"}: the name or folder of a model, whether its own code may run, and the
target. Reply: {"path"}, the model itself if it has only a few megabytes, or {"error"}. Architecture, tokenizer with
template, and vocabulary size stay.
"""

import shutil
from pathlib import Path
from typing import Any

from . import Request, answer, described

SMALL = 64_000_000  # bytes of weights that can be trained as they are
LAYERS, HEAD, EXPERTS = 2, 8, 4
FILES = (".jinja", ".json", ".model", ".py", ".tiktoken", ".txt")


def reply(request: Request) -> Request:
    try:
        return {"path": made(request["model"], bool(request["trust"]), Path(request["folder"]))}
    except Exception as error:
        return {"error": described(error)}


def made(name: str, trust: bool, folder: Path) -> str:
    """The small model's folder."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(name, trust_remote_code=trust)
    if hasattr(config, "vision_config"):
        raise ValueError("it reads images, which the CPU engine does not support")
    if Path(name).is_dir() and 0 < sum(file.stat().st_size for file in Path(name).glob("*.safetensors")) < SMALL:
        return name
    model = AutoModelForCausalLM.from_config(shrunk(config), trust_remote_code=trust)
    model(input_ids=model.dummy_inputs["input_ids"])  # sizes that do not fit together are known now
    folder.mkdir()
    for file in beside_weights(name):
        shutil.copy(file, folder)
    model.save_pretrained(folder)
    return str(folder)


def beside_weights(name: str) -> list[Path]:
    """A model's files without weights: its tokenizer, template and code."""
    from huggingface_hub import snapshot_download

    folder = Path(name if Path(name).is_dir() else snapshot_download(name, allow_patterns=[f"*{end}" for end in FILES]))
    return [file for file in folder.iterdir() if file.suffix in FILES and ".index." not in file.name]


def shrunk(config: Any) -> Any:
    """A configuration with few layers (one of each kind) and few heads, at the original ratio of heads per key head."""
    heads = config.num_attention_heads
    keys = getattr(config, "num_key_value_heads", None) or heads
    kinds = list(dict.fromkeys(getattr(config, "layer_types", None) or ["full_attention"]))
    layers = (kinds * LAYERS)[: max(LAYERS, len(kinds))]
    few = max(1, heads // keys) if keys < heads else 2
    sizes = {
        "num_hidden_layers": len(layers),
        "layer_types": layers,
        "max_window_layers": len(layers),
        "num_attention_heads": few,
        "num_key_value_heads": 1 if keys < heads else 2,
        "hidden_size": HEAD * few,
        "intermediate_size": 2 * HEAD * few,
        "moe_intermediate_size": HEAD,
        "num_experts": EXPERTS,
        "num_local_experts": EXPERTS,
        "n_routed_experts": EXPERTS,
        "num_experts_per_tok": EXPERTS // 2,
    }
    if not hasattr(config, "qk_rope_head_dim"):  # heads with parts of different sizes
        sizes["head_dim"] = HEAD
    for name, value in sizes.items():
        if getattr(config, name, None) is not None:
            setattr(config, name, value)
    return config


if __name__ == "__main__":
    answer(reply)

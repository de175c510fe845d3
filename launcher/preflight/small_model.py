"""Makes a small model of the kind of another one, with random weights; a script for the interpreter that has veRL.

Asked with {"model", "trust", "folder"} on stdin: the name or folder of a model, whether its own code may run, and
where the small one goes. Answers {"path", "kind"}: where it is and its architecture, which is Qwen2's where the model's
own cannot be made small; or {"error"}. The tokenizer, its template and the size of the vocabulary stay as they are. A
model of a few megabytes is taken itself.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

SMALL = 64_000_000  # bytes of weights that can be trained as they are
LAYERS, HEAD, EXPERTS = 2, 8, 4
FILES = (".jinja", ".json", ".model", ".py", ".tiktoken", ".txt")


def main() -> None:
    request = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what modules print is not the answer
        try:
            answer = made(request["model"], bool(request["trust"]), Path(request["folder"]))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        json.dump(answer, out)


def made(name: str, trust: bool, folder: Path) -> dict[str, Any]:
    """The small model in `folder`, whole or not at all."""
    from transformers import AutoConfig, AutoModelForCausalLM, Qwen2Config

    config = AutoConfig.from_pretrained(name, trust_remote_code=trust)
    if hasattr(config, "vision_config"):
        raise ValueError("it reads pictures, which the engine for the CPU does not")
    if Path(name).is_dir() and 0 < sum(file.stat().st_size for file in Path(name).glob("*.safetensors")) < SMALL:
        return {"path": name, "kind": config.model_type}
    if not (folder / "config.json").is_file():
        try:
            model = AutoModelForCausalLM.from_config(shrunk(config), trust_remote_code=trust)
        except Exception:  # sizes that this architecture has beside the usual ones
            ends = {each: getattr(config, each, None) for each in ("bos_token_id", "eos_token_id", "pad_token_id")}
            model = AutoModelForCausalLM.from_config(shrunk(Qwen2Config(vocab_size=config.vocab_size, **ends)))
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
        for file in beside_weights(name):
            shutil.copy(file, unfinished)
        model.save_pretrained(unfinished)
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    return {"path": str(folder), "kind": json.loads((folder / "config.json").read_text())["model_type"]}


def beside_weights(name: str) -> list[Path]:
    """The files of a model that hold no weights: its tokenizer, template and code."""
    from huggingface_hub import snapshot_download

    folder = Path(name if Path(name).is_dir() else snapshot_download(name, allow_patterns=[f"*{end}" for end in FILES]))
    return [file for file in folder.iterdir() if file.suffix in FILES and ".index." not in file.name]


def shrunk(config: Any) -> Any:
    """A configuration with few layers of few heads; as many heads share a key head as before."""
    heads = config.num_attention_heads
    keys = getattr(config, "num_key_value_heads", None) or heads
    config.num_hidden_layers = LAYERS
    config.num_attention_heads = max(1, heads // keys) if keys < heads else 2
    sizes = {
        "num_key_value_heads": 1 if keys < heads else 2,
        "head_dim": HEAD,
        "hidden_size": HEAD * config.num_attention_heads,
        "intermediate_size": 2 * HEAD * config.num_attention_heads,
        "moe_intermediate_size": HEAD,
        "max_window_layers": LAYERS,
    }
    for name in ("num_experts", "num_local_experts", "n_routed_experts"):
        sizes[name] = EXPERTS
    sizes["num_experts_per_tok"] = 2
    for name, value in sizes.items():
        if getattr(config, name, None) is not None:
            setattr(config, name, value)
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:LAYERS]
    return config


if __name__ == "__main__":
    main()

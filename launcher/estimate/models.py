"""Facts about a model, from its local files or from a table of the presets' models.

Needs neither torch nor transformers: config.json and the headers of the weight files are enough.
"""

import functools
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from launcher.core import paths
from launcher.core.files import read_json
from launcher.core.tables import record, tables_of

_HEADER_LIMIT = 100_000_000  # bytes; the format's own limit


@dataclass(frozen=True)
class Architecture:
    """The sizes of a decoder-only model, with the names of its config.json."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool  # embedding and output share one matrix
    context: int  # max_position_embeddings
    qkv_bias: bool = False
    qk_norm: bool = False

    @property
    def query(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv(self) -> int:
        """Width of all key heads (and of all value heads) together."""
        return self.kv_heads * self.head_dim

    @property
    def linear(self) -> tuple[tuple[int, int], ...]:
        """The matrices of one layer, (in, out): q, k, v, o, gate, up, down. LoRA's `all-linear`."""
        h, q, k, i = self.hidden, self.query, self.kv, self.intermediate
        return (h, q), (h, k), (h, k), (q, h), (h, i), (h, i), (i, h)

    @property
    def embedding(self) -> int:
        """Parameters of the embedding and, if not tied, of the output matrix."""
        return self.vocab * self.hidden

    def count(self) -> int:
        """Parameters of the whole model, computed from its sizes (gated MLP, RMSNorm)."""
        layer = sum(a * b for a, b in self.linear) + 2 * self.hidden
        layer += (self.query + 2 * self.kv) * self.qkv_bias + 2 * self.head_dim * self.qk_norm
        return self.embedding * (1 if self.tied else 2) + self.layers * layer + self.hidden


@dataclass(frozen=True)
class ModelFacts:
    """A model: its name in the preset, sizes, parameters and their source."""

    name: str
    sizes: Architecture
    parameters: int
    source: str  # "weights", "config.json" or "table"

    @property
    def critic_parameters(self) -> int:
        """Parameters when used as a critic: one number per token instead of the vocabulary."""
        return self.parameters - (0 if self.sizes.tied else self.sizes.embedding) + self.sizes.hidden

    def lora_parameters(self, rank: int) -> int:
        """Parameters of a LoRA adapter on all linear layers."""
        return self.sizes.layers * sum(rank * (a + b) for a, b in self.sizes.linear)


@functools.cache
def table() -> Mapping[str, Architecture]:
    """Models of the presets and others of their size, by name without organization and `-Instruct`."""
    return {name: record(Architecture, row) for name, row in tables_of(__file__).items()}


def facts(path: str, env: Mapping[str, str] = os.environ) -> ModelFacts | None:
    """The facts about the model `path` (a folder or a hub name); None if unknown."""
    folder = folder_of(path, env)
    if folder is not None:
        config = read_json(folder / "config.json")
        sizes = architecture(config)
        counted = count_weights(folder) if sizes is not None else None
        if sizes is not None and (counted or not has_experts(config)):
            return ModelFacts(path, sizes, counted or sizes.count(), "weights" if counted else "config.json")
    sizes = table().get(path.rstrip("/").rpartition("/")[2].removesuffix("-Instruct"))
    return ModelFacts(path, sizes, sizes.count(), "table") if sizes else None


def folder_of(path: str, env: Mapping[str, str] = os.environ) -> Path | None:
    """The model's folder: `path` itself, or its newest snapshot in the Hugging Face cache."""
    here = Path(path)
    if path and here.is_dir():
        return here
    if path.startswith(("/", "~", ".")) or path.count("/") > 1:
        return None
    repo = hub_cache(env) / ("models--" + path.replace("/", "--"))
    try:
        snapshot = repo / "snapshots" / (repo / "refs" / "main").read_text().strip()
    except OSError:
        return None
    return snapshot if snapshot.is_dir() else None


def hub_cache(env: Mapping[str, str] = os.environ) -> Path:
    """huggingface_hub's model folder: HF_HUB_CACHE, or its old name, or below HF_HOME or the home folder."""
    moved = env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE")
    return Path(moved).expanduser() if moved else hub_home(env) / "hub"


def hub_home(env: Mapping[str, str] = os.environ) -> Path:
    """The folder of huggingface_hub."""
    home = env.get("HF_HOME") or str(Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return Path(home).expanduser()


def is_toy(path: str) -> bool:
    """Whether this is a part of the toy task, which ppo-tui makes."""
    return Path(path).is_relative_to(paths.cache_dir() / "toy")


def architecture(config: Mapping[str, Any]) -> Architecture | None:
    """The sizes in a config.json; None for other than usual decoders."""
    nested = config.get("text_config")  # models for text and pictures
    if isinstance(nested, Mapping):
        config = {**config, **nested}
    try:
        hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        kind = str(config.get("model_type", ""))
        return Architecture(
            layers=int(config["num_hidden_layers"]),
            hidden=hidden,
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or hidden // heads),
            intermediate=int(config["intermediate_size"]),
            vocab=int(config["vocab_size"]),
            tied=bool(config.get("tie_word_embeddings", False)),
            context=int(config.get("max_position_embeddings") or 0),
            qkv_bias=bool(config.get("attention_bias", kind.startswith("qwen2"))),
            qk_norm=kind.startswith("qwen3"),
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def has_experts(config: Mapping[str, Any]) -> bool:
    """Whether it is a mixture of experts, whose parameters do not follow from these sizes."""
    nested = config.get("text_config")
    whole = {**config, **nested} if isinstance(nested, Mapping) else config
    return any(whole.get(key) for key in ("num_experts", "num_local_experts", "n_routed_experts"))


LLAMA = (*(f"self_attn.{name}_proj" for name in "qkvo"), *(f"mlp.{name}_proj" for name in ("gate", "up", "down")))
"""The linear layers of every model in the table."""


def modules(path: str, env: Mapping[str, str] = os.environ) -> list[str]:
    """Names of the model's linear layers, as for an adapter; empty if unknown."""
    folder = folder_of(path, env)
    if folder is None:
        known = path.rstrip("/").rpartition("/")[2].removesuffix("-Instruct") in table()
        return [f"model.layers.0.{name}" for name in LLAMA] if known else []
    found = set()
    for file in weight_files(folder)[0]:
        for name, tensor in (read_header(file) or {}).items():
            if name.endswith(".weight") and len(tensor.get("shape", ())) == 2 and "embed" not in name:
                found.add(name.removesuffix(".weight"))
    return sorted(found)


def weight_files(folder: Path) -> tuple[list[Path], list[str]]:
    """A model's safetensors files, and the names of missing ones in its index."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        wanted = read_json(index).get("weight_map")
        names = sorted({str(name) for name in wanted.values()}) if isinstance(wanted, dict) else []
        return [folder / name for name in names if (folder / name).is_file()], [
            name for name in names if not (folder / name).is_file()
        ]
    return sorted(folder.glob("*.safetensors")), []


def count_weights(folder: Path) -> int | None:
    """Parameters in the weight files, from their headers; None unless all files are complete."""
    files, missing = weight_files(folder)
    if missing or not files:
        return None
    total = 0
    for file in files:
        header = read_header(file)
        if header is None:
            return None
        total += sum(math.prod(tensor["shape"]) for tensor in header.values() if "shape" in tensor)
    return total


def read_header(file: Path) -> dict[str, dict[str, Any]] | None:
    """The header of a safetensors file: tensor name -> dtype, shape, data_offsets.

    None for another kind of file, or one shorter than its header requires (an incomplete download).
    """
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= _HEADER_LIMIT:
                return None
            header = orjson.loads(stream.read(length))
        tensors = {name: each for name, each in header.items() if name != "__metadata__"}
        end = max((each["data_offsets"][1] for each in tensors.values()), default=0)
        return tensors if file.stat().st_size >= 8 + length + end else None
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError, IndexError):
        return None

"""Loads what a run loads by name; a script for the interpreter that has veRL.

Asked with {"items": [...], "path": [folder]} on stdin; an item is one of
{"module"}, {"file", "name", "base", "given"} (a class or function; `base` as module:class or "", `given`: names of its
arguments), {"optimizer", "impl", "keys"}, {"model", "trust", "override"}, {"tokenizer", "trust"}. Answers
{"found": [{"error", "names"}]} in the order of the
items; `error` is None for what can be loaded.
"""

import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

_HEADER_LIMIT = 100_000_000


def main() -> None:
    request = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what modules print is not the answer
        sys.path[:0] = request["path"]
        json.dump({"found": [answer(item) for item in request["items"]]}, out)


def answer(item: dict[str, Any]) -> dict[str, Any]:
    """Why an item cannot be loaded, and the names that there are instead."""
    try:
        error, names = next(how(item) for kind, how in KINDS.items() if kind in item)
    except BaseException as raised:
        cause: BaseException = raised
        error, names = f"{type(cause).__name__}: {' '.join(str(cause).split())[:300]}", []
    return {"error": error, "names": names}


def _module(item: dict[str, Any]) -> tuple[str | None, list[str]]:
    importlib.import_module(item["module"])
    return None, []


def _named(item: dict[str, Any]) -> tuple[str | None, list[str]]:
    """As veRL: `verl/utils/import_utils.py: load_extern_object`."""
    module = _load(item["file"])
    found = getattr(module, item["name"], None)
    if found is None:
        own = {name: each for name, each in vars(module).items() if inspect.isclass(each)}
        return "", sorted(name for name, each in own.items() if each.__module__ == module.__name__)
    place, _, name = item["base"].partition(":")
    base = getattr(importlib.import_module(place), name) if place else object
    if not inspect.isclass(found) or not issubclass(found, base):
        return f"it is not a class derived from {place}.{name}", []
    if inspect.isclass(found):
        try:
            inspect.signature(found).bind(**dict.fromkeys(item.get("given", ())))
        except TypeError as error:
            return f"veRL passes it {', '.join(item['given'])}: {error}", []
    return None, []


def _load(path: str) -> ModuleType:
    if path.startswith("pkg://"):
        return importlib.import_module(path.removeprefix("pkg://").replace("/", "."))
    spec = importlib.util.spec_from_file_location("custom_module", path.removeprefix("file://"))
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _optimizer(item: dict[str, Any]) -> tuple[str | None, list[str]]:
    takes = inspect.signature(getattr(importlib.import_module(item["impl"]), item["optimizer"])).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes.values()):
        return None, []
    strange = [key for key in item["keys"] if key not in takes]
    return (strange[0] if strange else None), sorted(set(takes) - {"params", "lr", "weight_decay", "betas"})


def _model(item: dict[str, Any]) -> tuple[str | None, list[str]]:
    """The configuration, the model's class, and its sizes against those of the weights; no weight is read."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(item["model"], trust_remote_code=item["trust"])
    for name, value in item["override"].items():
        setattr(config, name, value)
    if "CausalLM" not in str(getattr(config, "architectures", "")) or item["trust"]:
        return None, []
    with torch.device("meta"):
        wanted = AutoModelForCausalLM.from_config(config).state_dict()
    tied = {"lm_head.weight"} if getattr(config, "tie_word_embeddings", False) else set[str]()
    have = dict(_shapes(Path(item["model"])))
    for name, shape in have.items():
        if name in wanted and (want := list(wanted[name].shape)) != shape:
            return f"config.json gives {name} the shape {want}, the weights have {shape}", []
    lost = [name for name in wanted if name not in have and name not in tied]
    if have and lost:
        return f"the weights have no {lost[0]} ({len(lost)} of {len(wanted)} tensors are missing)", ["missing"]
    return None, []


def _shapes(folder: Path) -> Iterator[tuple[str, list[int]]]:
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(min(length, _HEADER_LIMIT)))
        yield from ((name, each["shape"]) for name, each in header.items() if name != "__metadata__")


def _tokenizer(item: dict[str, Any]) -> tuple[str | None, list[str]]:
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(item["tokenizer"], trust_remote_code=item["trust"])
    return None, []


KINDS: dict[str, Callable[[dict[str, Any]], tuple[str | None, list[str]]]] = {
    "module": _module,
    "file": _named,
    "optimizer": _optimizer,
    "model": _model,
    "tokenizer": _tokenizer,
}

if __name__ == "__main__":
    main()

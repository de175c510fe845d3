"""Loads the names that a run loads; a script for veRL's interpreter.

Request on stdin: {"items": [...], "path": [folder]}. An item is one of {"module"}, {"target", "given", "methods"}
(module.class), {"tools", "python"} (a file; `python`: it has functions), {"file", "name", "base", "given", "methods"}
(a class or function; `base` as module.class, `given`: names of its arguments), {"file", "name", "rows", "tokenizer",
"data"} (a data set, tried on the first rows of a file), {"optimizer", "impl", "given"}, {"build", "values"} (a class of
veRL's configuration), {"model", "trust", "override"}, {"tokenizer", "trust"}. Reply: {"loaded": [{"error", "names"}]}
in the order of the items; `error` is None if it can be loaded.
"""

import importlib
import inspect
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import Request, answer, described, load_file, load_object, one_line

_HEADER_LIMIT = 100_000_000


def reply(request: Request) -> Request:
    sys.path[:0] = request["path"]
    return {"loaded": [_tried(item) for item in request["items"]]}


def _tried(item: Request) -> Request:
    """Why an item cannot be loaded, and the available names."""
    try:
        error, names = next(load(item) for kind, load in KINDS.items() if kind in item)
    except BaseException as raised:
        error, names = described(raised), []
    return {"error": error, "names": names}


def _module(item: Request) -> tuple[str | None, list[str]]:
    importlib.import_module(item["module"])
    return None, []


def _target(item: Request) -> tuple[str | None, list[str]]:
    """Loads a class like veRL (`verl/utils/import_utils.py: load_class_from_fqn`) and like Hydra's `_target_`."""
    if "." not in item["target"]:
        return "the name has no module; use module.Class", []
    found = load_object(item["target"])
    if not callable(found):
        return f"{item['target'].rpartition('.')[2]} is not a class", []
    return _arguments(found, item), []


def _arguments(found: Any, item: Request) -> str | None:
    """An error if it lacks the arguments or methods that veRL uses, if they are given."""
    if given := item.get("given"):
        try:
            taken = inspect.signature(found)
        except ValueError:  # written in C
            return None
        try:
            taken.bind(**dict.fromkeys(given))
        except TypeError as error:
            return f"veRL passes it {', '.join(given)}: {error}"
    lacks = [name for name in item.get("methods", ()) if inspect.isclass(found) and not hasattr(found, name)]
    return f"veRL calls its method {lacks[0]}, which it does not have" if lacks else None


def _tools(item: Request) -> tuple[str | None, list[str]]:
    """Loads function tools by veRL's own function; for other tools only class and schema, as some start workers in
    their constructors.

    veRL: `verl/tools/function_tool.py: load_function_tools_from_path`, `verl/tools/tool_registry.py: get_tool_class`.
    """
    try:
        from verl.tools.function_tool import load_function_tools_from_path
        from verl.tools.schemas import OpenAIFunctionToolSchema
    except ImportError:  # modules missing in veRL are reported elsewhere
        return None, []
    if item["python"]:
        load_function_tools_from_path(item["tools"])
        return None, []
    from omegaconf import OmegaConf

    for tool in OmegaConf.load(item["tools"]).tools:
        _target({"target": str(tool.class_name)})
        if tool.get("tool_schema") is not None:
            OpenAIFunctionToolSchema.model_validate(OmegaConf.to_container(tool.tool_schema, resolve=True))
    return None, []


def _named(item: Request) -> tuple[str | None, list[str]]:
    """Loads an object in the way of veRL (`verl/utils/import_utils.py: load_extern_object`)."""
    module = load_file(item["file"])
    found = getattr(module, item["name"], None)
    if found is None:
        own = {name: each for name, each in vars(module).items() if inspect.isclass(each)}
        return "", sorted(name for name, each in own.items() if each.__module__ == module.__name__)
    if not inspect.isclass(found) or not issubclass(found, load_object(item["base"])):
        return f"it is not a class derived from {item['base']}", []
    return _arguments(found, item), []


def _rows(item: Request) -> tuple[str | None, list[str]]:
    """Makes the data set like `verl/trainer/ppo/utils.py: create_rl_dataset`; ignores errors of too few rows."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HF_DATASETS_CACHE"] = folder
        from omegaconf import OmegaConf
        from transformers import AutoTokenizer

        config = OmegaConf.create({})
        for key, value in item["data"].items():
            OmegaConf.update(config, key, value, force_add=True)
        try:
            tokenizer = AutoTokenizer.from_pretrained(item["tokenizer"])
            kind, files = getattr(load_file(item["file"]), item["name"]), [_first(Path(item["rows"]), Path(folder))]
            made = kind(data_files=files, tokenizer=tokenizer, processor=None, config=config, max_samples=-1)
            if not hasattr(made, "__len__"):
                return "veRL asks for its length, and it has no __len__", []
            row = made[0]
        except Exception:
            return None, []
    return None if "raw_prompt" in row else f"its rows have no raw_prompt, only {', '.join(map(str, row))}", []


def _first(file: Path, folder: Path) -> str:
    """Copies the first rows of a data file to another file."""
    few = folder / f"few{file.suffix}"
    if file.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        rows = next(pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=8))
        pyarrow.parquet.write_table(pyarrow.Table.from_batches([rows]), few)
    else:
        with file.open(encoding="utf-8") as lines:
            few.write_text("".join(itertools.islice(lines, 8)), encoding="utf-8")
    return str(few)


def _optimizer(item: Request) -> tuple[str | None, list[str]]:
    """Checks the names of its arguments, then their values, on one small matrix, like `build_optimizer`."""
    try:
        kind = load_object(f"{item['impl']}.{item['optimizer']}")
        takes = inspect.signature(kind).parameters
        free = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes.values())
        strange = [key for key in item["given"] if key not in takes and not free]
        if strange:
            return strange[0], sorted(set(takes) - {"params", "lr", "weight_decay", "betas"})
        import torch

        usual = {"lr": 1e-3, "weight_decay": 0.01}
        kind([torch.nn.Parameter(torch.zeros(2, 2))], **{**usual, **item["given"]})
    except (ImportError, AttributeError):  # reported elsewhere
        return None, []
    return None, []


def _build(item: Request) -> tuple[str | None, list[str]]:
    """Builds it from its block in the way of Hydra; ignores errors due to missing other blocks."""
    try:
        kind = load_object(item["build"])
    except (ImportError, AttributeError):
        return None, []
    try:
        kind(**item["values"])
    except (AssertionError, ValueError, NotImplementedError) as error:
        return one_line(error) or type(error).__name__, []
    except Exception:
        return None, []
    return None, []


def _model(item: Request) -> tuple[str | None, list[str]]:
    """Checks the configuration, the model's class, and its sizes against the weights', without reading weights."""
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


def _tokenizer(item: Request) -> tuple[str | None, list[str]]:
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(item["tokenizer"], trust_remote_code=item["trust"])
    return None, []


KINDS: dict[str, Callable[[Request], tuple[str | None, list[str]]]] = {
    "module": _module,
    "target": _target,
    "tools": _tools,
    "rows": _rows,
    "file": _named,
    "optimizer": _optimizer,
    "build": _build,
    "model": _model,
    "tokenizer": _tokenizer,
}

if __name__ == "__main__":
    answer(reply)

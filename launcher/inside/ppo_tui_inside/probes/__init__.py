"""Probes answer questions of the launcher: a JSON object on stdin, another one on stdout.

Each is a module that runs in a separate process, which the launcher may kill.
"""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

Request = dict[str, Any]


def answer(reply: Callable[[Request], Mapping[str, object]]) -> None:
    """Reads the request and writes the reply; output of loaded code goes to stderr."""
    request = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        json.dump(reply(request), out, default=str)


def load_file(path: str) -> ModuleType:
    """Loads by path (no relative imports) or name after `pkg://`. veRL: `verl/utils/import_utils.py: load_module`."""
    if path.startswith("pkg://"):
        return importlib.import_module(path.removeprefix("pkg://").replace("/", "."))
    spec = importlib.util.spec_from_file_location("custom_module", path.removeprefix("file://"))
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["custom_module"] = module
    spec.loader.exec_module(module)
    return module


def load_object(name: str) -> Any:
    """The object `module.Name`."""
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(module), own)


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {one_line(error)}"

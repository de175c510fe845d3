"""veRL's own defaults: its configuration composed without any setting, once for each version, and cached.

The tree is kept with its references unresolved (`${oc.select:data.max_prompt_length,512}`), so that a key
which follows another one can be answered for any settings.
"""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from launcher import paths
from launcher.files import write_atomic

# Hydra keeps global state and takes 25 MB: it works in a process of its own.
_COMPOSE = """
import json, sys
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
with initialize_config_dir(config_dir=sys.argv[1], version_base=None):
    print(json.dumps(OmegaConf.to_container(compose(config_name="ppo_trainer"), resolve=False)))
"""
_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)(?:,\s*(.*))?\}", re.DOTALL)

Tree = dict[str, Any]


@functools.cache
def tree(version: str, verl: Path | None) -> Tree:
    """The configuration of veRL `version` below the folder `verl`; empty when it cannot be composed."""
    if verl is None:
        return {}
    folder = verl / "trainer" / "config"
    mark = hashlib.sha256(f"{folder}".encode()).hexdigest()[:8]
    cache = paths.cache_dir() / "verl-config" / f"{version}-{mark}.json"
    if not cache.is_file():
        done = subprocess.run(
            [sys.executable, "-c", _COMPOSE, str(folder)], capture_output=True, cwd="/", check=False,
            stdin=subprocess.DEVNULL, timeout=60,
        )  # fmt: skip
        if done.returncode != 0:
            return {}
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(cache, done.stdout)
    found: Tree = orjson.loads(cache.read_bytes())
    return found


def leaf(tree: Tree, key: str) -> tuple[bool, Any]:
    """Whether the tree has the key, and what stands there (a block is a mapping)."""
    node: Any = tree
    for name in key.split("."):
        if not isinstance(node, dict) or name not in node:
            return False, None
        node = node[name]
    return True, node


def resolve(value: Any, key: str, look_up: Callable[[str, Any], Any]) -> Any:
    """The value that a default of `key` stands for; `look_up(key, otherwise)` answers for other keys."""
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    name, otherwise = match[1], match[2]
    if name.startswith("."):
        name = key.rpartition(".")[0] + name
    return look_up(name, resolve(_literal(otherwise), key, look_up))


def _literal(text: str | None) -> Any:
    if text is None or text == "null":
        return None
    if text in ("True", "true", "False", "false"):
        return text in ("True", "true")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return [] if text == "[]" else text

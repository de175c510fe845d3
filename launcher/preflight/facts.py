"""What the installed veRL says about itself, read without importing it, once for each version, and cached.

Its configuration composed without any setting, the fields of its configuration classes, the names it knows.
The tree is kept with its references unresolved (`${oc.select:data.max_prompt_length,512}`), so that a key
which follows another one can be answered for any settings.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
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
_CLASSES = ("workers/config/*.py", "trainer/config/*.py")
_NAMES = {
    "loggers": ("utils/tracking.py", r"supported_backend = \[([^\]]*)\]"),
    "estimators": ("trainer/ppo/core_algos.py", r"class AdvantageEstimator\(str, Enum\):(.*?)\n\n\n"),
    "losses": ("trainer/ppo/core_algos.py", r'@register_policy_loss\(("\w+")\)'),
    "trainers": ("trainer/ppo/v1/*.py", r'@register_trainer\(("\w+")\)'),
    "engines": ("workers/rollout/base.py", r'\(("\w+"), "async"\)'),
    "managers": ("experimental/reward_loop/reward_manager/*.py", r'@register\(("\w+")\)'),
}
_QUOTED = re.compile(r'"(\w+)"')

Tree = dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """Empty where veRL is not there or could not be read: then nothing is judged by it.

    `config`: the composed tree. `classes`: configuration class -> field -> annotation. `names`: kind -> the
    names that veRL registers (`loggers`, `estimators`, `losses`, `trainers`, `engines`, `managers`).
    """

    config: Tree = field(default_factory=dict)
    classes: dict[str, dict[str, str]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)


@functools.cache
def read(version: str, verl: Path | None) -> Facts:
    """The facts of veRL `version` in the folder `verl`: 0.8 s for the first time, then 1 ms."""
    if verl is None:
        return Facts()
    mark = hashlib.sha256(f"{verl}".encode()).hexdigest()[:8]
    cache = paths.cache_dir() / "verl" / f"{version}-{mark}.json"
    try:
        return Facts(**orjson.loads(cache.read_bytes()))
    except (OSError, orjson.JSONDecodeError, TypeError):
        pass
    found = Facts(_compose(verl / "trainer" / "config"), _classes(verl), _names(verl))
    if found.config:
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(cache, orjson.dumps(dataclasses.asdict(found)))
    return found


def leaf(tree: Tree, key: str) -> tuple[bool, Any]:
    """Whether the tree has the key, and what stands there (a block is a mapping)."""
    node: Any = tree
    for name in key.split("."):
        if not isinstance(node, dict) or name not in node:
            return False, None
        node = node[name]
    return True, node


def leaves(tree: Tree, prefix: str = "") -> list[str]:
    """Every key of the tree that holds a value."""
    found = []
    for name, value in tree.items():
        key = f"{prefix}{name}"
        found += leaves(value, f"{key}.") if isinstance(value, dict) and value else [key]
    return found


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
    """The second part of `${oc.select:key,TEXT}`."""
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


def _compose(folder: Path) -> Tree:
    done = subprocess.run(
        [sys.executable, "-c", _COMPOSE, str(folder)], capture_output=True, cwd="/", check=False,
        stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    found: Tree = orjson.loads(done.stdout) if done.returncode == 0 else {}
    return found


def _classes(verl: Path) -> dict[str, dict[str, str]]:
    """Configuration classes with their own and inherited fields."""
    nodes: dict[str, ast.ClassDef] = {}
    for pattern in _CLASSES:
        for path in sorted(verl.glob(pattern)):
            tree = ast.parse(path.read_text("utf-8"))
            nodes.update({node.name: node for node in tree.body if isinstance(node, ast.ClassDef)})

    def fields(name: str) -> dict[str, str]:
        node = nodes.get(name)
        if node is None:
            return {}
        found: dict[str, str] = {}
        for base in node.bases:
            found |= fields(ast.unparse(base).rpartition(".")[2])
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                found[item.target.id] = ast.unparse(item.annotation)
        return found

    return {name: fields(name) for name in nodes}


def _names(verl: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, (pattern, expression) in _NAMES.items():
        text = "\n".join(path.read_text("utf-8") for path in sorted(verl.glob(pattern)))
        parts = re.findall(expression, text, re.DOTALL)
        found[kind] = sorted({name for part in parts for name in _QUOTED.findall(part)})
    return found

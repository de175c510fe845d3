"""Facts from the source of the installed veRL and SGLang, read without importing it.

veRL's configuration fields and registered names, cached once per version (`launcher.verl.defaults` reads its keys and
defaults), and SGLang's server options.
"""

import ast
import dataclasses
import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import cache, obeyed
from launcher.core.tables import record, tables_of
from launcher.verl.defaults import NEWEST

_CLASSES = ("workers/config/*.py", "trainer/config/*.py")
_CHECKED = (*_CLASSES, "utils/profiler/config.py", "utils/skip/config.py")
_NAMES = {
    "loggers": ("utils/tracking.py", r"supported_backend = \[([^\]]*)\]"),
    "losses": ("trainer/ppo/core_algos.py", r'@register_policy_loss\(("\w+")\)'),
    "estimators": ("trainer/ppo/core_algos.py", r'(?:\n    [A-Z_]+ = |@register_adv_est\()("\w+")'),
    "engines": ("workers/rollout/base.py", r'\(("\w+"), "async"\)'),
    "transfers": ("checkpoint_engine/*.py", r'@CheckpointEngineRegistry\.register\(("\w+")\)'),
    "managers": ("experimental/reward_loop/reward_manager/*.py", r'@register\(("\w+")\)'),
    "agent_loops": ("experimental/agent_loop/*.py", r'@register\(("\w+")\)'),
    "tool_types": ("tools/**/tool_registry.py", r'\n    [A-Z]+ = ("\w+")'),
    "tool_formats": ("experimental/agent_loop/tool_parser.py", r'@ToolParser\.register\(("[\w-]+")\)'),
}
_QUOTED = re.compile(r'"([\w-]+)"')
_CLASS = re.compile(r"^class (\w+)\(", re.M)
_FIELD = re.compile(r"^    (\w+): ", re.M)
_CHOICES = re.compile(r"^(\w+)_CHOICES = [\[{]([^\]}]*)", re.M)


@dataclass(frozen=True)
class Packages:
    """The packages that a run requires; names.toml explains them."""

    trackers: tuple[str, ...]
    trace_backends: tuple[str, ...]
    oldest_vllm: tuple[tuple[str, str], ...]
    queue: str
    transfers: dict[str, list[str]]
    online: dict[str, Mapping[str, object]]
    remote: dict[str, str]


@dataclass(frozen=True)
class Names:
    """Names that veRL, its engines, Ray and torch accept; names.toml explains each list.

    `vllm`: key below rollout -> values. `verl`: kind -> registered names. `arguments`: kind of a user class -> the
    arguments that veRL passes.
    """

    optimizers: tuple[str, ...]
    unusable_optimizers: tuple[str, ...]
    unsharded_optimizers: tuple[str, ...]
    number_types: tuple[str, ...]
    checkpoint_parts: tuple[str, ...]
    profilers: tuple[str, ...]
    ray_arguments: tuple[str, ...]
    logging_levels: tuple[str, ...]
    load_formats: tuple[str, ...]
    engine_types: tuple[str, ...]
    data_sources: tuple[str, ...]
    of_vllm: tuple[str, ...]
    packages: tuple[str, ...]
    arguments: dict[str, list[str]]
    methods: dict[str, list[str]]
    software: Packages
    vllm: dict[str, list[str]]
    verl: dict[str, list[str]]


@functools.cache
def known_names() -> Names:
    """All lists of names.toml, cached."""
    tables = tables_of(__file__, "names.toml")
    return record(Names, tables, software=record(Packages, tables["software"]))


@dataclass(frozen=True)
class SourceFacts:
    """Facts about one veRL; empty if its source has another form, which disables the checks.

    `classes`: configuration class -> field -> annotation. `names`: kind -> registered names (`loggers`, `losses`,
    `estimators`, `engines`, `transfers`, `managers`, `agent_loops`, `tool_types`, `tool_formats`). `checked`:
    configuration class -> fields that it checks itself.
    """

    classes: dict[str, dict[str, str]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    checked: dict[str, list[str]] = field(default_factory=dict)


@functools.cache
def read(version: str, verl: Path | None) -> SourceFacts:
    """The facts of veRL `version` in the folder `verl`: first 0.1 s, then 1 ms."""
    if verl is None:
        return SourceFacts(names=known_names().verl if version == NEWEST else {})
    asked = f"{verl} {verl.stat().st_mtime_ns} {_CLASSES} {_CHECKED} {_NAMES}"
    mark = hashlib.sha256(asked.encode()).hexdigest()[:8]
    known = paths.cache_dir() / "verl-facts" / f"{version}-{mark}.json"
    try:
        return SourceFacts(**orjson.loads(obeyed(known).read_bytes()))
    except (UserError, OSError, orjson.JSONDecodeError, TypeError):
        pass
    found = SourceFacts(_classes(verl), _names(verl), _checked(verl))
    cache(known, orjson.dumps(dataclasses.asdict(found)))
    return found


def _classes(verl: Path) -> dict[str, dict[str, str]]:
    """The configuration classes with their own and inherited fields."""
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


def _checked(verl: Path) -> dict[str, list[str]]:
    """Fields that each class reads in its `__post_init__`, without model classes, which LOAD-3 loads."""
    found = {}
    for path in (path for pattern in _CHECKED for path in sorted(verl.glob(pattern))):
        for node in ast.parse(path.read_text("utf-8")).body:
            inits = [each for each in getattr(node, "body", ()) if getattr(each, "name", "") == "__post_init__"]
            names = {
                each.attr if isinstance(each, ast.Attribute) else each.value
                for init in inits
                for each in ast.walk(init)
                if (isinstance(each, ast.Attribute) and getattr(each.value, "id", "") == "self")
                or (isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isidentifier())
            }
            if isinstance(node, ast.ClassDef) and names and node.name != "HFModelConfig":
                found[node.name] = sorted(str(name) for name in names)
    return found


def _names(verl: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, (pattern, expression) in _NAMES.items():
        text = "\n".join(path.read_text("utf-8") for path in sorted(verl.glob(pattern)))
        parts = re.findall(expression, text, re.DOTALL)
        found[kind] = sorted({name for part in parts for name in _QUOTED.findall(part)})
    return found


@functools.cache
def layer_classes(transformers: Path) -> frozenset[str]:
    """The classes in all model files of this transformers folder, in half a second; empty without the folder."""
    files = transformers.glob("models/*/modeling_*.py")
    return frozenset(name for file in files for name in _CLASS.findall(file.read_text("utf-8")))


@functools.cache
def server_options(sglang: Path) -> dict[str, list[str]]:
    """Server options of this SGLang folder -> command-line values; [] means any.

    SGLang: `srt/server_args.py: ServerArgs`, and the lists named after an option (`ATTENTION_BACKEND_CHOICES`).
    """
    try:
        text = (sglang / "srt" / "server_args.py").read_text("utf-8")
    except (OSError, ValueError):
        return {}
    fields = text.partition("\nclass ServerArgs:")[2].partition("\n    def ")[0]
    choices = {name.lower(): list(dict.fromkeys(_QUOTED.findall(values))) for name, values in _CHOICES.findall(text)}
    return {name: choices.get(name, []) for name in _FIELD.findall(fields)}

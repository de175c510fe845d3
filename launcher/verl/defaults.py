"""veRL's own keys and defaults, without importing veRL.

Hydra composes the installed veRL's configuration once, and it is cached. Without an installed veRL, a bundled list of
the published versions is used (written by `tests/support/verl_wheels.py`). Trees keep their references unresolved
(`${oc.select:data.max_prompt_length,512}`), so that a key that follows another one resolves for any settings.
"""

import functools
import gzip
import hashlib
import importlib.resources
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from launcher.core import paths
from launcher.core.files import cache, foreign
from launcher.verl.hydra import quote
from launcher.verl.programs import Found

NEWEST = "0.9.1"
"""The newest version in the bundled list, which newer ones use."""

PPO = "trainer/config/ppo_trainer"
"""The configuration of `verl.trainer.main_ppo`, below veRL's folder and without `.yaml`."""

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)(?:,\s*(.*))?\}", re.DOTALL)
_WORDS: dict[str, object] = {"null": None, "true": True, "false": False, "[]": []}

Tree = dict[str, Any]


def is_verl(folder: Path) -> bool:
    """Whether a folder contains veRL's code; data folders or other packages may have the same name."""
    return (folder / "__init__.py").is_file() and (folder / "trainer").is_dir()


def tree(version: str, verl: Path | None = None, groups: tuple[str, ...] = (), config: str | Found = PPO) -> Tree:
    """The configuration `config` of veRL `version` below its folder `verl`, or of a program, with these group choices.

    Falls back to the bundled one, which has only the choice Megatron. The first call takes half a second for each
    installed version and choice, later ones a millisecond.
    """
    megatron = "megatron" in str(config) or "model_engine=megatron" in groups
    return composed(version, verl, groups, config) or bundled(version, "megatron" if megatron else "dp")


@functools.cache
def composed(version: str, verl: Path | None, groups: tuple[str, ...] = (), config: str | Found = PPO) -> Tree | None:
    """The configuration of the installed veRL or a program, composed by Hydra; None without one."""
    if verl is None:
        return None
    usual = verl / "trainer" / "config"
    if isinstance(config, str):
        folder, name, more = (verl / config).parent, Path(config).name, [usual]
        if not (verl / f"{config}.yaml").is_file():
            return None
        stamp = f"{verl / config}.yaml {folder.stat().st_mtime_ns}"
    else:
        folder, name, more, stamp = config.folder, config.name, [*config.search, usual], repr(config)
    mark = hashlib.sha256(f"{stamp} {groups}".encode()).hexdigest()[:8]
    known = paths.cache_dir() / "verl-config" / f"{version}-{mark}.json"
    content = known.read_bytes() if known.is_file() and foreign(known) is None else b""
    if not content:
        places = [quote(f"file://{each}") for each in more if each != folder]
        search = [f"hydra.searchpath=[{','.join(places)}]"] if places else []  # theirs needs `import verl`
        # Hydra keeps global state and takes 25 MB: it works in a process of its own
        command = paths.own_command(__name__, str(folder), name, *search, *groups)
        done = subprocess.run(command, capture_output=True, cwd="/", stdin=subprocess.DEVNULL, timeout=60)
        if done.returncode != 0:
            return None
        cache(known, content := done.stdout)
    tree: Tree = orjson.loads(content)
    return tree


@functools.cache
def bundled(version: str, engine: str = "dp") -> Tree:
    """The configuration of the newest published version up to `version`, for FSDP ("dp") or "megatron"."""
    # the index of the newest published version up to this one
    older = [number(known) <= number(version) for known in _bundle()["versions"]]
    place, config = max(0, sum(older) - 1), Tree()
    for key, spans in _bundle()[engine].items():
        for first, last, default in spans:
            if first <= place <= last:
                node = config
                *above, name = key.split(".")
                for part in above:
                    node = node.setdefault(part, {})
                node[name] = default
    return config


def published() -> list[str]:
    """The published versions whose keys are known, oldest first."""
    versions: list[str] = _bundle()["versions"]
    return versions


@functools.lru_cache(maxsize=4096)
def life(key: str) -> tuple[str, str | None]:
    """The version that added a key or block, and the one that removed it; ("", None) for an unknown key.

    Keys below an empty block (`model.override_config`) exist as long as the block.
    """
    versions = _bundle()["versions"]
    lives = [span for known, span in _lives().items() if known == key or known.startswith(f"{key}.")]
    if not lives:
        parent = key.rpartition(".")[0]
        return life(parent) if parent in _lives() else ("", None)
    first, last = min(span[0] for span in lives), max(span[1] for span in lives)
    return versions[first], versions[last + 1] if last + 1 < len(versions) else None


def leaf(tree: Tree, key: str) -> tuple[bool, Any]:
    """Whether the tree has the key, and its value (a block is a mapping)."""
    node: Any = tree
    for name in key.split("."):
        if not isinstance(node, dict) or name not in node:
            return False, None
        node = node[name]
    return True, node


def leaves(tree: Tree, above: str = "") -> Iterator[str]:
    """Keys with a value; an empty block is a value, Hydra's own `_target_` is not."""
    for name, value in tree.items():
        if name != "_target_":
            key = f"{above}.{name}" if above else name
            if isinstance(value, dict) and value:
                yield from leaves(value, key)
            else:
                yield key


def blocks(tree: Tree, above: str = "") -> Iterator[tuple[str, Tree]]:
    """Blocks that veRL instantiates as objects, each with its key."""
    for name, value in tree.items():
        if isinstance(value, dict):
            key = f"{above}.{name}" if above else name
            if "_target_" in value:
                yield key, value
            yield from blocks(value, key)


def resolve(value: Any, key: str, look_up: Callable[[str, Any], Any]) -> Any:
    """The value of `key`'s default, which may refer to other keys: `look_up(key, otherwise)` returns their values."""
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    name, otherwise = match[1], match[2]
    if name.startswith("."):
        name = key.rpartition(".")[0] + name
    return look_up(name, resolve(_literal(otherwise), key, look_up))


def referred(value: str) -> str | None:
    """The key that a text refers to as a whole and without an alternative: `${data.train_batch_size}`."""
    match = _REFERENCE.fullmatch(value)
    return match[1] if match and match[2] is None and "oc.select" not in value else None


@functools.lru_cache(maxsize=64)
def number(version: str) -> tuple[int, ...]:
    """`0.10.dev1` as (0, 10, 1): sufficient for comparing releases."""
    parts = [int(part) for part in re.findall(r"\d+", version)[:3]]
    return (*parts, *[0] * (3 - len(parts)))


@functools.cache
def _bundle() -> Mapping[str, Any]:
    packed = importlib.resources.files("launcher.verl").joinpath("verl_keys.json.gz").read_bytes()
    bundle: Mapping[str, Any] = orjson.loads(gzip.decompress(packed))
    return bundle


@functools.cache
def _lives() -> dict[str, tuple[int, int]]:
    keys = {**_bundle()["megatron"], **_bundle()["dp"]}
    return {key: (spans[0][0], spans[-1][1]) for key, spans in keys.items()}


def _literal(text: str | None) -> Any:
    text = "null" if text is None else text.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("\"'")


def _compose(folder: str, name: str, *overrides: str) -> bytes:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=folder, version_base=None):
        config = compose(config_name=name, overrides=list(overrides))
        return orjson.dumps(OmegaConf.to_container(config, resolve=False), option=orjson.OPT_NON_STR_KEYS)


if __name__ == "__main__":
    sys.stdout.buffer.write(_compose(*sys.argv[1:]))

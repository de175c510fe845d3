"""Makes a preset from the resolved configuration that veRL prints at its start, for external runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError
from launcher.preset import layers, standalone
from launcher.preset.effective import EffectiveConfig, of_draft
from launcher.preset.files import of_layer
from launcher.preset.layers import Layer
from launcher.preset.schema import BY_KEY
from launcher.preset.translate import NEEDED, OURS
from launcher.verl import defaults, versions
from launcher.verl.config import CRITIC, ESTIMATOR, GPUS, RAY
from launcher.verl.versions import ignored

_OURS = OURS | {"trainer.experiment_name"}
_AT_RUN_TIME = {"actor_rollout_ref.rollout.prometheus.file"}  # veRL sets it, to where Ray keeps its session
_LOGGERS = "trainer.logger"  # a preset lists only the additional ones


@dataclass(frozen=True)
class Resolved:
    """`LoadedPreset.snapshot`, and its missing configuration parts; None: not in the log."""

    preset: dict[str, object] | None = None
    notes: tuple[str, ...] = ()


def from_config(config: Mapping[str, Any], folder: Path) -> Resolved:
    """The preset whose run resolves to `config` (value by veRL key); its relative paths start at `folder`.

    Contains the differences from defaults of ppo-tui and of the veRL version with these keys. None if `config` is not
    veRL's.
    """
    if GPUS not in config:
        return Resolved()
    version = version_of(config)
    wanted = _wanted(config, version)
    layer, refused = Layer(), dict[str, str]()
    for follows in (False, True):  # first the keys that others follow
        seen = _resolves_to(layer, version)
        for key, value in wanted.items():
            spec = BY_KEY.get(versions.newest(key))
            needed = spec is not None and spec.name in NEEDED
            if bool(spec and spec.follows) is follows and (needed or not _same(seen.get(versions.newest(key)), value)):
                _put(layer, key, value, version, folder, refused)
    standalone.tidy(layer)
    seen = _resolves_to(layer, version)
    notes = [f"left out: {key}: {why}" for key, why in refused.items()]
    for key, value in wanted.items():
        spec = BY_KEY.get(versions.newest(key))
        given_otherwise = key in refused or key == _LOGGERS or (spec and spec.kind)  # a path is made absolute
        if not given_otherwise and not _same(seen.get(versions.newest(key)), value):
            notes.append(f"left out: {key}={value}: a preset cannot set it")
    return Resolved(layers.nest(standalone.portable(layer)), tuple(notes))


def version_of(config: Mapping[str, Any]) -> str:
    """The published veRL version with these keys; the newest one that fits."""
    keys = set(config)
    return min(
        reversed(defaults.published()), key=lambda each: len(keys ^ set(defaults.leaves(defaults.bundled(each))))
    )


def _wanted(config: Mapping[str, Any], version: str) -> Mapping[str, object]:
    """The values for a preset: fields, and other keys that differ from veRL's defaults.

    Omits names that this version does not read, ppo-tui's own settings per run, and the critic of runs without one.
    """
    unread = {key for key, _ in ignored(config, version)}
    found = {}
    for key, value in config.items():
        newest = versions.newest(key)
        plain = newest not in BY_KEY
        if (
            newest in _OURS | _AT_RUN_TIME
            or (newest, value) == (f"{RAY}.address", "local")
            or key.startswith(f"{RAY}.runtime_env.")
            or key.endswith("._target_")
            or value == "???"
            or _name(newest, version) != key
            or (key.startswith(f"{CRITIC}.") and config.get(ESTIMATOR) != "gae")
            or (plain and (key in unread or _same(_default(key, config, version), value)))
        ):
            continue
        found[key] = value
    return found


def _name(newest: str, version: str) -> str:
    try:
        return versions.at(newest, version)
    except UserError:
        return newest  # of a plugin, or of an unpublished veRL


def _default(key: str, config: Mapping[str, Any], version: str) -> Any:
    """The default of a key; a key or its block can refer to another one."""
    tree, name, below = defaults.bundled(version), key, ""
    found, value = defaults.leaf(tree, name)
    while name and not found:
        name = name.rpartition(".")[0]
        found, value, below = *defaults.leaf(tree, name), key[len(name) :]
    return defaults.resolve(value, name, lambda other, otherwise: config.get(other + below, otherwise))


def _same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))  # an experiment called nan


def _resolves_to(layer: Layer, version: str) -> EffectiveConfig:
    return of_draft(of_layer(layer).layer, version)


def _put(layer: Layer, key: str, value: Any, version: str, folder: Path, refused: dict[str, str]) -> None:
    """Adds a value to the layer, or the reason of its refusal to `refused`."""
    known = versions.newest(key) in BY_KEY or defaults.leaf(defaults.bundled(version), key)[0]
    try:
        entry = layers.from_mapping({"overrides": {key if known else f"++{key}": value}}, lambda _: key, folder)
        standalone.without_usual_loggers(entry)
        of_layer(entry)
    except UserError as error:
        refused[key] = error.without_place
    else:
        layer.update(entry)

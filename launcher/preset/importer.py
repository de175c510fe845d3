"""A preset from what a reader of a tutorial has in hand: a shell script or a pasted command of overrides."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.errors import UserError
from launcher.preset import layers, script, versions
from launcher.preset.drafts import dump
from launcher.preset.effective import EffectiveConfig
from launcher.preset.files import restore
from launcher.preset.layers import Layer
from launcher.preset.schema import FIELDS

OURS = {
    "trainer.default_local_dir",
    "trainer.rollout_data_dir",
    "trainer.validation_data_dir",
    "trainer.resume_mode",
    "trainer.resume_from_path",
    "hydra.run.dir",
    "hydra.output_subdir",
    "ray_kwargs.ray_init.include_dashboard",
    "ray_kwargs.ray_init.num_gpus",
}
"""What ppo-tui sets for each run by itself."""

# Where veRL's default is not ours: a script that is silent means veRL's.
_SILENT = ("trainer.gpus", "rollout.tensor_model_parallel_size")
_ALWAYS = ("console", "file")  # loggers that every run has
_SETTERS = (
    "VERL_FILE_LOGGER_PATH",
    "VERL_REPLAY_BUFFER_DEBUG_INTERVAL_SECONDS",
    "PYTHONUNBUFFERED",
    "RAY_COLOR_PREFIX",
    "RAY_USAGE_STATS_ENABLED",
    "VERL_USE_EXTERNAL_MODULES",
    "PYTHONPATH",
)
_PLAIN = ("--config-name=ppo_trainer", "--config-name=ppo_trainer.yaml")  # what a preset starts from, too
_ORDER = {spec.path: place for place, spec in enumerate(FIELDS.values())}
_CPU_SETTERS = ("VERL_PLATFORM", "VERL_ENGINE_DEVICE")


@dataclass(frozen=True)
class Imported:
    """The text of a preset, and what of the source is not in it."""

    text: str
    notes: tuple[str, ...]


def from_script(text: str, name: str, folder: Path) -> Imported:
    """The preset called `name` for a script or command line; relative paths in it are meant from `folder`.

    Keys of any veRL version become fields, the rest overrides. Raises UserError when there is nothing in it.
    """
    found = script.parse(text, str(folder))
    notes = list(found.notes)
    layer: Layer = {}
    ours: list[str] = []
    stray: list[str] = []
    for word in filter(None, found.overrides):
        key, equals, value = word.partition("=")
        bare, plain = versions.newest(key.lstrip("+")), value.strip("'\"")
        if key.startswith("--") or not equals:
            stray.append(word)
            continue
        if bare in OURS or (bare, plain) == ("ray_kwargs.ray_init.address", "local"):
            ours.append(bare)
            continue
        if (bare, plain) == ("trainer.experiment_name", name):
            continue
        try:
            layer = layers.over(_setting(word, folder, name), layer)
        except UserError as error:
            why = str(error).removeprefix(f"snapshot of {name}: ")
            notes.append(f"left out: {why}" if key in why else f"left out: {key}: {why}")
    if not layer:
        another = next((f" ({note})" for note in reversed(notes) if " -m " in note), "")
        raise UserError(f"no veRL overrides found{another}; expected 'python -m verl.trainer.main_ppo KEY=VALUE ...'")
    if any(word.startswith("--config-") and word not in _PLAIN for word in stray):
        notes.append(
            "the command uses a different configuration than veRL's ppo_trainer; that configuration is not imported"
        )
    if stray:
        notes.append(f"left out, not KEY=VALUE: {' '.join(stray)}")
    if ours:
        notes.append(f"ppo-tui sets these for each run: {', '.join(ours)}")
    tidy(layer)
    notes += _fill_in(layer)
    notes += _environment(layer, found.env, folder)
    return Imported(dump(layers.nest(portable(layer)), f"# Imported as {name}.", notes), tuple(notes))


def _setting(word: str, folder: Path, name: str) -> Layer:
    """The layer of one override. Raises UserError, also for a value that its field does not allow."""
    layer = layers.from_setting(word, folder)
    without_usual_loggers(layer)
    restore(name, layers.nest(layer))
    return layer


def without_usual_loggers(layer: Layer) -> None:
    """Takes the loggers that every run has out of a preset's list."""
    path = ("trainer", "loggers")
    if path in layer and isinstance((entry := layer[path]).value, list):
        kept = [logger for logger in entry.value if logger not in _ALWAYS]
        layer[path] = layers.Entry(kept, entry.source, entry.spelling)


def tidy(layer: Layer) -> None:
    """Takes out what says nothing: a field equal to the one it follows, no loggers, a list of one file."""
    for spec in FIELDS.values():
        if spec.path not in layer:
            continue
        entry = layer[spec.path]
        if spec.kind and isinstance(entry.value, list) and len(entry.value) == 1:
            layer[spec.path] = layers.Entry(entry.value[0], entry.source, entry.spelling)
        leader = FIELDS[spec.follows].path if spec.follows else None
        if leader in layer and entry.value == layer[leader].value:
            del layer[spec.path]
    if ("trainer", "loggers") in layer and not layer["trainer", "loggers"].value:
        del layer["trainer", "loggers"]


def _fill_in(layer: Layer) -> Iterator[str]:
    """Sets what the script leaves to veRL where ppo-tui has another default."""
    for name in _SILENT:
        spec = FIELDS[name]
        if spec.path not in layer:
            value = EffectiveConfig().get(spec.key)
            layer[spec.path] = layers.Entry(value, "veRL's default", spec.path[-1])
            yield f"{name} is set to veRL's default, {value}, because the script does not set it"


def _environment(layer: Layer, env: dict[str, str], folder: Path) -> Iterator[str]:
    device = layer.get(("trainer", "device"))
    ours = (*_SETTERS, *(_CPU_SETTERS if device and device.value == "cpu" else ()))
    for name, value in env.items():
        if name in ours:
            continue
        try:
            layer.update(layers.from_setting(f"env.{name}={value}", folder))
        except UserError as error:
            yield f"left out: {error}"


def portable(layer: Layer) -> Layer:
    """In the order of the schema; paths below the home folder begin with `~` again."""
    home = f"{Path.home()}/"

    def shorter(value: Any) -> Any:
        if isinstance(value, list):
            return [shorter(item) for item in value]
        return f"~/{value[len(home) :]}" if isinstance(value, str) and value.startswith(home) else value

    paths = {spec.path for spec in FIELDS.values() if spec.kind}
    ordered = sorted(layer, key=lambda path: _ORDER.get(path, len(_ORDER)))
    return {
        path: layers.Entry(shorter(entry.value), entry.source, entry.spelling) if path in paths else entry
        for path in ordered
        for entry in (layer[path],)
    }

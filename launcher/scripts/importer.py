"""Makes a preset from a shell script or a pasted command with overrides."""

import os
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from launcher import inside
from launcher.core.errors import SecretValue, UserError
from launcher.core.files import make_folder, write_atomic
from launcher.core.secrets import redact
from launcher.preset import environment, layers
from launcher.preset.draft import target
from launcher.preset.effective import EffectiveConfig, of_draft
from launcher.preset.files import WrongValue, load_text, of_layer
from launcher.preset.layers import Layer
from launcher.preset.schema import FIELDS, MAIN, Preset
from launcher.preset.standalone import dump, portable, tidy, without_usual_loggers
from launcher.preset.translate import OURS
from launcher.scripts import pasted
from launcher.scripts import verl_command as script
from launcher.scripts.bash import marks
from launcher.scripts.pasted import mentions
from launcher.scripts.verl_command import Source, asked_for
from launcher.verl import hydra, versions
from launcher.verl.algorithms import estimators
from launcher.verl.config import ESTIMATOR
from launcher.verl.defaults import is_verl
from launcher.verl.env import interpreter

_NAMES = {"trainer.experiment_name", "trainer.project_name"}
"""Keys with names for people, in which unknown parts are omitted."""

_OWN_DEFAULTS = ("cluster.storage_units",)  # defaults for a single machine, irrelevant for training
_LISTS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VERL_USE_EXTERNAL_MODULES")
_PLAIN = ("ppo_trainer", "ppo_trainer.yaml")  # also the start of a preset
_OPTIONS = {"--config-name": "config_name", "-cn": "config_name", "--config-path": "config_path", "-cp": "config_path"}
_OPTIONS |= {"--config-dir": "config_dir", "-cd": "config_dir"}
_FILE = re.compile(r"\.{1,2}/|(?!/)[^\s:$]*\.(?:ya?ml|json|jsonl|py|parquet|txt|jinja|md)\Z")


class Lossy(UserError):
    """A script whose preset would train differently; `losses`: how; `undecided`: one is known only at run time."""

    def __init__(self, losses: tuple[str, ...], undecided: bool = False) -> None:
        super().__init__("\n".join(["the preset would not train like the script:", *losses]))
        self.losses, self.undecided = losses, undecided


@dataclass(frozen=True)
class Imported:
    """The text of a preset, and the missing parts of the source; `cut`: settings that no shell passes."""

    text: str
    notes: tuple[str, ...]
    cut: tuple[str, ...] = ()


@dataclass
class _Draft:
    """The preset while its words are read."""

    name: str
    folder: Path
    layer: Layer = field(default_factory=dict)
    ours: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    missing: dict[str, None] = field(default_factory=dict)
    undecided: bool = False


def from_script(source: Source, name: str, *, lossy: bool = False) -> Imported:
    """The preset `name` for a script, a command line or a pasted text with one.

    Keys of any veRL version become fields, the others overrides. Raises UserError if nothing is found, and Lossy if the
    preset would train differently, unless `lossy`: the notes then report it.
    """
    if not source.text.strip():
        raise UserError("the text is empty", "give a script, a command, or the end of a log")
    refused: list[tuple[pasted.Command, UserError]] = []
    for command in pasted.commands(source.text):
        try:
            return _imported(source, command, name)
        except UserError as error:
            refused.append((command, error))
    differing = next((each for each in refused if isinstance(each[1], Lossy)), None)
    if differing is None:
        if (other := mentions.recognized(source.text)) is not None:
            raise UserError(f"this is a command of {other.name}, {other.about}", other.hint)
        raise refused[0][1]
    if lossy:
        return _imported(source, differing[0], name, lossy=True)
    raise differing[1]


def _imported(source: Source, command: pasted.Command, name: str, *, lossy: bool = False) -> Imported:
    """The preset for one command of a text. Raises as `from_script`."""
    source = replace(source, text=command.text)
    found = script.parse(source)
    folder = Path(found.folder or source.folder)
    draft = _Draft(name, folder, notes=[*command.notes, *found.notes], losses=list(found.losses))
    for word in _options(list(filter(None, found.overrides)), draft):
        _add(word, draft)
    if not draft.layer and (lossy or not (draft.losses or draft.missing)):
        another = next((f" ({note})" for note in reversed(draft.notes) if " -m " in note), "")
        raise UserError(
            f"no veRL overrides found{another}", "a script must contain 'python -m verl.trainer.main_ppo KEY=VALUE ...'"
        )
    if found.entry != MAIN:
        entry = re.sub(r"\A(?:\./)?verl/trainer/main_ppo\.py\Z", MAIN, found.entry)
        if entry != MAIN:
            _program(draft, "entry_point", entry)
    if folder != source.folder and not folder.is_dir():
        draft.notes.append(f"the script changes to {folder}, which does not exist here; relative paths start there")
    own = is_verl(folder / "verl")
    if own or ("program", "entry_point") in draft.layer or any(map(_from_folder(draft), draft.layer.items())):
        _program(draft, "folder", str(folder))
        draft.notes.append(f"the run starts in {folder}; modules and relative paths are resolved from it")
    if draft.missing:
        asked = asked_for(draft.missing)
        draft.losses.append(f"the script does not set {', '.join(draft.missing)}; pass {asked} after the script name")
    if draft.ours:
        draft.notes.append(f"ppo-tui sets these for each run: {', '.join(draft.ours)}")
    if draft.losses and not lossy:
        raise Lossy(tuple(dict.fromkeys(map(redact, draft.losses))), draft.undecided)
    layer, given = draft.layer, set(draft.layer)
    of_env = list(_environment(layer, found.env, folder))
    preset = of_layer(layer).preset
    tidy(layer, followers=not preset.is_foreign)
    notes = [*(f"changed: {loss}" for loss in draft.losses), *draft.notes]
    if source.is_joined:
        notes.insert(0, "imported without the comments inside its command, at which a shell would end it")
    if preset.own_verl:
        notes.append(f"using the veRL in {preset.own_verl}, which shadows the installed one")
    elif clone := _clone(source):
        notes.append(f"{clone} contains its own veRL; import the script from there to use it")
    if not preset.is_foreign:
        notes += _fill_in(layer, given)
    elif preset.program.config is None:
        notes.append(_origin(preset))
    notes = list(dict.fromkeys(map(redact, [*found.cut, *notes, *of_env])))
    text = dump(layers.nest(portable(layer)), f"# Imported as {name}.", notes)
    return Imported(text, tuple(notes), tuple(map(redact, found.cut)))


def _origin(preset: Preset) -> str:
    """The origin of a preset program's configuration."""
    name, found = preset.program.own or MAIN, preset.configuration(interpreter(preset.python), None)
    if found is None:
        return f"the configuration of {name} was not found here; check compares the keys with veRL's"
    other = found.main.stem != name.removesuffix(".py").rpartition(".")[2]
    return f"{name} {f'runs {found.main}, which ' if other else ''}starts from {found.folder / found.name}.yaml"


def _clone(source: Source) -> Path | None:
    """The folder above a script with a copy of veRL, which Python finds only from that folder."""
    above = source.path.absolute().parents if source.path else ()
    return next((each for each in above if is_verl(each / "verl")), None)


def _options(words: list[str], draft: _Draft) -> Iterator[str]:
    """The overrides among the words; Hydra's configuration options go to the preset's program."""
    stray, at = [], 0
    while at < len(words):
        option, equals, value = words[at].partition("=")
        if option in _OPTIONS:
            at += not equals
            value = value if equals else "".join(words[at : at + 1])
            value = value.strip("'\"")
            if marks.is_marked(value):
                _doubt(option, value, draft)
            elif value not in _PLAIN:
                _program(draft, _OPTIONS[option], value)
        elif words[at].startswith("~") or ("=" in words[at] and not words[at].startswith("-")):
            yield words[at]
        elif marks.plain(words[at]):
            stray.append(words[at])
        at += 1
    if stray:
        draft.losses.append(f"not KEY=VALUE: {marks.plain(' '.join(stray))}")


def _program(draft: _Draft, name: str, value: str) -> None:
    draft.layer |= layers.from_mapping({"program": {name: value}}, lambda _: name, draft.folder)


def _doubt(key: str, value: str, draft: _Draft) -> None:
    """Notes an incomplete value: its unset variables become questions, other marks a loss."""
    if marks.is_unknown(value):
        why = ", ".join(dict.fromkeys(marks.reasons(value)))
        draft.losses.append(f"{key} is known only when the script runs: {why}")
        draft.undecided = True
    else:
        draft.missing |= dict.fromkeys(marks.unset_names(value))


def _add(word: str, draft: _Draft) -> None:
    """Adds one override to the layer, or to the notes and losses."""
    key, _, value = word.partition("=")
    bare, text = versions.newest(marks.plain(key).lstrip("+~")), value.strip("'\"")
    if bare in OURS or (bare, text) == ("ray_kwargs.ray_init.address", "local"):
        draft.ours.append(bare)
        if (bare, text) == ("trainer.resume_mode", "resume_path"):
            draft.losses.append("trainer.resume_mode=resume_path: continue a checkpoint with ppo-tui resume")
        return
    if (bare, text) == ("trainer.experiment_name", draft.name):
        return
    if marks.is_marked(word):
        if bare not in _NAMES:
            _doubt(key, word, draft)
            return
        draft.notes.append(f"{bare}: a part that is known only when the script runs was left out")
        word = re.sub(r"[-_.]+(?=['\"]?\Z)|(?<==)[-_.]+", "", marks.plain(word))
    try:
        draft.layer = layers.over(_setting(word, draft.folder), draft.layer)
    except UserError as error:
        why = error.without_place
        (draft.notes if isinstance(error, SecretValue) else draft.losses).append(
            f"left out: {why}" if key.lstrip("+~") in why else f"left out: {key}: {why}"
        )


def _setting(word: str, folder: Path) -> Layer:
    """The layer of one override. Raises UserError, also for a value refused by its field."""
    key, _, value = word.partition("=")
    bare = key.lstrip("+")
    default = EffectiveConfig().get(versions.newest(bare))
    if hydra.parse(value) is None and default is not None and not word.startswith("~"):
        word = f"++{bare}=null"  # null in a field would mean veRL's default
    layer = layers.from_override(word, folder)
    without_usual_loggers(layer)
    try:
        of_layer(layer)
    except WrongValue:
        if not word.startswith("~"):  # veRL may accept values that our field refuses
            layer = layers.from_override(f"++{word.lstrip('+')}", folder)
        of_layer(layer)
    return layer


def _from_folder(draft: _Draft) -> Any:
    """Whether a path in the layer is relative to the script's working folder."""
    located = {spec.path for spec in FIELDS.values() if spec.kind == "path"}

    def asked(item: tuple[tuple[str, ...], layers.LayerEntry]) -> bool:
        path, entry = item
        return path not in located and path[0] != "program" and any(map(relative, _texts(entry.value)))

    def relative(text: str) -> bool:
        return bool(_FILE.match(text)) or (
            "/" in text and not text.startswith(("/", "~")) and (draft.folder / text).exists()
        )

    return asked


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _fill_in(layer: Layer, given: Set[tuple[str, ...]]) -> Iterator[str]:
    """Sets veRL's defaults for fields that the script does not set (not in `given`) and ppo-tui sets."""
    seen = of_draft(layer)
    theirs = EffectiveConfig(settings={key: s for key, s in seen.settings.items() if s.source in ("field", "override")})
    names = []
    for spec in FIELDS.values():
        if (
            spec.path in given
            or not spec.key
            or spec.name in _OWN_DEFAULTS
            or (spec.default is None and not spec.follows)
        ):
            continue
        if spec.key.startswith("critic.") and seen.get(ESTIMATOR) in estimators().keys() - {"gae"}:
            continue
        value, ours = theirs.get(spec.key), seen.get(spec.key)
        if value == ours or (value is None and spec.default is None) or (value is None and not spec.nullable):
            continue
        layer[spec.path] = layers.LayerEntry(spec.from_verl(value), "veRL's default", spec.path[-1])
        without_usual_loggers(layer)
        names.append(f"{spec.name} ({value})")
    if names:
        yield f"set to veRL's default, because the script does not set it: {', '.join(names)}"


def _environment(layer: Layer, env: Mapping[str, str], folder: Path) -> Iterator[str]:
    device = layer.get(("trainer", "device"))
    on_cpu = device is not None and device.value == "cpu"
    ours = {environment.LOGGER, *environment.FIXED, *(environment.ON_CPU if on_cpu else ())}
    for name, value in env.items():
        if name in ours:
            continue
        if marks.is_unknown(value):
            yield f"left out: {name}, which is known only when the script runs: {', '.join(marks.reasons(value))}"
            continue
        value = marks.plain(value)
        if name in _LISTS:
            value = _without_ours(value, name, folder)
            if not value or value == os.environ.get(name):
                continue
        try:
            layer.update(layers.from_setting(f"env.{name}={value}", folder))
        except UserError as error:
            yield f"left out: {error}"


def _without_ours(value: str, name: str, folder: Path) -> str:
    """A list of folders or modules without the ones that every ppo-tui run has."""
    if name == "VERL_USE_EXTERNAL_MODULES":
        return ",".join(part for part in value.split(",") if part and part != inside.PLUGIN)
    parts = dict.fromkeys(str(folder / part) for part in value.split(os.pathsep) if part)
    parts.pop(str(inside.FOLDER), None)
    return os.pathsep.join(parts)


def add_script(source: Source, name: str, *, lossy: bool = False) -> tuple[Path, Imported]:
    """Writes a shell script or pasted command as a user's preset.

    Raises UserError without a command, and for an invalid or taken name; Lossy if the preset would train differently,
    unless `lossy`.
    """
    path = target(name)
    if path.exists():
        raise UserError(f"{path} already exists", "choose another name")
    found = from_script(source, path.stem, lossy=lossy)
    load_text(path, found.text)
    make_folder(path.parent)
    write_atomic(path, found.text.encode())
    return path, found

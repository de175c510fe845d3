"""The settings of a run: its newest attempt's, their origin, and differences between runs."""

import contextlib
import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from launcher.core.errors import UserError
from launcher.core.text import clean
from launcher.metrics.frameworks import described
from launcher.record.events import Action, read_kind
from launcher.record.info import Edit, Origin, RunInfo
from launcher.record.layout import RunDir

_WORDS = ("description", "needs")  # preset fields that are about a preset, and set nothing
_VERSIONS = "versions."
_COMMON = ("data.", "actor.", "trainer.")  # groups that need no name
_POWER = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")  # a number with an exponent
_COMPARED = 50  # maximum number of runs whose settings a command compares: each takes 10 ms


@dataclass(frozen=True)
class Difference:
    """A setting with its value per run; None if a run does not set it."""

    key: str
    values: list[Any]


def last_settings(run: RunDir) -> tuple[RunInfo, tuple[str, ...]]:
    """run.yaml with the preset merged with the newest resume's settings, and these settings.

    A resume starts from the run's own preset, not from the previous resume.
    """
    return with_resume(run.read_info(), read_kind(run.events, Action))


def with_resume(info: RunInfo, actions: Sequence[Action]) -> tuple[RunInfo, tuple[str, ...]]:
    """As `last_settings`, from records in memory."""
    settings = next((action.settings for action in reversed(actions) if action.verb == "resume"), ())
    if settings and info.preset is not None:
        from launcher.preset.files import restore

        with contextlib.suppress(UserError):  # the preset of another ppo-tui
            info = dataclasses.replace(info, preset=restore(info.of_preset, info.preset, settings).snapshot())
    return info, settings


def foreign(info: RunInfo) -> bool:
    """Whether another framework made the run, so that only some of its settings are known."""
    framework = described(info.framework)
    return framework is not None and not framework.own


def compared_settings(run: RunDir) -> tuple[RunInfo, tuple[str, ...]]:
    """As `last_settings`; for another framework's run, the known settings under our names."""
    info, resumed = last_settings(run)
    attempt = run.last_attempt() if info.preset is None and foreign(info) else None
    if attempt is not None and (keys := attempt.read_launch().keys):
        from launcher.preset.settle import shown_name

        info = dataclasses.replace(info, preset={shown_name(key): value for key, value in keys.items()})
    return info, resumed


def differences(infos: Sequence[RunInfo]) -> list[Difference]:
    """Preset fields, veRL keys and versions (`versions.torch`) with different values, sorted by name.

    A null field counts as not set. With runs of other frameworks, only settings that all runs have count. A run without
    a preset has no settings to compare, one made elsewhere no versions: it never differs in them, and its values are
    None.
    """
    flat = [settings(info) for info in infos]
    known = [entry for entry, info in zip(flat, infos, strict=True) if info.preset is not None]
    versions = [entry for entry, info in zip(flat, infos, strict=True) if info.versions]

    def differs(key: str) -> bool:
        comparable = versions if key.startswith(_VERSIONS) else known
        return any(entry.get(key) != comparable[0].get(key) for entry in comparable)

    keys = sorted({key for entry in known for key in entry})
    if any(map(foreign, infos)):
        keys = [key for key in keys if key.startswith(_VERSIONS) or all(key in entry for entry in known)]
    return [Difference(key, [entry.get(key) for entry in flat]) for key in keys if differs(key)]


def preset_edits(before: RunInfo, now: RunInfo) -> tuple[Edit, ...]:
    """Fields and veRL keys whose values differ between two presets; empty if one is unknown."""
    found = differences([RunInfo(preset=before.preset), RunInfo(preset=now.preset)])
    return tuple(Edit(each.key, *each.values) for each in found)


def changes(infos: Sequence[RunInfo]) -> list[list[Edit]]:
    """Settings of each run that differ from its current preset; `infos` are newest first.

    Changes shared by all runs of a preset are omitted. If the preset is gone, or the run was made elsewhere, the oldest
    run replaces the preset.
    """
    bases: dict[str, RunInfo] = {}
    presets = [info.of_preset for info in infos]
    for info, name in zip(reversed(infos), reversed(presets), strict=True):
        if name not in bases:
            bases[name] = _preset_of(info) or info
    found = [_edits(bases[name], info) for info, name in zip(infos, presets, strict=True)]
    runs = Counter(presets)
    shared = Counter((name, str(edit)) for name, edits in zip(presets, found, strict=True) for edit in edits)
    return [
        [edit for edit in edits if runs[name] == 1 or shared[name, str(edit)] < runs[name]]
        for name, edits in zip(presets, found, strict=True)
    ]


def differs(edits: Sequence[Edit], room: int = 48) -> str:
    """`lr=0.1 critic.lr=1e-5`, to follow a run's name: as many as fit, then the number of the others."""
    words = [f"{_short(edit.key)}={shown_value(edit.now)}" for edit in edits]
    for left_out in range(len(words)):
        text = " ".join(words[: len(words) - left_out]) + (f" +{left_out}" if left_out else "")
        if len(text) <= room:
            return text
    return f"+{len(words)}" if words else ""


def titles(runs: Sequence[RunDir]) -> dict[str, str]:
    """Ids of runs, newest first, with `7f3a1c-toy-cpu lr=0.1`, as far as their settings are compared."""
    compared = runs[:_COMPARED]
    found = zip(compared, changes([run.read_info() for run in compared]), strict=True)
    return {run.id: run.id for run in runs} | {run.id: title(run.id, differs(edits)) for run, edits in found}


def title(name: str, words: str) -> str:
    """A name with its differing settings."""
    return f"{name} {words}".rstrip()


def asked_words(settings: Sequence[str]) -> str:
    """KEY=VALUE settings in the form and order of `differs`: `lr=0.1` for `actor.lr=0.1`."""
    named = sorted(setting.partition("=") for setting in settings)
    said = {value: shown_value(float(value)) for _, _, value in named if _POWER.fullmatch(value)}
    return " ".join(f"{_short(key)}{equals}{said.get(value, value)}" for key, equals, value in named)


@cache
def _first() -> Mapping[str, str]:
    """The field that the last part of a name means alone: `actor.lr` for `lr`."""
    from launcher.preset.schema import FIELDS

    return {name.rpartition(".")[2]: name for name in reversed(FIELDS) if name.startswith(_COMMON)}


def _short(key: str) -> str:
    """`lr` for actor.lr, `critic.lr`, and the last two parts of a longer name."""
    last = key.rpartition(".")[2]
    return last if _first().get(last) == key else ".".join(key.split(".")[-2:])


def shown_value(value: object) -> str:
    """A value in YAML form; `unset` for None."""
    from launcher.preset.yaml_text import text_of

    return "unset" if value is None else clean(text_of(value))


def _edits(before: RunInfo, now: RunInfo) -> list[Edit]:
    """Settings with different values; an unset one counts as its default."""
    from launcher.preset.schema import FIELDS

    if now.preset is None:
        return []
    edits = []
    for key, values in ((each.key, each.values) for each in differences([before, now])):
        default = FIELDS[key].default if key in FIELDS else None
        old, new = (default if value is None else value for value in values)
        if old != new and not key.startswith(_VERSIONS):
            edits.append(Edit(key, old, new))
    return edits


def _preset_of(info: RunInfo) -> RunInfo | None:
    """run.yaml as the run's preset would make it now; None without one, and for a run made elsewhere."""
    from launcher.preset.files import load

    if info.preset is None or info.imported_from:
        return None
    with contextlib.suppress(UserError):
        return RunInfo(preset=load(info.preset_file or info.of_preset).snapshot())
    return None


def settings(info: RunInfo) -> dict[str, object]:
    """The flattened settings of a run.yaml: `actor.lr`; veRL keys of `overrides` unchanged; `versions.verl`."""
    if info.preset is None:
        return {}
    preset = {key: value for key, value in info.preset.items() if key not in _WORDS}
    verl_keys = preset.pop("overrides", None)
    return _flat(preset) | _flat(verl_keys if isinstance(verl_keys, dict) else {}) | _flat(info.versions, _VERSIONS)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def lineage(origin: Origin | None, arrow: str = "→") -> str:
    """`fork of b87822-toy-cpu at step 24: actor.lr 3e-4 → 6e-5`; empty for a run without an origin."""
    if origin is None:
        return ""
    if origin.step is None:
        began = f"with the settings of {origin.run}"
    else:
        at = f"at step {origin.step}" if origin.step else "from its start"
        began = f"fork of {origin.run} {at}" + (f", trial for {origin.trial}" if origin.trial else "")
    changes = ", ".join(
        f"{each.key} {shown_value(each.before)} {arrow} {shown_value(each.now)}" for each in origin.diff
    )
    return f"{began}: {changes}" if changes else f"{began}, no change"

"""Keys that veRL does not know, use or accept (Hydra's errors and V18), and the files that they name.

veRL: `verl/utils/config.py: omega_conf_to_dataclass` builds the classes that refuse unknown fields.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from launcher.check.config.agents import ROUTER
from launcher.check.config.base import Findings, of_keys, of_trainer
from launcher.check.finding import Level, Words, found
from launcher.check.subject import Subject
from launcher.core.files import near_file
from launcher.core.text import did_you_mean, perhaps, slip_of
from launcher.preset.schema import BY_KEY, FIELDS
from launcher.verl import defaults, hydra, versions
from launcher.verl.config import DATA, ROLLOUT
from launcher.verl.programs import Found
from launcher.verl.versions import ignored

UNBUILT = ("algorithm", "reward", "trainer", "data")
"""Blocks that the trainer reads directly; veRL builds other blocks into classes that refuse unknown fields."""

REWARDS = ("custom_reward_function.", "reward_model.", "sandbox_fusion.")
KWARGS = "reward.reward_kwargs."
"""Keys for reward managers (DAPO's long answers), absent from every version's configuration."""

DEMANDED = ("critic.ppo_micro_batch_size_per_gpu",)
"""Unused keys that a run nevertheless requires."""

SAMPLER = "trainer.v1.sampler.custom_sampler"
CLASS, MULTI_TURN, MANAGER = f"{DATA}.custom_cls", f"{ROLLOUT}.multi_turn", "reward.reward_manager"


def named_files(subject: Subject) -> Findings:
    """FILE-1: a file that a key names exists; a custom class has a name."""
    loops = subject.at_least("0.7.0")  # read whether it is enabled or not
    used = {
        f"{CLASS}.path": True,
        f"{SAMPLER}.path": bool(subject.get(f"{SAMPLER}.name")),
        f"{ROLLOUT}.agent.agent_loop_config_path": loops,
        ROUTER: True,
        f"{MULTI_TURN}.function_tool_path": loops,
        f"{MULTI_TURN}.tool_config_path": loops or subject.get(f"{MULTI_TURN}.enable") is True,
        f"{MULTI_TURN}.interaction_config_path": subject.get(f"{MULTI_TURN}.enable") is True,
        f"{MANAGER}.module.path": subject.get(f"{MANAGER}.source") == "importlib",
    }
    for key, needed in used.items():
        path = subject.get(key)
        path = path.removeprefix("file://") if isinstance(path, str) else path
        if not needed or not isinstance(path, str) or "://" in path or Path(path).is_file():
            continue
        near = perhaps(near_file(Path(path)))
        missing = "not a file, but a folder" if Path(path).is_dir() else "file not found"
        yield found("FILE-1.missing", key=key, missing=missing, path=path, near=near)
    if subject.get(f"{MANAGER}.source") == "importlib" and not subject.get(f"{MANAGER}.module.path"):
        yield found("FILE-1.module")
    if subject.get(f"{CLASS}.path") and not subject.get(f"{CLASS}.name"):
        yield found("FILE-1.class")


def unknown(subject: Subject) -> Findings:
    """KEY-1: Hydra rejects a key that veRL's configuration does not have: a typo, or a missing `+`."""
    lacking = [
        key
        for prefix, key in (_overrides(subject) if subject.config is None else _free(subject))
        if not (prefix or _has(subject, key) or versions.unlisted(versions.newest(key), subject.version))
    ]
    if subject.config is None:  # the program may have any keys: no guess which ones were meant
        if lacking:
            names = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
            yield found("KEY-1.program", version=subject.version, names=names, program=subject.program, keys=lacking)
        return
    for key in lacking:
        other = versions.foreign().get(versions.newest(key))
        near = other.instead if other else _meant(subject, key)
        then = "it is passed on; veRL rejects it unless it has this key" if subject.verl is None else "Hydra rejects it"
        known = f", a key of {other.of}" if other else perhaps(near)
        words: Words = {"source": _source(subject), "key": key, "perhaps": known, "then": then, "near": near}
        level: Level = "warning" if subject.verl is None else "error"
        gone = defaults.life(versions.newest(key))[1]
        if gone is not None and subject.at_least(gone):
            yield found("KEY-1.removed", **words | {"gone": gone}, level=level)
            continue
        yield found("KEY-1.near" if near else "KEY-1.foreign" if other else "KEY-1.unknown", **words, level=level)


def appended(subject: Subject) -> Findings:
    """KEY-2: `+` only adds keys that do not exist or are null; it merges mappings and lists.

    Hydra: `hydra/_internal/config_loader_impl.py: ConfigLoaderImpl._apply_overrides_to_config`.
    """
    for prefix, key in _free(subject):
        joined = isinstance(subject.settings[key].value, (dict, list))
        if prefix == "+" and not joined and defaults.leaf(subject.defaults, key)[1] is not None:
            yield found("KEY-2", key=key)


@of_trainer
def strange(subject: Subject) -> Findings:
    """V18: a key added to a block is a field of its class; in other blocks it may have no effect."""
    for prefix, key in _free(subject):
        if not prefix or _has(subject, key) or versions.newest(key).startswith(KWARGS):
            continue
        block, name = _nearest_block(subject, key)
        tree = defaults.leaf(subject.defaults, block)[1] if block else subject.defaults
        if not isinstance(tree, dict) or not tree or block.startswith("ray_kwargs"):
            continue  # a free-form mapping, such as engine_kwargs or override_config
        fields = subject.facts.classes.get(str(tree.get("_target_", "")).rpartition(".")[2], {})
        if name in fields:
            continue
        known = sorted({*fields, *(each for each in tree if not each.startswith("_"))})
        near, other = slip_of(name, known), versions.foreign().get(versions.newest(key))
        meant = other.instead if other else near and f"{block}.{near}"
        if fields and block.partition(".")[0] not in UNBUILT and subject.at_least("0.6.0"):
            if block.startswith("critic") and not subject.has_critic:
                continue
            instead = f", or use {meant} if that is what you meant" if meant else ""
            yield found("V18", block=block, name=name, near=perhaps(near), key=key, instead=instead)
        elif meant and not subject.registering:
            yield found("KEY-3", key=key, near=f", a key of {other.of}" if other else perhaps(near), meant=meant)


def unused(subject: Subject) -> Findings:
    """KEY-4: keys that this version accepts and ignores; ignored reward keys change the run."""
    passed = {key: setting.value for key, setting in subject.settings.items()}
    for key, why in ignored(passed, subject.version):
        if subject.settings[key].source in ("ppo-tui", "derived") or key in DEMANDED:
            continue
        level: Level = "warning" if key.startswith(REWARDS) else "info"
        yield found("KEY-4", version=subject.version, key=key, why=why, level=level)


@of_keys
def groups(subject: Subject) -> Findings:
    """KEY-5: a config group or name, such as model_engine or program.config_name, names existing files."""
    own, folder = subject.config, (subject.verl or Path()) / "trainer" / "config"
    if subject.knows_keys or subject.verl is None or not folder.is_dir():
        return
    if not isinstance(own, Found) and "hydra.searchpath" in subject.settings:
        return
    if isinstance(own, str) and not (file := subject.verl / f"{own}.yaml").is_file():
        names = sorted(each.stem for each in file.parent.glob("*.yaml"))
        near = did_you_mean(file.stem, names)
        yield found(
            "KEY-5.config" if names else "KEY-5.no-config",
            version=subject.version,
            name=file.stem,
            near=near,
            names=names,
        )
    for key, setting in subject.settings.items():
        if not hydra.is_group(key):
            continue
        group = key.partition("@")[0]
        folders = (own.folder, *own.search, folder) if isinstance(own, Found) else (folder,)
        files = sorted({file.stem for each in folders for file in (each / group).glob("*.yaml")})
        if str(setting.value) in files:
            continue
        words: Words = {"source": _source(subject), "kind": group, "value": setting.value, "key": key, "files": files}
        near = did_you_mean(str(setting.value), files)
        yield found("KEY-5.choice" if files else "KEY-5.no-choice", **words, near=near)


def of_other_engines(subject: Subject) -> Findings:
    """KEY-6: other model engines have no keys for FSDP fields."""
    if not subject.chosen or not subject.knows_keys:
        return
    for key, setting in subject.settings.items():
        spec = BY_KEY.get(versions.newest(key))
        if spec is None or setting.prefix or setting.source not in ("field", "derived") or _has(subject, key):
            continue
        field, last = spec.follows if setting.source == "derived" else spec.name, key.rpartition(".")[2]
        block = key.partition(".fsdp")[0]
        there = [
            each for each in defaults.leaves(subject.defaults) if each.startswith(block) and each.endswith(f".{last}")
        ]
        instead = f", and {there[0]} under overrides instead" if there else ""
        yield found("KEY-6", key=key, chosen=subject.chosen, field=field, instead=instead)


def _in_own_verl(rule: Callable[[Subject], Findings]) -> Callable[[Subject], Findings]:
    """The rule with errors reduced to warnings if the preset has its own veRL, whose program may differ."""

    @functools.wraps(rule)
    def judged(subject: Subject) -> Findings:
        own = subject.loaded.preset.own_verl
        for finding in rule(subject):
            if own is None or finding.level != "error":
                yield finding
            else:
                message = finding.message.replace(f"veRL {subject.version}", f"the veRL in {own.parent}")
                yield replace(finding, level="warning", message=message)

    return judged


def _source(subject: Subject) -> str:
    """The origin of the keys: veRL, or a program's configuration."""
    own = subject.config
    return f"the configuration {own.folder / own.name}.yaml" if isinstance(own, Found) else f"veRL {subject.version}"


def _free(subject: Subject) -> Iterator[tuple[str, str]]:
    """As `_overrides`, if all valid keys are known."""
    return _overrides(subject) if subject.knows_keys else iter(())


def _overrides(subject: Subject) -> Iterator[tuple[str, str]]:
    """Keys without a preset field, except Hydra's: prefix, and this version's name of the key."""
    for key, setting in subject.settings.items():
        if setting.source == "override" and not hydra.is_group(key) and not key.startswith("hydra."):
            yield setting.prefix, key


def _has(subject: Subject, key: str) -> bool:
    return defaults.leaf(subject.defaults, key)[0]


def _nearest_block(subject: Subject, key: str) -> tuple[str, str]:
    """The deepest existing block of the key, and the first missing name below it."""
    names = key.split(".")
    for depth in range(len(names) - 1, 0, -1):
        if _has(subject, ".".join(names[:depth])):
            return ".".join(names[:depth]), names[depth]
    return "", names[0]


def _meant(subject: Subject, key: str) -> str | None:
    """The key of the same block that differs by one slip."""
    block, name = _nearest_block(subject, key)
    there = defaults.leaf(subject.defaults, block)[1] if block else subject.defaults
    ours = [spec.path[1] for spec in FIELDS.values() if spec.path[0] == block and len(spec.path) > 1]
    near = slip_of(name, [*there, *ours]) if isinstance(there, dict) else None
    found = key.replace(f"{block}.{name}" if block else name, f"{block}.{near}" if block else str(near), 1)
    return found if near and (_has(subject, found) or found in FIELDS) else None


RULES = (named_files, unused, *map(_in_own_verl, (unknown, appended, strange, groups, of_other_engines)))

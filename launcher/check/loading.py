"""Loads the names of a run in advance, in veRL's interpreter: modules, classes, models, tokenizers.

veRL: `verl/workers/config/model.py: HFModelConfig.__post_init__`, `verl/utils/import_utils.py`,
`verl/workers/config/optimizer.py: build_optimizer`.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.check import model, worker
from launcher.check.config import RULES, agents, optimizer
from launcher.check.facts import known_names
from launcher.check.finding import Finding, found
from launcher.check.subject import Subject
from launcher.core.text import clean, did_you_mean
from launcher.estimate import models
from launcher.record.json import Record
from launcher.verl import defaults
from launcher.verl.config import ACTOR, CRITIC, CRITIC_PATH, MODEL, MODEL_PATH, ROLLOUT

TIMEOUT = 120.0  # seconds for all of it
CLASS, SAMPLER, MANAGER = "data.custom_cls", "trainer.v1.sampler.custom_sampler", "reward.reward_manager"
BACKEND = f"{ROLLOUT}.checkpoint_engine.custom_backend_module"
BY_NAME = {
    "trainer.checkpoint_callback_class": "callback",
    f"{ROLLOUT}.agent.agent_loop_manager_class": "loop_manager",
    f"{ROLLOUT}.checkpoint_manager_class": "",
}
"""Classes by module and name, with their kind in names.toml.

veRL: `verl/utils/import_utils.py: load_class_from_fqn`, `checkpoint_callback.py: build_checkpoint_callback`.
"""

UNBUILT = ("global_profiler", "trainer", "algorithm", "data")
"""Blocks whose class veRL does not build."""

Item = dict[str, Any]
"""A request to `ppo_tui_inside.probes.load_names`."""


@dataclass(frozen=True)
class Loaded(Record):
    """Why an item cannot be loaded (None if it can), and existing names."""

    error: str | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply(Record):
    """The probe's results in the order of the items; empty if it did not end."""

    loaded: tuple[Loaded, ...] = ()


def checks(subject: Subject) -> Iterable[Finding]:
    """LOAD-1 to LOAD-4: named objects can be loaded, and configured ones can be built."""
    items = [(key, item) for key, item in _items(subject) if _here(item)]
    if not items or subject.machine.assumed:
        return
    folder = subject.loaded.preset.program.folder
    path = [each for each in (folder, *subject.env.get("PYTHONPATH", "").split(os.pathsep)) if each]
    request = {"items": [item for _, item in items], "path": path}
    env = {**subject.loaded.preset.env, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    reply = Reply.from_json(worker.ask(subject.python, "load_names", request, timeout=TIMEOUT, env=env))
    for (key, item), result in zip(items, reply.loaded, strict=False):
        if result.error is not None:
            yield from _finding(subject, key, item, clean(result.error), result.names)


def _items(subject: Subject) -> Iterator[tuple[str, Item]]:
    """The items to load, each with its key."""
    blocks = [MODEL, *([f"{CRITIC}.model"] if subject.has_critic else [])]
    for block in blocks:
        value = subject.get(key := f"{block}.external_lib")
        for name in value if isinstance(value, list) else [value] if value else []:
            yield key, {"module": str(name)}
    if name := subject.text(BACKEND):
        yield BACKEND, {"module": name}
    if path := subject.text(agents.ROUTER):
        yield agents.ROUTER, {"target": agents.router(Path(path))}
    yield from _class(
        subject,
        f"{CLASS}.path",
        f"{CLASS}.name",
        "torch.utils.data.Dataset",
        {"given": known_names().arguments["dataset"][: 5 if subject.at_least("0.6.1") else 4]},
    )
    yield from _rows(subject)
    yield from _class(
        subject, f"{SAMPLER}.path", f"{SAMPLER}.name", "builtins.object", _use(subject, "sampler", "0.9.0")
    )
    if subject.get(f"{MANAGER}.source") == "importlib":
        use = _use(subject, "scorer", "0.7.1")
        yield from _class(subject, f"{MANAGER}.module.path", f"{MANAGER}.name", "builtins.object", use)
    for key, kind in BY_NAME.items():
        if name := subject.text(key):
            yield key, {"target": name, **_use(subject, kind, "0.9.0")}
    yield from _agents(subject)
    for block in (ACTOR, *([CRITIC] if subject.has_critic else [])):
        impl, name = subject.text(f"{block}.optim.optimizer_impl"), subject.text(f"{block}.optim.optimizer")
        if impl and name and impl != "torch.optim" and optimizer.installed(subject, impl):
            yield f"{block}.optim.optimizer_impl", {"target": f"{impl}.{name}"}
        if given := subject.below(key := f"{block}.optim.override_optimizer_config"):
            yield key, {"optimizer": name, "impl": impl, "given": given}
    yield from _models(subject)
    yield from _built(subject)


def _built(subject: Subject) -> Iterator[tuple[str, Item]]:
    """Blocks of veRL's configuration with a set key that their class checks itself and no rule judges.

    A key referred to by another key also counts: the profilers of all workers follow `global_profiler`. veRL: the
    `__post_init__` of the classes that `verl/utils/config.py: omega_conf_to_dataclass` makes.
    """
    given = {key for key, each in subject.settings.items() if each.source == "override" and subject.is_set(key)}
    if not given or subject.verl is None or not isinstance(subject.config, str) or not subject.at_least("0.9.0"):
        return
    given -= {key for rule in RULES for found in rule(subject) if found.level == "error" for key in found.keys}
    seen = set[tuple[str, str]]()
    for block, tree in defaults.blocks(subject.defaults):
        kind = str(tree["_target_"])
        if block.partition(".")[0] in UNBUILT or (block.startswith(CRITIC) and not subject.has_critic):
            continue
        for name in subject.facts.checked.get(kind.rpartition(".")[2], []):
            value = str(tree.get(name, ""))
            key = next((each for each in given if f"{block}.{name}" == each or f":{each}" in value), None)
            if key and (kind, key) not in seen:
                seen.add((kind, key))
                plain = {each: subject.get(f"{block}.{each}") for each in tree if not isinstance(tree[each], dict)}
                known = {each: value for each, value in plain.items() if each != "_target_" and value is not None}
                yield key, {"build": kind, "values": known}


def _rows(subject: Subject) -> Iterator[tuple[str, Item]]:
    """The user's data set class on the first rows, which must yield the column raw_prompt (0.9 on).

    veRL: `verl/trainer/ppo/v1/trainer_base.py: PPOTrainer._fetch_one_gen_batch`.
    """
    named = subject.get("data.train_files")
    file = str((named[0] if named else "") if isinstance(named, list) else named)
    folder = models.folder_of(str(subject.get(model.TOKENIZER) or subject.get(MODEL_PATH)), subject.env)
    kind = {"file": str(subject.get(f"{CLASS}.path")), "name": str(subject.get(f"{CLASS}.name"))}
    if not (subject.get(f"{CLASS}.path") and folder and Path(file).is_file() and subject.at_least("0.9.0")):
        return
    keys = [f"data.{name}" for name in defaults.leaves(defaults.leaf(subject.defaults, "data")[1] or {})]
    keys += [key for key in subject.settings if key.startswith("data.")]
    data = {key.removeprefix("data."): subject.get(key) for key in keys}
    yield f"{CLASS}.name", {**kind, "rows": file, "tokenizer": str(folder), "data": data}


def _agents(subject: Subject) -> Iterator[tuple[str, Item]]:
    """The classes of agent loops, and of tools with their schemas.

    veRL: `verl/experimental/agent_loop/agent_loop.py: AgentLoopWorker`, `verl/tools/tool_registry.py: load_all_tools`.
    """
    if not subject.at_least("0.7.0"):
        return
    if path := subject.text(agents.LOOPS):
        use = _use(subject, "loop", "0.9.0")
        for name, target, arguments in agents.loops(path):
            if target and name == subject.get(agents.LOOP):
                yield agents.LOOPS, {"target": target, **use, "given": [*use["given"], *arguments] if use else ()}
    for key in agents.TOOLS if subject.at_least("0.8.0") and subject.verl else ():
        if path := subject.text(key):
            yield key, {"tools": path, "python": key == agents.TOOLS[1]}


def _use(subject: Subject, kind: str, since: str) -> Item:
    """The arguments that veRL passes to a class of this kind, and the methods that it calls, from `since` on."""
    if not subject.at_least(since):
        return {}
    known = known_names()
    return {"given": known.arguments.get(kind, []), "methods": known.methods.get(kind, [])}


def _class(subject: Subject, path: str, name: str, base: str, use: Item) -> Iterator[tuple[str, Item]]:
    if subject.get(path) and subject.get(name):
        yield name, {"file": str(subject.get(path)), "name": str(subject.get(name)), "base": base, **use}


def _models(subject: Subject) -> Iterator[tuple[str, Item]]:
    """The models on this machine, except the toy's, with the preset's changes to their configurations."""
    seen = set()
    for key, block in ((MODEL_PATH, MODEL), (CRITIC_PATH, f"{CRITIC}.model")):
        name = str(subject.get(key) or "")
        changed = subject.below(f"{block}.override_config")
        override = {name: each for name, each in changed.items() if name != "attn_implementation"}
        if (block != MODEL and not subject.has_critic) or (models.is_toy(name) and not override):
            continue
        folder, trust = models.folder_of(name, subject.env), bool(subject.get(f"{block}.trust_remote_code"))
        if folder is None or folder in seen:
            continue
        seen.add(folder)
        yield key, {"model": str(folder), "trust": trust, "override": override.get("model_config", override)}
        tokens = models.folder_of(str(subject.get(f"{block}.tokenizer_path") or name), subject.env)
        if tokens is not None:
            yield key, {"tokenizer": str(tokens), "trust": trust}


def _here(item: Item) -> bool:
    """Whether the file exists; other checks report missing ones."""
    if "tools" in item:
        return Path(item["tools"]).is_file()
    if "target" in item:
        return bool(item["target"])
    if "file" in item:
        return "://" in item["file"] or Path(item["file"]).is_file()
    return (Path(item["model"]) / "config.json").is_file() if "model" in item else True


def _finding(subject: Subject, key: str, item: Item, error: str, names: Sequence[str]) -> Iterator[Finding]:
    if "tools" in item:
        yield found("LOAD-1.tools", key=key, name=Path(item["tools"]).name, error=error)
    elif "target" in item:
        yield found(
            "LOAD-1.target", key=key, item=item["target"], error=error, package=item["target"].partition(".")[0]
        )
    elif "module" in item:
        yield found("LOAD-1.module", key=key, item=item["module"], error=error)
    elif "file" in item:
        file, name = item["file"].rpartition("/")[2], item["name"]
        near = did_you_mean(name, names) or (f"; it defines {', '.join(names)}" if names else "")
        yield found("LOAD-1.fails" if error else "LOAD-1.class", key=key, file=file, name=name, near=near, error=error)
    elif "optimizer" in item:
        if error in item["given"]:
            error = f"{item['optimizer']} takes no '{error}'{did_you_mean(error, names)}: veRL fails at model load"
            yield found("LOAD-2.argument", key=key, error=error, names=names)
        else:
            yield found("LOAD-2.value", key=key, item=item["optimizer"], given=item["given"], error=error)
    elif "build" in item:
        yield found("LOAD-4", key=key, value=subject.get(key), version=subject.version, error=error)
    else:
        what = "tokenizer" if "tokenizer" in item else "model"
        broken = "weights" if "missing" in names else "fails"
        yield found(f"LOAD-3.{broken}", what=what, place=item[what], error=error, key=key)

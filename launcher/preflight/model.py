"""The model: does it suit the settings, is it here and whole, can it be had?"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from launcher import paths
from launcher.files import read_json
from launcher.format import gib
from launcher.preflight import models
from launcher.preflight.config.base import has_critic
from launcher.preflight.finding import Finding
from launcher.preflight.models import ModelFacts
from launcher.preflight.subject import Subject
from launcher.text import clean, did_you_mean

PATH, CRITIC = "actor_rollout_ref.model.path", "critic.model.path"
TENSOR = "actor_rollout_ref.rollout.tensor_model_parallel_size"
ULYSSES = "actor_rollout_ref.actor.ulysses_sequence_parallel_size"
MAX_LEN = "actor_rollout_ref.rollout.max_model_len"
TEMPLATE = "actor_rollout_ref.model.custom_chat_template"
TIMEOUT = 5.0  # seconds for the hub's answer
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
TRUE = ("1", "on", "yes", "true")


def shape(subject: Subject) -> Iterable[Finding]:
    """What the model's sizes say about the settings; P17, P26 and the division of its heads. Quick."""
    facts = models.facts(str(subject.value(PATH)), _env(subject))
    if facts is None:
        return
    yield from _heads(subject, facts)
    yield from _context(subject, facts)


def checks(subject: Subject) -> Iterable[Finding]:
    """Whether the models and the tokenizer are whole, or can be had."""
    named = {str(subject.value(PATH)): PATH}
    if has_critic(subject):
        named.setdefault(str(subject.value(CRITIC) or subject.value(PATH)), CRITIC)
    for name, key in named.items():
        folder = models.folder_of(name, _env(subject))
        found = list(_folder(subject, name, key, folder)) if folder else []
        # what the hub's cache lacks is fetched, as the whole model is
        fetched = folder is None or (str(folder) != name and not _offline(subject) and _is_broken(found))
        if not fetched:
            yield from found
        elif not subject.machine.assumed:
            yield from _absent(subject, name, key)


def _heads(subject: Subject, facts: ModelFacts) -> Iterator[Finding]:
    heads = facts.sizes.heads
    tensor, sharing = subject.value(TENSOR, 1), subject.value(ULYSSES, 1)
    if isinstance(tensor, int) and tensor > 1 and heads % tensor:
        fitting = max(size for size in range(1, tensor) if heads % size == 0 and subject.gpus % size == 0)
        yield Finding(
            "MODEL-1", "model", "error", (TENSOR,),
            f"{facts.name} has {heads} attention heads, which {tensor} GPUs cannot share",
            f"set rollout.tensor_model_parallel_size to {fitting}",
            {"rollout.tensor_model_parallel_size": fitting},
        )  # fmt: skip
    if isinstance(sharing, int) and sharing > 1 and heads % sharing:
        yield Finding(
            "P26", "model", "error", (ULYSSES,),
            f"{facts.name} has {heads} attention heads, which sequence parallelism over {sharing} GPUs "
            f"cannot "
            "share",
            "set actor.ulysses_sequence_parallel_size to 1", {"actor.ulysses_sequence_parallel_size": 1},
        )  # fmt: skip


def _context(subject: Subject, facts: ModelFacts) -> Iterator[Finding]:
    context = facts.sizes.context
    longest, limit = subject.value(MAX_LEN), context
    lengths = subject.value("data.max_prompt_length", 512), subject.value("data.max_response_length", 512)
    if isinstance(longest, int) and context and longest > context:
        yield Finding(
            "P17", "model", "error", (MAX_LEN,),
            f"rollout.max_model_len is {longest}, and {facts.name} reaches {context} tokens",
            f"set rollout.max_model_len to {context}", {"rollout.max_model_len": context},
        )  # fmt: skip
    if context and all(isinstance(each, int) for each in lengths) and sum(lengths) > limit:
        yield Finding(
            "MODEL-2", "model", "error", ("data.max_prompt_length", "data.max_response_length"),
            f"prompt {lengths[0]} + response {lengths[1]} = {sum(lengths)} tokens, and {facts.name} reaches "
            f"{context}",
            f"set data.max_response_length to {context - lengths[0]}"
            if lengths[0] < context else f"shorten both to {context} tokens together",
        )  # fmt: skip


def _folder(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    """A model on disk: configuration, weights, tokenizer, chat template."""

    def broken(message: str) -> Finding:
        return Finding("MODEL-3", "model", "error", (key,), f"{name}: {message}", _again(name, folder))

    if not (folder / "config.json").is_file():
        yield broken(f"{folder} has no config.json")
        return
    files, missing = models.weight_files(folder)
    cut = [file.name for file in files if models.read_header(file) is None]
    if missing:
        yield broken(f"{len(missing)} of {len(files) + len(missing)} weight files are missing: {missing[0]}")
    elif cut:
        yield broken(f"{cut[0]} is cut off or no safetensors file")
    elif not files and not list(folder.glob("pytorch_model*.bin")):
        yield broken(f"{folder} has no weights")
    if key != PATH:
        return
    asked = subject.value("actor_rollout_ref.model.tokenizer_path")
    place = models.folder_of(str(asked), _env(subject)) if asked else folder
    if place is None:
        return
    if not has_tokenizer(place):
        yield broken(f"{place} has no tokenizer")
    elif not subject.value(TEMPLATE) and not has_chat_template(place):
        yield Finding(
            "P27", "model", "error", (PATH, TEMPLATE),
            f"{name} has no chat template: every prompt would fail in the first step",
            "use the -Instruct version of the model, or give actor_rollout_ref.model.custom_chat_template",
        )  # fmt: skip


def has_tokenizer(folder: Path) -> bool:
    """Whether there is a tokenizer in this folder."""
    return any((folder / each).is_file() for each in TOKENIZERS)


def has_chat_template(folder: Path) -> bool:
    """Whether the tokenizer in this folder can turn messages into a prompt."""
    beside = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")
    return any((folder / name).exists() for name in beside) or bool(
        read_json(folder / "tokenizer_config.json").get("chat_template")
    )


def _absent(subject: Subject, name: str, key: str) -> Iterator[Finding]:
    """A model that is not on this machine: is it a name on the hub, and does the hub answer?"""
    path, env = Path(name), _env(subject)
    if name.startswith(("/", "~", ".")) or name.count("/") > 1:
        if path.is_relative_to(paths.cache_dir() / "toy"):
            yield Finding("MODEL-0", "model", "info", (key,), "the toy model is made on the first start",
                          "ppo-tui data toy makes it now")  # fmt: skip
            return
        near = did_you_mean(path.name, [each.name for each in path.parent.glob("*")])
        yield Finding(
            "MODEL-4", "model", "error", (key,), f"there is no folder {name}{near}",
            "name the folder with config.json, or a model on the Hugging Face hub",
        )  # fmt: skip
        return
    if _offline(subject):
        yield Finding(
            "MODEL-4", "model", "error", (key,),
            f"{name} is not in the cache {models.hub_cache(env)}, and HF_HUB_OFFLINE forbids to fetch it",
            f"HF_HUB_OFFLINE=0 hf download {name}",
        )  # fmt: skip
        return
    answer = ask_hub(name, env)
    if answer == 200:
        facts = models.facts(name, env)
        size = f", about {gib(2 * facts.parameters)} GiB" if facts else ""
        yield Finding(
            "MODEL-5", "model", "info", (key,), f"{name} will be downloaded on the first start{size}",
            f"hf download {name} does so now",
        )  # fmt: skip
    elif answer in (401, 403):
        known = bool(env.get("HF_TOKEN"))
        yield Finding(
            "MODEL-6", "model", "warning" if known else "error", (key,),
            f"{name} is gated or does not exist: the hub answers {answer} without a login",
            "see that your token may read it" if known
            else f"accept its conditions on huggingface.co/{name}, then 'hf auth login' or export HF_TOKEN",
        )  # fmt: skip
    elif answer == 404:
        near = did_you_mean(name.rpartition("/")[2], models.TABLE)
        yield Finding(
            "MODEL-4", "model", "error", (key,), f"the hub has no model {name}{near}", "correct model.path"
        )
    else:
        yield Finding(
            "MODEL-7", "model", "error", (key,),
            f"{name} is not on this machine, and the hub cannot be reached ({clean(str(answer))})",
            f"copy the model here and give its folder, or set HF_ENDPOINT to a mirror; cache: "
            f"{models.hub_cache(env)}",
        )  # fmt: skip


def ask_hub(name: str, env: Mapping[str, str]) -> int | str:
    """The hub's answer to who asks, without a login, for the model's config.json: HTTP status or why none."""
    endpoint = env.get("HF_ENDPOINT") or "https://huggingface.co"
    url = f"{endpoint.rstrip('/')}/{name}/resolve/main/config.json"
    try:
        request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "ppo-tui"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error)) or type(error).__name__


def _again(name: str, folder: Path) -> str:
    if str(folder) == name:
        return "download or copy it again, whole"
    return f"hf download {name} fetches what is missing"


def _is_broken(found: list[Finding]) -> bool:
    return any(finding.id == "MODEL-3" for finding in found)


def _offline(subject: Subject) -> bool:
    return _env(subject).get("HF_HUB_OFFLINE", "").lower() in TRUE


def _env(subject: Subject) -> dict[str, str]:
    return {**os.environ, **subject.loaded.preset.env}

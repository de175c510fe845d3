"""The model: whether it fits the settings, is complete on this machine, or can be downloaded."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from launcher.check import hub
from launcher.check.finding import Finding, Level, Words, found
from launcher.check.subject import Subject
from launcher.core.files import read_json
from launcher.estimate import models
from launcher.estimate.models import ModelFacts
from launcher.verl.config import CRITIC_PATH, CRITIC_ULYSSES, MODEL_LENGTH, MODEL_PATH, REWARD_MODEL, TENSOR, ULYSSES

TEMPLATE = "actor_rollout_ref.model.custom_chat_template"
TOKENIZER, CRITIC_TOKENIZER = "actor_rollout_ref.model.tokenizer_path", "critic.model.tokenizer_path"
CONFIG = "actor_rollout_ref.model.hf_config_path"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")

FolderCheck = Callable[[Subject, str, str, Path], Iterable[Finding]]
"""A check of the folder that a key's value names."""


def shape(subject: Subject) -> Iterable[Finding]:
    """Findings from the model's sizes: P17, P26 and the division of its heads. Fast."""
    facts = models.facts(str(subject.get(MODEL_PATH)), subject.env)
    if facts is None:
        return
    yield from _heads(subject, facts)
    yield from _context(subject, facts)


def checks(subject: Subject) -> Iterable[Finding]:
    """Checks that the models, tokenizers and configurations are complete, or can be downloaded."""
    named = {str(subject.get(MODEL_PATH)): MODEL_PATH}
    if subject.has_critic:
        named.setdefault(str(subject.get(CRITIC_PATH) or subject.get(MODEL_PATH)), CRITIC_PATH)
    scoring = subject.get(f"{REWARD_MODEL}.model_path")
    if scoring and subject.get(f"{REWARD_MODEL}.enable") is True:
        named.setdefault(str(scoring), f"{REWARD_MODEL}.model_path")
    for name, key in named.items():
        yield from _here_or_absent(subject, name, key, _model)
    asked = subject.get(TOKENIZER)
    name, key = (str(asked), TOKENIZER) if asked else (str(subject.get(MODEL_PATH)), MODEL_PATH)
    folder = models.folder_of(name, subject.env)
    if key == TOKENIZER or (folder and (folder / "config.json").is_file()):
        yield from _here_or_absent(subject, name, key, _tokenizer)
    for key, check in ((CRITIC_TOKENIZER, _any_tokenizer), (CONFIG, _config)):
        if subject.get(key) and (key == CONFIG or subject.has_critic):
            yield from _here_or_absent(subject, str(subject.get(key)), key, check)


def _here_or_absent(subject: Subject, name: str, key: str, check: FolderCheck) -> Iterator[Finding]:
    """Errors of a folder; for a missing or incomplete cached one, the hub's answer."""
    folder = models.folder_of(name, subject.env)
    found = list(check(subject, name, key, folder)) if folder else []
    # missing files in the hub's cache are fetched, like the whole model
    broken = any(finding.id == "MODEL-3" for finding in found)
    fetched = folder is None or (str(folder) != name and not hub.offline(subject.env) and broken)
    if not fetched:
        yield from found
    elif not subject.machine.assumed and (folder is None or check is _model):
        yield from hub.absent(name, key, subject.env, asks=not subject.static)


def _heads(subject: Subject, facts: ModelFacts) -> Iterator[Finding]:
    """Checks that heads divide among the GPUs of an engine, and among the GPUs that share a sequence."""
    heads, kv = facts.sizes.heads, facts.sizes.kv_heads
    tensor = subject.get(TENSOR, 1)
    if isinstance(tensor, int) and not _shared(heads, kv, tensor):
        fitting = max(size for size in range(1, tensor) if _shared(heads, kv, size) and subject.gpus % size == 0)
        yield found("MODEL-1", name=facts.name, heads=_counted(heads, kv), tensor=tensor, fitting=fitting)
    for key in (ULYSSES, *([CRITIC_ULYSSES] if subject.has_critic else [])):
        sharing = subject.get(key, 1)
        if isinstance(sharing, int) and not _shared(heads, kv, sharing):
            yield found("P26", name=facts.name, heads=_counted(heads, kv), sharing=sharing, key=key)


def _shared(heads: int, kv: int, gpus: int) -> bool:
    """Whether `gpus` GPUs can share the heads: key-value heads divide evenly, or equal numbers of GPUs share each."""
    return gpus <= 1 or (heads % gpus == 0 and (kv % gpus == 0 or gpus % max(1, kv) == 0))


def _counted(heads: int, kv: int) -> str:
    return f"{heads} attention heads" + (f" and {kv} key-value heads" if kv != heads else "")


def _context(subject: Subject, facts: ModelFacts) -> Iterator[Finding]:
    """P17, MODEL-2: lengths against the model's context.

    veRL: `verl/workers/rollout/vllm_rollout/vllm_async_server.py`: up to 0.6 the engine's context is prompt plus
    response, and vLLM refuses more than the model's. From 0.7 on it is the model's, and responses end there. On the CPU
    platform, responses continue beyond it.
    """
    context = facts.sizes.context
    longest, limit = subject.get(MODEL_LENGTH), context
    lengths = subject.get("data.max_prompt_length", 512), subject.get("data.max_response_length", 512)
    if isinstance(longest, int) and context and longest > context:
        yield found("P17", longest=longest, name=facts.name, context=context)
    if context and all(isinstance(each, int) for each in lengths) and sum(lengths) > limit:
        late = subject.at_least("0.7.0") and not (subject.on_cpu and lengths[1] >= context)
        level: Level = "warning" if late else "error"
        then = ": responses to long prompts end there" if late else ""
        words: Words = {"prompt": lengths[0], "response": lengths[1], "total": sum(lengths), "name": facts.name}
        variant = "response" if lengths[0] < context else "both"
        yield found(f"MODEL-2.{variant}", **words, context=context, then=then, left=context - lengths[0], level=level)


def _broken(variant: str, name: str, key: str, folder: Path, **words: Any) -> Finding:
    again = "download or copy it again" if str(folder) == name else f"run `hf download {name}` to download it"
    return found(f"MODEL-3.{variant}", name=name, key=key, folder=folder, again=again, **words)


def _model(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    """Checks configuration and weights of a local model."""
    if not (folder / "config.json").is_file() and (folder / "adapter_config.json").is_file():
        yield _broken("adapter", name, key, folder)
        return
    wrong = list(_config(subject, name, key, folder))
    if wrong:
        yield from wrong
        return
    files, missing = models.weight_files(folder)
    cut = [file.name for file in files if models.read_header(file) is None]
    if missing:
        count = len(files) + len(missing)
        yield _broken("files", name, key, folder, missing=len(missing), count=count, first=missing[0])
    elif cut and (folder / cut[0]).open("rb").read(8) == b"version ":
        yield _broken("pointer", name, key, folder, file=cut[0])
    elif cut:
        yield _broken("cut", name, key, folder, file=cut[0])
    elif not files and not list(folder.glob("pytorch_model*.bin")):
        yield _broken("checkpoint" if _of_checkpoint(folder) else "empty", name, key, folder, lacks="weights")


def _config(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    """Checks that config.json names the model type."""
    file = folder / "config.json"
    if not file.is_file():
        yield _broken("checkpoint" if _of_checkpoint(folder) else "empty", name, key, folder, lacks="config.json")
        return
    try:
        config = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        yield _broken("json", name, key, folder)
        return
    kinds = config.get("architectures") if isinstance(config, dict) else None
    if subject.at_least("0.9.0") and not (isinstance(kinds, list) and len(kinds) == 1):
        yield _broken("architecture", name, key, folder)


def _tokenizer(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    """Checks the actor's tokenizer and its chat template."""
    yield from _any_tokenizer(subject, name, key, folder)
    own = subject.get(TEMPLATE)
    if own and "{" not in str(own):
        yield found("P27.path", own=str(own)[:60])
    if has_tokenizer(folder) and not own and not has_chat_template(folder):
        yield found("P27.missing", name=name)


def _any_tokenizer(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    if not has_tokenizer(folder):
        yield _broken("empty", name, key, folder, lacks="tokenizer")


def _of_checkpoint(folder: Path) -> bool:
    """Whether the folder belongs to a checkpoint."""
    return any(any(each.glob("model_world_size_*")) for each in (folder, folder / "actor", folder.parent))


def has_tokenizer(folder: Path) -> bool:
    """Whether this folder has a tokenizer."""
    return any((folder / each).is_file() for each in TOKENIZERS)


def has_chat_template(folder: Path) -> bool:
    """Whether the tokenizer in this folder can turn messages into a prompt."""
    beside = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")
    return any((folder / name).exists() for name in beside) or bool(
        read_json(folder / "tokenizer_config.json").get("chat_template")
    )

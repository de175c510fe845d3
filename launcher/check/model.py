"""The model: whether it fits the settings, is complete on this machine, or can be downloaded."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import orjson

from launcher.check import hub
from launcher.check.finding import Finding, of_model
from launcher.check.subject import Subject
from launcher.core.files import read_json
from launcher.core.format import counted
from launcher.estimate import models
from launcher.estimate.models import ModelFacts
from launcher.verl.config import CRITIC_PATH, CRITIC_ULYSSES, MODEL_LENGTH, MODEL_PATH, REWARD_MODEL, TENSOR, ULYSSES

TEMPLATE = "actor_rollout_ref.model.custom_chat_template"
TOKENIZER, CRITIC_TOKENIZER = "actor_rollout_ref.model.tokenizer_path", "critic.model.tokenizer_path"
CONFIG = "actor_rollout_ref.model.hf_config_path"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")

FolderCheck = Callable[[Subject, str, str, Path], Iterable[Finding]]
"""Checks the folder of a name that is the value of a key."""


def shape(subject: Subject) -> Iterable[Finding]:
    """Findings from the model's sizes: P17, P26 and the division of its heads. Quick."""
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
    """Errors of a folder; for a missing one, or an incomplete one in the cache, the answer of the hub."""
    folder = models.folder_of(name, subject.env)
    found = list(check(subject, name, key, folder)) if folder else []
    # what the hub's cache lacks is fetched, as the whole model is
    fetched = folder is None or (str(folder) != name and not hub.offline(subject.env) and _is_broken(found))
    if not fetched:
        yield from found
    elif not subject.machine.assumed and (folder is None or check is _model):
        yield from hub.absent(name, key, subject.env, asks=not subject.static)


def _heads(subject: Subject, facts: ModelFacts) -> Iterator[Finding]:
    """Heads are shared among the GPUs of an engine, and among those that share a sequence."""
    heads, kv = facts.sizes.heads, facts.sizes.kv_heads
    tensor = subject.get(TENSOR, 1)
    if isinstance(tensor, int) and not _shared(heads, kv, tensor):
        fitting = max(size for size in range(1, tensor) if _shared(heads, kv, size) and subject.gpus % size == 0)
        message = f"{facts.name} has {_counted(heads, kv)}, which cannot be split over {counted(tensor, 'GPU')}"
        fix = f"set rollout.tensor_model_parallel_size to {fitting}"
        yield of_model.error("MODEL-1", message, fix, (TENSOR,), {"rollout.tensor_model_parallel_size": fitting})
    places = [(ULYSSES, "actor.ulysses_sequence_parallel_size")]
    if subject.has_critic:
        places.append((CRITIC_ULYSSES, ""))
    for key, field in places:
        sharing = subject.get(key, 1)
        if isinstance(sharing, int) and not _shared(heads, kv, sharing):
            shared = f"sequence parallelism cannot split over {counted(sharing, 'GPU')}"
            message = f"{facts.name} has {_counted(heads, kv)}, which {shared}"
            yield of_model.error("P26", message, f"set {field or key} to 1", (key,), {field: 1} if field else None)


def _shared(heads: int, kv: int, gpus: int) -> bool:
    """Whether so many GPUs can share the heads: key heads divide evenly, or the same number of GPUs shares each."""
    return gpus <= 1 or (heads % gpus == 0 and (kv % gpus == 0 or gpus % max(1, kv) == 0))


def _counted(heads: int, kv: int) -> str:
    return f"{heads} attention heads" + (f" and {kv} key-value heads" if kv != heads else "")


def _context(subject: Subject, facts: ModelFacts) -> Iterator[Finding]:
    """P17, MODEL-2: lengths against the model's context.

    veRL: `verl/workers/rollout/vllm_rollout/vllm_async_server.py`: up to 0.6 prompt and response together are the
    engine's context, which it refuses beyond the model's; from 0.7 on its context is the model's, and a response ends
    there. That of the CPU platform writes on, beyond what the model has learned.
    """
    context = facts.sizes.context
    longest, limit = subject.get(MODEL_LENGTH), context
    lengths = subject.get("data.max_prompt_length", 512), subject.get("data.max_response_length", 512)
    if isinstance(longest, int) and context and longest > context:
        message = f"rollout.max_model_len is {longest}; the context of {facts.name} is {context} tokens"
        fix = f"set rollout.max_model_len to {context}"
        yield of_model.error("P17", message, fix, (MODEL_LENGTH,), {"rollout.max_model_len": context})
    if context and all(isinstance(each, int) for each in lengths) and sum(lengths) > limit:
        message = (
            f"prompt {lengths[0]} + response {lengths[1]} = {sum(lengths)} tokens; the context of {facts.name} is "
            f"{context}"
        )
        report = of_model.error
        if subject.at_least("0.7.0") and not (subject.on_cpu and lengths[1] >= context):
            message, report = f"{message}: responses to long prompts end there", of_model.warning
        fix = (
            f"set data.max_response_length to {context - lengths[0]}"
            if lengths[0] < context
            else f"shorten both to {context} tokens in total"
        )
        yield report("MODEL-2", message, fix, ("data.max_prompt_length", "data.max_response_length"))


def _broken(name: str, key: str, folder: Path, message: str, fix: str = "") -> Finding:
    again = "download or copy it again" if str(folder) == name else f"run `hf download {name}` to download it"
    return of_model.error("MODEL-3", f"{name}: {message}", fix or again, (key,))


def _model(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    """A model on disk: configuration and weights."""
    if not (folder / "config.json").is_file() and (folder / "adapter_config.json").is_file():
        fix = "use its base model, and set model.lora_adapter_path to this folder"
        yield _broken(name, key, folder, "this is a LoRA adapter, not a model", fix)
        return
    wrong = list(_config(subject, name, key, folder))
    if wrong:
        yield from wrong
        return
    files, missing = models.weight_files(folder)
    cut = [file.name for file in files if models.read_header(file) is None]
    if missing:
        text = f"{len(missing)} of {len(files) + len(missing)} weight files are missing: {missing[0]}"
        yield _broken(name, key, folder, text)
    elif cut and (folder / cut[0]).open("rb").read(8) == b"version ":
        fix = f"run `git -C {folder} lfs pull` to download it"
        yield _broken(name, key, folder, f"{cut[0]} is only a git-lfs pointer", fix)
    elif cut:
        yield _broken(name, key, folder, f"{cut[0]} is truncated or not a safetensors file")
    elif not files and not list(folder.glob("pytorch_model*.bin")):
        yield _broken(name, key, folder, "it has no weights", _of_checkpoint(folder))


def _config(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    """Checks that config.json names the kind of model."""
    file = folder / "config.json"
    if not file.is_file():
        yield _broken(name, key, folder, "it has no config.json", _of_checkpoint(folder))
        return
    try:
        config = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        yield _broken(name, key, folder, "its config.json is not valid JSON")
        return
    kinds = config.get("architectures") if isinstance(config, dict) else None
    if subject.at_least("0.9.0") and not (isinstance(kinds, list) and len(kinds) == 1):
        fix = 'set architectures in its config.json, for example to ["Qwen2ForCausalLM"]'
        yield _broken(
            name, key, folder, "its config.json does not name exactly one architecture, as veRL requires", fix
        )


def _tokenizer(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    """The actor's tokenizer, with a chat template."""
    yield from _any_tokenizer(subject, name, key, folder)
    own = subject.get(TEMPLATE)
    if own and "{" not in str(own):
        message = f"{TEMPLATE} has no placeholder for a message ({str(own)[:60]!r}): set the template, not a path"
        fix = "set it to the template's text, or save that as chat_template.jinja next to the tokenizer"
        yield of_model.error("P27", message, fix, (TEMPLATE,))
    if has_tokenizer(folder) and not own and not has_chat_template(folder):
        message = f"{name} has no chat template: every prompt would fail in the first step"
        fix = "use the -Instruct version of the model, or set actor_rollout_ref.model.custom_chat_template"
        yield of_model.error("P27", message, fix, (MODEL_PATH, TEMPLATE))


def _any_tokenizer(subject: Subject, name: str, key: str, folder: Path) -> Iterator[Finding]:
    if not has_tokenizer(folder):
        yield _broken(name, key, folder, "it has no tokenizer")


def _of_checkpoint(folder: Path) -> str:
    """What to do with the folder of a checkpoint, or "" for another one."""
    shards = any(any(each.glob("model_world_size_*")) for each in (folder, folder / "actor", folder.parent))
    return "run `ppo-tui merge` to convert a run's checkpoint to a model" if shards else ""


def has_tokenizer(folder: Path) -> bool:
    """Whether there is a tokenizer in this folder."""
    return any((folder / each).is_file() for each in TOKENIZERS)


def has_chat_template(folder: Path) -> bool:
    """Whether the tokenizer in this folder can turn messages into a prompt."""
    beside = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")
    return any((folder / name).exists() for name in beside) or bool(
        read_json(folder / "tokenizer_config.json").get("chat_template")
    )


def _is_broken(found: list[Finding]) -> bool:
    return any(finding.id == "MODEL-3" for finding in found)

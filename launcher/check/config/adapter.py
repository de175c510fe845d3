"""LoRA: V12, and settings that leave an adapter unused or stop the run.

veRL: `verl/utils/config.py: validate_config`, `verl/workers/rollout/vllm_rollout/utils.py: get_vllm_max_lora_rank`.
"""

import re
from pathlib import Path

from launcher.check.config.base import Findings, of_trainer
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.core.files import read_json
from launcher.core.text import did_you_mean
from launcher.estimate import models
from launcher.verl.config import ACTOR, CRITIC, ENGINE, MODEL, ROLLOUT

LARGEST_RANK = 512
RANK, ADAPTER = f"{MODEL}.lora_rank", f"{MODEL}.lora_adapter_path"


WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
"""The files of an adapter's weights. PEFT: `peft/utils/save_and_load.py: load_peft_weights`."""


def lora(subject: Subject) -> Findings:
    """V12: vLLM supports adapters up to rank 512. LORA-1: the engine loads the base weights from disk.

    LORA-2: on a single GPU, FSDP 1 does not shard and collects no adapter.
    """
    if subject.get(f"{MODEL}.lora.merge", False):
        return  # the engine gets merged weights without an adapter
    for key in (RANK, f"{MODEL}.lora.rank"):
        rank = subject.whole(key)
        if rank is None or subject.get(ENGINE) != "vllm":
            continue
        if rank > LARGEST_RANK:
            yield found("V12", key=key, rank=rank)
        elif str(subject.get(f"{ROLLOUT}.load_format", "dummy")).startswith("dummy"):
            yield found("LORA-1", key=key)
        if subject.gpus == 1 and subject.get(f"{ACTOR}.strategy", "fsdp") == "fsdp":
            yield found("LORA-2", key=key)


@of_trainer
def other_rank(subject: Subject) -> Findings:
    """LORA-3: FSDP reads `lora_rank`; `lora.rank` is for Megatron only."""
    key = f"{MODEL}.lora.rank"
    rank = subject.whole(key)
    if rank is None or subject.whole(RANK) or not subject.is_fsdp or not subject.at_least("0.8.0"):
        return
    yield found("LORA-3", rank=rank, usual=min(rank, LARGEST_RANK))


def continued(subject: Subject) -> Findings:
    """LORA-4: the adapter to continue from exists, with its weights; it is loaded only for `lora_rank` above 0."""
    path = subject.get(ADAPTER)
    if not isinstance(path, str) or not path or "://" in path:
        return
    config = Path(path) / "adapter_config.json"
    if not config.is_file():
        there = "has no adapter_config.json" if Path(path).is_dir() else "is not a folder"
        yield found("LORA-4.folder", path=path, there=there)
    elif not any((Path(path) / name).is_file() for name in WEIGHTS):
        yield found("LORA-4.weights", path=path, weights=WEIGHTS)
    elif not subject.whole(RANK):
        rank = read_json(config).get("r")
        usual = rank if type(rank) is int and 0 < rank <= LARGEST_RANK else 16
        yield found("LORA-4.rank", usual=usual)


def targets(subject: Subject) -> Findings:
    """LORA-5: target modules are layers of the model, and not all of them are excluded.

    PEFT: `peft/tuners/tuners_utils.py: check_target_module_exists`.
    """
    blocks = [("model", MODEL, subject.get(f"{MODEL}.path"))]
    if subject.has_critic:
        blocks.append(("critic", f"{CRITIC}.model", subject.get(f"{CRITIC}.model.path")))
    for group, block, path in blocks:
        key, wanted = f"{block}.target_modules", subject.get(f"{block}.target_modules")
        if not subject.whole(f"{block}.lora_rank"):
            continue
        there = models.modules(str(path or subject.get(f"{MODEL}.path")), subject.env)
        excluded = subject.get(f"{block}.exclude_modules")
        kept = [layer for layer in there if not _matches(excluded, [layer])]
        every = wanted is None or wanted == "all-linear"
        if there and (every or _matches(wanted, there)) and not (kept if every else _matches(wanted, kept)):
            yield found("LORA-5.excluded", block=block, excluded=excluded, key=key)
            continue
        if every:
            continue
        leaves = sorted({name.rpartition(".")[2] for name in there})
        if there and not _matches(wanted, there):
            hint = did_you_mean(str(wanted), ["all-linear"]) if isinstance(wanted, str) else ""
            text = (
                "; a string is a pattern for the full name of a layer, use a list for names"
                if isinstance(wanted, str)
                else ""
            )
            yield found("LORA-5.unmatched", key=key, wanted=wanted, hint=hint, text=text, leaves=leaves, group=group)
        elif there and isinstance(wanted, list):
            lost = [name for name in wanted if not _matches([name], there)]
            if lost:
                yield found(
                    "LORA-5.strange", key=key, lost=lost[0], near=did_you_mean(str(lost[0]), leaves), leaves=leaves
                )


def _matches(wanted: object, layers: list[str]) -> bool:
    """Whether PEFT finds a layer: by the end of its name, or by a pattern for the whole name."""
    if isinstance(wanted, str):
        try:
            return any(re.fullmatch(wanted, layer) for layer in layers)
        except re.error:
            return False
    names = wanted if isinstance(wanted, list) else []
    return any(layer == name or layer.endswith(f".{name}") for layer in layers for name in names)


RULES = (lora, other_rank, continued, targets)

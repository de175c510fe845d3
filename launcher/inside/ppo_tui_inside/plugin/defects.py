"""Fixes for defects in veRL 0.9.1's trainers: LoRA with a critic, and the trainer separate_async.

veRL makes every adapter that of a causal language model, also the critic's. peft requires text generation methods from
such a model; a critic has none and fails at the start (no `prepare_inputs_for_generation`). If it does not fail (older
transformers), its value head stays at its random initial values. As a token classifier, which it is, it has an adapter
and a head that learns. Seen on an H200 with a Qwen2 critic.

With LoRA the reference is the actor without its adapter, which veRL requests by a note on the batch. The note remains
when the critic gets the same batch: a critic without an adapter fails (no attribute `disable_adapter`), one with an
adapter silently answers without its learned weights. Seen on an H200 with a Llama critic.

In separate_async, old log-probabilities of all mini-batches between two weight transfers use the weights at the start
of the first one: veRL keeps a copy of them in host memory and briefly replaces the current weights
(`trainer_separate_async.py: _compute_old_log_prob`). If FSDP2's weights are already in host memory (`param_offload`, or
a run on a CPU), the copy is the weights themselves: restoring the old ones overwrites the current ones, so that all
updates but the last are lost without a message.

Without engines on the trainer's GPUs (`hybrid_engine=False`) that trainer logs a line with `flush=True`, which loggers
do not accept: "Logger._log() got an unexpected keyword argument 'flush'".
"""

import functools
from types import ModuleType
from typing import Any

from .late import after_import

NOTE = "no_lora_adapter"
HEAD = "score"  # name of the head in transformers' token classifiers that veRL uses as critics
SAVE = "fsdp2_sharded_save_to_cpu"


def install() -> None:
    """Patches veRL; does nothing without peft, and in versions of veRL without these modules."""
    after_import("peft", adapt_critics)
    after_import("verl.trainer.ppo.v1.trainer_base", keep_from_the_critic)
    after_import("verl.utils.fsdp_utils", copy_weights)
    after_import("verl.trainer.ppo.v1.trainer_separate_async", take_flush)


def adapt_critics(peft: ModuleType) -> None:
    """Gives a model without text generation the adapter of a token classifier."""
    adapt = peft.get_peft_model

    @functools.wraps(adapt)
    def as_what_it_is(model: Any, peft_config: Any, *args: Any, **kwargs: Any) -> Any:
        writes = hasattr(model, "prepare_inputs_for_generation")
        if peft_config.task_type == peft.TaskType.CAUSAL_LM and not writes:
            peft_config.task_type = peft.TaskType.TOKEN_CLS
            # the head learns as a whole: peft refuses to adapt it as well, and `all-linear` means it, too
            peft_config.exclude_modules = _without_head(peft_config.exclude_modules)
        return adapt(model, peft_config, *args, **kwargs)

    peft.get_peft_model = as_what_it_is  # type: ignore[attr-defined]


def _without_head(excluded: Any) -> Any:
    """The modules without an adapter (None, names, or a pattern of whole names), plus the value head."""
    if isinstance(excluded, str):
        return rf"(?:{excluded})|(?:.*\.)?{HEAD}"
    return [*(excluded or ()), HEAD]


def keep_from_the_critic(module: ModuleType) -> None:
    """Removes the note from the batch before the critic receives it."""
    trainer = getattr(module, "PPOTrainer", None)
    compute = getattr(trainer, "_compute_values", None)
    if compute is None:
        return

    @functools.wraps(compute)
    def without_the_note(self: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        batch.extra_info.pop(NOTE, None)
        return compute(self, batch, *args, **kwargs)

    trainer._compute_values = without_the_note


def copy_weights(module: ModuleType) -> None:
    """Makes the saved shards copies of the weights."""
    save = getattr(module, SAVE, None)
    if save is None:
        return

    @functools.wraps(save)
    def copied(model: Any) -> Any:
        from verl.utils.device import get_torch_device

        get_torch_device().synchronize()  # weights may still be on their way to host memory
        shards, spec = save(model)
        return {name: (tensor.clone(), own) for name, (tensor, own) in shards.items()}, spec

    setattr(module, SAVE, copied)


def take_flush(module: ModuleType) -> None:
    """Makes the trainer's logger accept `flush`, an argument of print."""
    logger = getattr(module, "logger", None)
    if logger is None:
        return
    info = logger.info

    @functools.wraps(info)
    def without_flush(*args: Any, flush: bool = False, **kwargs: Any) -> None:
        info(*args, **kwargs)

    logger.info = without_flush

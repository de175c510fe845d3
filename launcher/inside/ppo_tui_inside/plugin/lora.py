"""PPO with LoRA: a critic with an adapter of its own, and one that judges with all of its weights.

veRL 0.9.1 makes every adapter one of a causal language model, the critic's as well. peft asks such a model
for what writes text; a critic writes none and fails at the start (no `prepare_inputs_for_generation`).
Where it does not fail (older transformers), its value head stays at the random numbers it began with. As what it is,
a classifier of tokens, it has an adapter and a head that learns. Seen on an H200 with a Qwen2 critic.

With LoRA the reference is the actor without its adapter, which veRL's v1 trainer asks for by a note on the
batch. The note stays there when the critic gets the same batch: a critic without an adapter fails
(no attribute `disable_adapter`), one with an adapter silently answers without what it has learnt. Seen on an
H200 with a Llama critic.
"""

import functools
from types import ModuleType
from typing import Any

from .late import after_import

TRAINER = "verl.trainer.ppo.v1.trainer_base"
NOTE = "no_lora_adapter"
HEAD = "score"  # of every model for token classification in transformers that veRL takes as a critic


def install() -> None:
    """Does nothing where there is no peft, or in versions of veRL without the v1 trainer."""
    after_import("peft", adapt_critics)
    after_import(TRAINER, keep_from_the_critic)


def adapt_critics(peft: ModuleType) -> None:
    """Gives a model that writes no text the adapter of a classifier of tokens."""
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
    """What is not adapted (None, names, or a pattern of whole names), and the value head."""
    if isinstance(excluded, str):
        return rf"(?:{excluded})|(?:.*\.)?{HEAD}"
    return [*(excluded or ()), HEAD]


def keep_from_the_critic(module: ModuleType) -> None:
    """Takes the note off the batch before the critic gets it."""
    trainer = getattr(module, "PPOTrainer", None)
    compute = getattr(trainer, "_compute_values", None)
    if compute is None:
        return

    @functools.wraps(compute)
    def without_the_note(self: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        batch.extra_info.pop(NOTE, None)
        return compute(self, batch, *args, **kwargs)

    trainer._compute_values = without_the_note

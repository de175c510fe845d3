"""PPO with LoRA: the critic judges with all of its weights.

With LoRA the reference is the actor without its adapter, which veRL's v1 trainer asks for by a note on the
batch. The note stays there when the critic gets the same batch: a critic without an adapter dies of it
(no attribute `disable_adapter`), one with an adapter silently answers without what it has learnt. Seen with
veRL 0.9.1 on an H200.
"""

import functools
from types import ModuleType
from typing import Any

from launcher.verl_plugin.late import after_import

MODULE = "verl.trainer.ppo.v1.trainer_base"
NOTE = "no_lora_adapter"


def install() -> None:
    """Does nothing in versions of veRL without the v1 trainer."""
    after_import(MODULE, keep_from_the_critic)


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

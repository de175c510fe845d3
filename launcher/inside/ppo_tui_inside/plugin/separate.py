"""Two defects of veRL 0.9.1 in the trainer separate_async.

Old log-probabilities of all mini-batches between two weight transfers come from the weights that the first of
them began with: veRL keeps a copy of those in host memory and, for a moment, puts it in the place of the current
weights (`trainer_separate_async.py: _compute_old_log_prob`). Where FSDP2's weights already lie in host memory
(`param_offload`, or a run on a CPU) the copy is the weights themselves: putting the old ones in their place
overwrites the current ones, so that all updates but the last are lost without a message. Here it is a copy.

Without engines on the trainer's GPUs (`hybrid_engine=False`) the trainer logs a line with `flush=True`, which
loggers do not take: it ends with "Logger._log() got an unexpected keyword argument 'flush'".
"""

import functools
from types import ModuleType
from typing import Any

from .late import after_import

SHARDING, TRAINER = "verl.utils.fsdp_utils", "verl.trainer.ppo.v1.trainer_separate_async"
SAVE = "fsdp2_sharded_save_to_cpu"


def install() -> None:
    """Does nothing in versions of veRL without these."""
    after_import(SHARDING, copy_weights)
    after_import(TRAINER, take_flush)


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
    """Makes the trainer's logger take `flush`, which print knows."""
    logger = getattr(module, "logger", None)
    if logger is None:
        return
    info = logger.info

    @functools.wraps(info)
    def without_flush(*args: Any, flush: bool = False, **kwargs: Any) -> None:
        info(*args, **kwargs)

    logger.info = without_flush

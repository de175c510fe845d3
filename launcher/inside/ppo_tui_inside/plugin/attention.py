"""Attention without flash-attn.

veRL's critic loader requests flash_attention_2 regardless of the configuration (0.4.1 to 0.9.1), and so does the actor
by default. Without the flash-attn package, whose wheels fit few machines, a PPO run fails after minutes of start-up.
Here a model that requests it is loaded with PyTorch's scaled dot-product attention (sdpa) instead: the same result,
slower on long sequences.
"""

import functools
import os
import sys
from typing import Any

from verl import __version__ as INSTALLED

from .. import SUPPORTED

FLASH, SDPA = "flash_attention_2", "sdpa"


def install() -> None:
    """Wraps the one method with which veRL loads every actor, reference and critic."""
    try:
        from transformers.modeling_utils import PreTrainedModel

        # the Auto classes have copies of theirs, and end here
        load = PreTrainedModel.from_pretrained.__func__
    except (ImportError, AttributeError):
        _say(f"this version of transformers loads models in an unexpected way; keeping {FLASH}")
        return

    @functools.wraps(load)
    def from_pretrained(cls: type, *args: Any, **kwargs: Any) -> Any:
        if _requested(kwargs) == FLASH:
            kwargs.update(_replacement())
        return load(cls, *args, **kwargs)

    PreTrainedModel.from_pretrained = classmethod(from_pretrained)


def _requested(kwargs: dict[str, Any]) -> str | None:
    """The requested attention: an argument overrides the configuration, as in transformers."""
    configured = getattr(kwargs.get("config"), "_attn_implementation", None)
    return kwargs.get("attn_implementation", configured)


@functools.cache  # flash-attn does not change during a run, and one warning per process is enough
def _replacement() -> dict[str, str]:
    """The argument that turns flash_attention_2 into sdpa, or nothing if it can stay."""
    if _flash_attention_works():
        return {}
    if INSTALLED != SUPPORTED:
        _say(f"flash-attn is not usable here, but veRL {INSTALLED} is not {SUPPORTED}; keeping {FLASH}")
        return {}
    _say(f"flash-attn is not usable here; models load with PyTorch's attention ({SDPA})")
    return {"attn_implementation": SDPA}


def _flash_attention_works() -> bool:
    """Whether transformers accepts flash_attention_2, and its kernels load.

    transformers only looks for the package; a wheel for another torch is present but fails to import.
    """
    if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
        return False
    from transformers.utils import is_flash_attn_2_available

    try:
        import flash_attn  # noqa: F401
    except Exception:  # a binary built for another torch or CUDA raises anything
        return False
    return bool(is_flash_attn_2_available())


def _say(sentence: str) -> None:
    print(f"ppo-tui: {sentence}", file=sys.stderr, flush=True)

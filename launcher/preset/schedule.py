"""The learning rate per step, computed like veRL's FSDP engine.

veRL: `verl/workers/engine/fsdp/transformer_impl.py: _build_lr_scheduler`, `verl/utils/torch_functional.py:
get_cosine_schedule_with_warmup`. The schedule advances once per training step, with separate_async once per portion.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from launcher.preset.effective import EffectiveConfig
from launcher.verl.config import CRITIC

_MOST = 1_000  # maximum number of steps with computed rates


@dataclass(frozen=True)
class Schedule:
    """The learning rate over the `steps` of the schedule, with a warm-up of `warmup` steps to `peak`.

    A cosine spans `horizon` steps, which may exceed `steps`; `least`: its minimum as a share of the peak.
    """

    peak: float
    steps: int
    warmup: int
    cosine: bool
    horizon: int
    least: float
    cycles: float
    first: int

    def rate(self, step: int) -> float:
        """The learning rate of a step; the first one is 0."""
        at = step + self.first
        if at < self.warmup:
            return self.peak * at / self.warmup
        if not self.cosine:
            return self.peak
        wave = math.cos(math.pi * self.cycles * 2.0 * (at - self.warmup) / max(1, self.horizon - self.warmup))
        return self.peak * max(self.least, wave * (1 - self.least) / 2 + (1 + self.least) / 2)

    @property
    def rates(self) -> Iterator[float]:
        """The learning rate per step; for a longer run, of `_MOST` steps from first to last."""
        count = min(self.steps, _MOST)
        return (self.rate(place * (self.steps - 1) // max(1, count - 1)) for place in range(count))

    @property
    def changes(self) -> bool:
        """Whether the learning rate changes during the run."""
        return self.cosine or self.warmup > 0


def schedule(config: EffectiveConfig, block: str, steps: int | None, wanted: int | None) -> Schedule | None:
    """The schedule of actor or critic in a run that ends after `steps`, of `wanted` steps.

    None if the steps are unknown, and for engines with their own schedules.
    """
    optim = f"{block}.optim"
    peak, least, cycles = (config.number(f"{optim}.{name}") for name in ("lr", "min_lr_ratio", "num_cycles"))
    if steps is None or peak is None or not config.is_fsdp or config.config is None:
        return None
    waiting = 0 if block == CRITIC or not config.has_critic else config.whole("trainer.critic_warmup") or 0
    horizon = (wanted or steps) * config.updates_a_step
    warmup = config.whole(f"{optim}.lr_warmup_steps") or int(
        (config.number(f"{optim}.lr_warmup_steps_ratio") or 0.0) * horizon
    )
    cosine = config.get(f"{optim}.lr_scheduler_type") == "cosine"
    return Schedule(
        peak=peak,
        steps=max(0, steps - waiting) * config.updates_a_step,
        warmup=warmup,
        cosine=cosine,
        horizon=horizon,
        least=least or 0.0,
        cycles=0.5 if cycles is None else cycles,
        first=1 if cosine and not config.flag(f"{optim}.zero_indexed_step", True) else 0,
    )

"""veRL configuration for the rules. Any key may be unknown: a log may come without its configuration."""

import functools
import math
from collections.abc import ItemsView, Mapping
from typing import Any

from launcher.metrics.frameworks import Framework
from launcher.record.numbering import STEPS
from launcher.verl.config import ACTOR, BATCH, DYNAMIC, GPUS, MICRO, MINI, RESPONSE, N, Ranges, VerlConfig
from launcher.verl.versions import step_contains


class RunConfig(VerlConfig):
    """Flattened veRL keys of a run (`a.b.c`); a leading `+` of an override is ignored.

    A property is None if its key is unknown, which differs from veRL's default: rules must also judge a log without a
    known configuration.
    """

    def __init__(
        self, keys: Mapping[str, Any] | None = None, framework: Framework | None = None, usual: Ranges | None = None
    ) -> None:
        self.usual = usual or {}
        self.framework = framework
        """The run's framework, if not veRL."""
        self.numbering = STEPS
        """How its lines count steps, as far as known."""
        self._keys = {key.lstrip("+"): value for key, value in (keys or {}).items()}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a veRL key, `default` when unknown."""
        return self._keys.get(key, default)

    @property
    def known(self) -> bool:
        """Whether any veRL setting is known, so that missing settings have veRL's defaults."""
        return bool(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def items(self) -> ItemsView[str, Any]:
        """The known keys with their values."""
        return self._keys.items()

    @property
    def supervised(self) -> str:
        """The name of a training that is not reinforcement learning; empty for any other."""
        return self.framework.kind.title if self.framework is not None and self.framework.kind is not None else ""

    @functools.cached_property
    def step_contains(self) -> frozenset[str] | None:
        """The timers for validation and saving that the step time includes."""
        return step_contains(self._keys)

    @property
    def response_limit(self) -> float | None:
        """Longest response in tokens."""
        return self.number(RESPONSE)

    @property
    def target_kl(self) -> float | None:
        """The target KL of the adaptive controller; None if the controller is not adaptive or not in use."""
        if self.text("algorithm.kl_ctrl.type") != "adaptive" or self.kl_in_reward is False:
            return None
        return self.number("algorithm.kl_ctrl.target_kl") or 0.1

    @property
    def several_updates(self) -> bool | None:
        """Whether a step has several policy updates; None if unknown."""
        batch, mini, epochs = (self.number(key) for key in (BATCH, MINI, f"{ACTOR}.ppo_epochs"))
        return None if batch is None or mini is None else mini < batch or (epochs or 1) > 1

    @functools.cached_property
    def summed(self) -> float | None:
        """The divisor of entropy and KL loss after their sum over the tokens of a response.

        None for a token mean; nan if unknown or if they are sums over all responses. veRL: core_algos.py: agg_loss.
        """
        mode = self.text(f"{ACTOR}.loss_agg_mode") or ""
        if "token-sum" not in mode:
            return None
        divisor = self.number(f"{ACTOR}.loss_scale_factor") or self.response_limit
        return {"seq-mean-token-sum": 1.0, "seq-mean-token-sum-norm": divisor}.get(mode) or math.nan

    @functools.cached_property
    def shares(self) -> frozenset[str]:
        """Metrics of which the log has a share per micro-batch, of an unknown number of these; they are not judged."""
        if self.framework is None or self.flag(DYNAMIC):
            return frozenset()
        mini, n, micro, gpus = (self.number(key) for key in (MINI, N, MICRO, GPUS))
        whole = mini and n and micro and gpus and mini * n <= micro * gpus
        return frozenset() if whole else frozenset(row.ours for row in self.framework.metrics if row.share)

    @property
    def total_steps(self) -> float | None:
        """Total number of training steps."""
        total = self.number("trainer.total_training_steps")
        return total if total is not None and total > 0 else None

    @property
    def warmup_steps(self) -> float:
        """Steps in which the learning rate may be zero."""
        steps = self.number(f"{ACTOR}.optim.lr_warmup_steps")
        if steps is not None and steps >= 0:
            return steps
        ratio = self.number(f"{ACTOR}.optim.lr_warmup_steps_ratio")
        return (ratio or 0.0) * (self.total_steps or 0.0)

    @property
    def validates(self) -> bool:
        """Whether the run has validations; True if unknown."""
        every = self.number("trainer.test_freq")
        return every is None or every > 0 or self.flag("trainer.val_before_train") is not False

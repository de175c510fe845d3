"""What the rules need from veRL's configuration. Everything may be unknown: a log can come without it."""

from collections.abc import Mapping
from typing import Any

ESTIMATOR = "algorithm.adv_estimator"
KL_IN_REWARD = "algorithm.use_kl_in_reward"
KL_IN_LOSS = "actor_rollout_ref.actor.use_kl_loss"
_GROUP_BASED = ("grpo", "rloo", "opo", "gpg", "reinforce_plus_plus_baseline", "gdpo", "optimal_token")
_CLIPS_BY_DESIGN = ("gspo", "cispo", "geo_mean")


class RunConfig:
    """veRL keys of a run, flattened (`a.b.c`); a leading `+` of an override is ignored.

    A property is None when its key is unknown, which is not the same as veRL's default: rules must be able
    to judge a log whose configuration nobody knows.
    """

    def __init__(self, keys: Mapping[str, Any] | None = None) -> None:
        self._keys = {key.lstrip("+"): value for key, value in (keys or {}).items()}

    def get(self, key: str) -> Any:
        """The value of a veRL key, None when unknown."""
        return self._keys.get(key)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def number(self, key: str) -> float | None:
        """A key's value as a number; None when it is unknown or is none."""
        value = self._keys.get(key)
        if isinstance(value, bool) or value is None:
            return None
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            return None

    def flag(self, key: str) -> bool | None:
        """A key's value as a switch; None when it is unknown."""
        value = self._keys.get(key)
        if isinstance(value, str):
            return {"true": True, "false": False}.get(value.strip().lower())
        return bool(value) if isinstance(value, (bool, int)) else None

    @property
    def kl_in_reward(self) -> bool | None:
        """Whether the KL penalty is part of the reward."""
        return self.flag(KL_IN_REWARD)

    @property
    def kl_in_loss(self) -> bool | None:
        """Whether the KL is a term of the actor's loss."""
        return self.flag(KL_IN_LOSS)

    @property
    def estimator(self) -> str | None:
        """The advantage estimator: gae, grpo, ..."""
        value = self.get(ESTIMATOR)
        return None if value is None else str(value)

    @property
    def critic(self) -> bool | None:
        """Whether a critic is trained; only GAE needs one, unless `critic.enable` says otherwise."""
        enabled = self.flag("critic.enable")
        return enabled if enabled is not None or self.estimator is None else self.estimator == "gae"

    @property
    def group_based(self) -> bool | None:
        """Whether advantages compare several responses to one prompt."""
        return None if self.estimator is None else self.estimator.startswith(_GROUP_BASED)

    @property
    def token_mean(self) -> bool:
        """Whether losses are means over tokens, so that absolute limits hold; assumed when unknown."""
        mode = self.get("actor_rollout_ref.actor.loss_agg_mode")
        return mode is None or str(mode) == "token-mean"

    @property
    def clips_by_design(self) -> str | None:
        """The policy loss, if it is one whose clipped share is high in healthy runs."""
        mode = str(self.get("actor_rollout_ref.actor.policy_loss.loss_mode"))
        return mode if mode in _CLIPS_BY_DESIGN else None

    @property
    def response_limit(self) -> float | None:
        """Longest response in tokens."""
        return self.number("data.max_response_length")

    @property
    def target_kl(self) -> float | None:
        """What the adaptive KL controller aims at; None when the controller is not adaptive or not in use."""
        if str(self.get("algorithm.kl_ctrl.type")) != "adaptive" or self.kl_in_reward is False:
            return None
        return self.number("algorithm.kl_ctrl.target_kl") or 0.1

    @property
    def total_steps(self) -> float | None:
        """Training steps of the whole run."""
        total = self.number("trainer.total_training_steps")
        return total if total is not None and total > 0 else None

    @property
    def warmup_steps(self) -> float:
        """Steps in which the learning rate may still be zero."""
        steps = self.number("actor_rollout_ref.actor.optim.lr_warmup_steps")
        if steps is not None and steps >= 0:
            return steps
        ratio = self.number("actor_rollout_ref.actor.optim.lr_warmup_steps_ratio")
        return (ratio or 0.0) * (self.total_steps or 0.0)

    @property
    def validates(self) -> bool:
        """Whether validations are to be expected; True when unknown."""
        every = self.number("trainer.test_freq")
        return every is None or every > 0 or self.flag("trainer.val_before_train") is not False

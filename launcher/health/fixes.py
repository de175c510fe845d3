"""First aid for a rule: a setting to change or advice without one, and the value with which it is tried.

The sentence is made here: with the present value, and only where the advice fits the run.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, get_args

from launcher.health.config import RunConfig
from launcher.record.check import Suggestion
from launcher.verl.config import BATCH, MINI, VerlConfig

Direction = Literal["raise", "lower", "set", "check"]
Fits = Literal["any", "critic", "kl in reward", "kl in loss", "groups", "gpu"]

_ARROWS: dict[Direction, str] = {"raise": " ↑", "lower": " ↓", "set": " →", "check": ""}
_FROM_THE_START = ("trainer.critic_warmup", "lr_warmup_steps")  # counted from step 0: past at a checkpoint
_RATE = 0.1  # below, a value is a rate or a coefficient, whose scale is logarithmic
_COEFFICIENT = 0.001  # veRL's default for the KL, in the loss and in the reward


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing to try: a veRL key with a direction, or advice without a key, which is in `why`.

    `value` is the one to set, and for the other directions the one that a trial takes; `to` says it in words. `when`
    is the condition under which it helps. `old` is what the key was called in earlier veRL versions; `fits` says for
    which runs it makes sense.
    """

    key: str = ""
    direction: Direction = "check"
    value: float | str | None = None
    to: str = ""
    when: str = ""
    why: str = ""
    fits: Fits = "any"
    old: str = ""

    @property
    def words(self) -> str:
        """What follows the direction: the value to set, its words, the condition, the reason."""
        value = str(self.value) if self.direction == "set" else ""
        return " ".join(filter(None, (value, self.to, self.when, self.why)))

    def suggest(self, config: RunConfig) -> Suggestion:
        """`actor_rollout_ref.actor.optim.lr ↓ 2–5× (now 1e-06)`."""
        if not self.key:
            return Suggestion(None, self.why)
        key = self.old if self.old and self.old in config and self.key not in config else self.key
        words = f" {self.words}" if self.words else ""
        present = f" (now {config.get(key)})" if config.get(key) is not None else ""
        return Suggestion(key, f"{key}{_ARROWS[self.direction]}{words}{present}")

    def tried_value(self, now: Any, before: Any = None) -> Any:
        """The value from before the last change, or the fix's own, if it is in the fix's direction.

        Otherwise a fifth or five times a rate, half or twice a count; a coefficient of 0 becomes 0.001. None if nothing
        is known.
        """
        if self.direction == "set":
            return self.value
        if self.direction == "check" or isinstance(now, bool) or not isinstance(now, int | float):
            return None
        if isinstance(before, int | float) and self._leads(now, before):
            return before
        if isinstance(self.value, int | float):
            return self.value if self._leads(now, self.value) else None
        if now == 0:
            return _COEFFICIENT if self.direction == "raise" and self.key.endswith("_coef") else None
        factor = 2.0 if isinstance(now, int) or now >= _RATE else 5.0
        moved = now * factor if self.direction == "raise" else now / factor
        if isinstance(now, int):
            return int(moved) or None  # there is no half epoch
        return float(f"{moved:.3g}")

    def _leads(self, now: float, value: float) -> bool:
        return value < now if self.direction == "lower" else value > now


def fix_of(written: str | Mapping[str, Any]) -> Fix:
    """A fix as rules.toml has it: words, or `{lower = "KEY", when = "..."}`."""
    if isinstance(written, str):
        return Fix(why=written)
    direction = next((each for each in get_args(Direction) if each in written), None)
    if direction is None:
        return Fix(**written)
    others = {name: value for name, value in written.items() if name != direction}
    return Fix(key=written[direction], direction=direction, **others)


def fitting(fixes: Sequence[Fix], config: RunConfig, logged: Set[str]) -> tuple[Suggestion, ...]:
    """The fixes that fit the run, rendered. Where the configuration is silent, the logged keys decide."""

    def known(answer: bool | None, otherwise: bool) -> bool:
        return otherwise if answer is None else answer

    critic = known(config.has_critic, "critic/vf_loss" in logged)
    fits: dict[Fits, bool] = {
        "any": True,
        "critic": critic,
        "kl in reward": known(config.kl_in_reward, not logged.isdisjoint(("actor/reward_kl_penalty", "critic/kl"))),
        "kl in loss": known(config.kl_in_loss, "actor/kl_loss" in logged),
        "groups": known(config.group_based, not critic),
        "gpu": config.text("trainer.device") != "cpu",
    }
    return tuple(fix.suggest(config) for fix in fixes if fits[fix.fits])


def tried_values(
    fixes: Sequence[Fix],
    advised: Sequence[Suggestion],
    now: Mapping[str, Any],
    step: int,
    before: Mapping[str, Any] | None = None,
) -> list[tuple[str, Any]]:
    """veRL keys with the values to try of the fixes that a run was advised, in the order of the advice.

    `now` has the values that the keys have (None: unknown), `step` is that of the checkpoint. `before` has those of the
    run that this one was forked from: a value that was changed in the wrong direction is tried first. Advice without
    a key, without a direction, or that the run follows already, is left out.
    """
    by_key = {key: fix for fix in fixes for key in (fix.key, fix.old) if key}
    tried: list[tuple[str, Any]] = []
    for suggestion in advised:
        key = suggestion.key
        if key is None or key not in by_key or (step and key.endswith(_FROM_THE_START)):
            continue
        value = by_key[key].tried_value(now.get(key), (before or {}).get(key))
        if value is not None and value != now.get(key):
            tried.append((key, value))
    return tried


def together(key: str, value: Any, config: VerlConfig) -> dict[str, Any]:
    """A key with its value and what changes with it: the mini-batch with the batch, for as many updates per step."""
    batch, mini = config.get(key), config.get(MINI)
    if key != BATCH or not all(isinstance(size, int) and size > 0 for size in (batch, mini, value)):
        return {key: value}
    return {key: value, MINI: max(1, mini * value // batch)}

"""The next value of a number: learning rates by 1-2-5, sizes by doubling, batches by what divides them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from launcher.preset.effective import Effective
from launcher.preset.fields import Spec

_SMALLEST = 1e-4  # above 0 on the scale of 1-2-5
_ACTOR, _CRITIC, _ROLLOUT = "actor_rollout_ref.actor", "critic", "actor_rollout_ref.rollout"
_REF = "actor_rollout_ref.ref"


def step(spec: Spec, value: Any, up: bool, seen: Effective) -> Any:
    """The value after `value` on the field's scale, or None when there is none.

    A field that is not set goes on from veRL's default. Switches change, choices go round.
    """
    if value is None and spec.key:
        value = seen(spec.key)
        value = {theirs: ours for ours, theirs in spec.names.items()}.get(value, value) if spec.names else value
    if bool in spec.types:
        return not value
    if spec.choices:
        at = spec.choices.index(value) if value in spec.choices else -1 if up else 0
        return spec.choices[(at + (1 if up else -1)) % len(spec.choices)]
    if not spec.scale or isinstance(value, (str, list, dict)):
        return None
    if spec.scale == "divisor":
        return _neighbour(allowed(spec.name, seen), value, up)
    if spec.scale == "double":
        return _double(value, up)
    if spec.scale == "125":
        found = _one_two_five(float(value or 0), up)
        return found if float in spec.types else max(1, round(found))
    return _step(value or 0, spec.step, up, whole=float not in spec.types)


def allowed(name: str, seen: Effective) -> list[int]:
    """The values of a "divisor" field that the rest of the preset allows (rules P2, P8 to P13)."""
    whole = _WHOLE.get(name)
    return divisors(whole(seen)) if whole else []


def divisors(number: int) -> list[int]:
    """Everything that divides a number, smallest first."""
    small = [part for part in range(1, int(number**0.5) + 1) if number % part == 0]
    return sorted({*small, *(number // part for part in small)})


def _responses(seen: Effective, prompts: int) -> int:
    """Responses to so many prompts that one GPU trains on; 0 when they cannot be shared out."""
    total = prompts * seen.whole(f"{_ROLLOUT}.n")
    ranks = max(1, _gpus(seen) // seen.whole(f"{_ACTOR}.ulysses_sequence_parallel_size"))
    return total // ranks if total % ranks == 0 else 0


def _gpus(seen: Effective) -> int:
    return seen.whole("trainer.n_gpus_per_node") * seen.whole("trainer.nnodes")


def _batch(seen: Effective) -> int:
    return seen.whole("data.train_batch_size", 1024)


_WHOLE: dict[str, Callable[[Effective], int]] = {
    "actor.ppo_mini_batch_size": _batch,
    "critic.ppo_mini_batch_size": _batch,
    "actor.ppo_micro_batch_size_per_gpu": lambda seen: _responses(
        seen, seen.whole(f"{_ACTOR}.ppo_mini_batch_size", 256)
    ),
    "critic.ppo_micro_batch_size_per_gpu": lambda seen: _responses(
        seen, seen.whole(f"{_CRITIC}.ppo_mini_batch_size", 256)
    ),
    "rollout.log_prob_micro_batch_size_per_gpu": lambda seen: _responses(seen, _batch(seen)),
    "ref.log_prob_micro_batch_size_per_gpu": lambda seen: _responses(seen, _batch(seen)),
    "rollout.tensor_model_parallel_size": _gpus,
    "rollout.data_parallel_size": _gpus,
    "rollout.expert_parallel_size": _gpus,
}
"""What a field has to divide."""


def _neighbour(values: list[int], value: Any, up: bool) -> int | None:
    now = value if isinstance(value, (int, float)) else 0
    if up:
        return next((each for each in values if each > now), None)
    return next((each for each in reversed(values) if each < now), None)


def _double(value: Any, up: bool) -> Any:
    now = value if isinstance(value, (int, float)) and value > 0 else 0
    if not now:
        return 1 if up else None
    if isinstance(now, int):
        return now * 2 if up else now // 2
    return now * 2 if up else now / 2


def _one_two_five(value: float, up: bool) -> float:
    if value <= 0:
        return _SMALLEST if up else 0.0
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) - 1 + exponent
    around = [float(Decimal(mantissa).scaleb(power + shift)) for shift in (-1, 0, 1) for mantissa in (1, 2, 5)]
    return next(each for each in (around if up else reversed(around)) if (each > value if up else each < value))


def _step(value: float, distance: float, up: bool, *, whole: bool) -> Any:
    """The next multiple of the distance. Where it is many, -1 (never) is below the first one."""
    by = Decimal(repr(distance))
    times = Decimal(repr(value)) / by
    found = by * (times.to_integral_value(ROUND_FLOOR) + 1 if up else times.to_integral_value(ROUND_CEILING) - 1)
    if value < 0 and up:
        found = max(found, by)
    if not whole:
        return float(found)
    return -1 if found == 0 and distance > 1 and not up else int(found)

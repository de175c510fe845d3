"""The next value of a number: learning rates by 1-2-5, sizes by doubling, batches by what divides them."""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from launcher.preset.effective import EffectiveConfig
from launcher.preset.fields import Spec
from launcher.verl.config import ACTOR, BATCH, CRITIC, CRITIC_MINI, MINI, N

_SMALLEST = 1e-4  # above 0 on the scale of 1-2-5


def step(spec: Spec, value: Any, up: bool, config: EffectiveConfig) -> Any:
    """The value after `value` on the field's scale, or None when there is none.

    A field that is not set goes on from veRL's default. Switches change, choices go round.
    """
    if value is None and spec.key:
        value = spec.from_verl(config.get(spec.key))
    if bool in spec.types:
        return not value
    if spec.choices:
        at = spec.choices.index(value) if value in spec.choices else -1 if up else 0
        return spec.choices[(at + (1 if up else -1)) % len(spec.choices)]
    if not spec.scale or isinstance(value, (str, list, dict)):
        return None
    if spec.scale == "divisor":
        return _neighbour(allowed(spec.name, config), value, up)
    if spec.scale == "double":
        return _double(value, up)
    if spec.scale == "125":
        found = _one_two_five(float(value or 0), up)
        return found if float in spec.types else max(1, round(found))
    return _step(value or 0, spec.step, up, whole=float not in spec.types)


def allowed(name: str, config: EffectiveConfig) -> list[int]:
    """The values of a "divisor" field that the rest of the preset allows (rules P2, P8 to P13)."""
    whole = _WHOLE.get(name)
    return divisors(whole(config)) if whole else []


def divisors(number: int) -> list[int]:
    """Everything that divides a number, smallest first."""
    small = [part for part in range(1, int(number**0.5) + 1) if number % part == 0]
    return sorted({*small, *(number // part for part in small)})


def _responses(config: EffectiveConfig, prompts: int | None, model: str = ACTOR) -> int:
    """Responses to so many prompts that one GPU trains on; 0 when they cannot be shared out."""
    total, ranks = (prompts or 256) * (config.whole(N) or 1), config.data_parallel(model)
    return total // ranks if total % ranks == 0 else 0


def _batch(config: EffectiveConfig) -> int:
    return config.whole(BATCH) or 1024


def _gpus(config: EffectiveConfig) -> int:
    return config.gpus


_WHOLE: dict[str, Callable[[EffectiveConfig], int]] = {
    "actor.ppo_mini_batch_size": _batch,
    "critic.ppo_mini_batch_size": _batch,
    "actor.ppo_micro_batch_size_per_gpu": lambda config: _responses(config, config.whole(MINI)),
    "critic.ppo_micro_batch_size_per_gpu": lambda config: _responses(config, config.whole(CRITIC_MINI), CRITIC),
    "rollout.log_prob_micro_batch_size_per_gpu": lambda config: _responses(config, _batch(config)),
    "ref.log_prob_micro_batch_size_per_gpu": lambda config: _responses(config, _batch(config)),
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

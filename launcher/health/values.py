"""The value with which an advised fix is tried: its own, or one that follows from the present value."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from launcher.health.fixes import FIXES, Fix
from launcher.record.check import Suggestion
from launcher.verl.config import BATCH, MINI, VerlConfig

_FROM_THE_START = ("trainer.critic_warmup", "lr_warmup_steps")  # counted from step 0: past at a checkpoint
_RATE = 0.1  # below, a value is a rate or a coefficient, whose scale is logarithmic
_COEFFICIENT = 0.001  # veRL's own for the KL, in the loss and in the reward
_NONE: Mapping[str, Any] = MappingProxyType({})


def tried_values(
    rule: str, advised: Sequence[Suggestion], now: Mapping[str, Any], step: int, before: Mapping[str, Any] = _NONE
) -> list[tuple[str, Any]]:
    """veRL keys with the values to try, in the order of the advice.

    `now` has the values that the keys have (None: unknown), `step` is that of the checkpoint. `before` has those of the
    run that this one was forked from: a value that was changed in the wrong direction is tried first. Advice without
    a key, without a direction, or that the run follows already, is left out.
    """
    fixes = {key: fix for fix in FIXES.get(rule, ()) for key in (fix.key, fix.old) if key}
    found: list[tuple[str, Any]] = []
    for each in advised:
        if each.key is None or each.key not in fixes or (step and each.key.endswith(_FROM_THE_START)):
            continue
        value = tried_value(fixes[each.key], now.get(each.key), before.get(each.key))
        if value is not None and value != now.get(each.key):
            found.append((each.key, value))
    return found


def tried_value(fix: Fix, now: Any, before: Any = None) -> Any:
    """The value from before the last change, or the fix's own, where it lies in the fix's direction.

    Else a fifth or five times a rate, half or twice a count; a coefficient of 0 becomes 0.001. None where nothing is
    known.
    """
    if fix.direction == "set":
        return fix.value
    if fix.direction == "check" or isinstance(now, bool) or not isinstance(now, int | float):
        return None
    if isinstance(before, int | float) and _leads(fix, now, before):
        return before
    if isinstance(fix.value, int | float):
        return fix.value if _leads(fix, now, fix.value) else None
    if now == 0:
        return _COEFFICIENT if fix.direction == "raise" and fix.key.endswith("_coef") else None
    factor = 2.0 if isinstance(now, int) or now >= _RATE else 5.0
    moved = now * factor if fix.direction == "raise" else now / factor
    if isinstance(now, int):
        return int(moved) or None  # half of one epoch is none
    return float(f"{moved:.3g}")


def together(key: str, value: Any, config: VerlConfig) -> dict[str, Any]:
    """A key with its value and what changes with it: the mini-batch with the batch, for as many updates a step."""
    batch, mini = config.get(key), config.get(MINI)
    if key != BATCH or not all(isinstance(each, int) and each > 0 for each in (batch, mini, value)):
        return {key: value}
    return {key: value, MINI: max(1, mini * value // batch)}


def _leads(fix: Fix, now: float, value: float) -> bool:
    return value < now if fix.direction == "lower" else value > now

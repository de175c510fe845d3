"""The value with which an advised fix is tried: the advice names a direction, a trial needs a number."""

import re
from collections.abc import Sequence
from typing import Any

from launcher.health.fixes import FIXES, Fix
from launcher.record.check import Suggestion

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]*×)")  # `0.001` of `0.001–0.01`, no `2–5×`
_WORD = re.compile(r"[\w.-]+")
_FROM_THE_START = ("trainer.critic_warmup", "lr_warmup_steps")  # counted from step 0: past at a checkpoint
_RATE = 0.1  # below, a value is a rate or a coefficient, whose scale is logarithmic


def tried_values(rule: str, advised: Sequence[Suggestion], now: dict[str, Any], step: int) -> list[tuple[str, Any]]:
    """veRL keys with the values to try, in the order of the advice.

    `now` has the values that the keys have (None: unknown), `step` is that of the checkpoint. Advice without a key,
    without a direction, or that the run follows already, is left out.
    """
    fixes = {key: fix for fix in FIXES.get(rule, ()) for key in (fix.key, fix.old) if key}
    found: list[tuple[str, Any]] = []
    for each in advised:
        if each.key is None or each.key not in fixes or (step and each.key.endswith(_FROM_THE_START)):
            continue
        value = tried_value(fixes[each.key], now.get(each.key))
        if value is not None and value != now.get(each.key):
            found.append((each.key, value))
    return found


def tried_value(fix: Fix, now: Any) -> Any:
    """The value that the note names, in its direction; else a fifth or five times a rate, half or twice a count.

    None where neither is known.
    """
    if fix.direction == "set":
        word = _WORD.match(fix.note)
        return _typed(word[0]) if word else None
    if fix.direction == "check" or isinstance(now, bool) or not isinstance(now, int | float):
        return None
    named = _NUMBER.search(fix.note)
    if named:
        value = _typed(named[0])
        return value if (value < now if fix.direction == "lower" else value > now) else None
    factor = 2.0 if isinstance(now, int) or now >= _RATE else 5.0
    moved = now * factor if fix.direction == "raise" else now / factor
    return int(moved) if isinstance(now, int) else float(f"{moved:.3g}")


def _typed(word: str) -> Any:
    if word in ("True", "False"):
        return word == "True"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word

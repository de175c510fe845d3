"""The user's `health:` settings: preset, limits, debounce, disabled and muted rules."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from launcher.core.errors import UserError
from launcher.core.text import near_hint
from launcher.health.catalogue import rules
from launcher.health.clauses import Values
from launcher.record.levels import FLAGS

FACTORS = {"sensitive": 0.75, "default": 1.0, "relaxed": 1.5}
REMOVED = ("stop_behind",)  # still in stored runs; nothing reads it
_SWITCHES = ("enabled", "muted", "raise", "release")


@dataclass(frozen=True)
class Limits:
    """The effective limits of one rule: raise limits, release limits and debounce."""

    raising: Values
    releasing: Values
    k: float = 1.0
    count: int = 2
    window: int = 3
    release: int = 5
    enabled: bool = True
    muted: bool = False


@dataclass
class _Own:
    """The user's settings for one rule."""

    limits: dict[str, float] = field(default_factory=dict)
    switches: dict[str, Any] = field(default_factory=dict)


def read(settings: Mapping[str, Any] | None, others: Collection[str] = ()) -> dict[str, Limits]:
    """The effective limits of every rule.

    `settings`: the `health:` block, nested or with dotted names. A user's limit is not multiplied by the preset's
    factor; its release limit moves with it. Raises UserError for unknown names, invalid numbers and limits out of
    order; `others`: options that may have been meant.
    """
    own = {rule: _Own() for rule in rules()}
    preset = "default"
    for path, value in _flatten(settings or {}):
        head, _, rest = path.partition(".")
        if head == "preset":
            if value not in FACTORS:
                allowed = ", ".join(FACTORS)
                raise UserError(f"health.preset is {value!r}", near_hint(str(value), FACTORS, f"use one of {allowed}"))
            preset = str(value)
        elif head.upper() in rules():
            _set(own[head.upper()], head.upper(), rest, value)
        elif head not in REMOVED:
            raise UserError(f"health.{head} is not a rule or an option", partial(_near, head, ("preset", *others)))
    return {rule: _effective(rule, own[rule], FACTORS[preset]) for rule in rules()}


def _near(name: str, options: Iterable[str]) -> str:
    return near_hint(name.upper(), rules()) or near_hint(name, options)


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _set(own: _Own, rule: str, name: str, value: Any) -> None:
    """Applies one setting of a rule: a switch or a limit."""
    if name in _SWITCHES:
        own.switches[name] = _switch(f"health.{rule}.{name}", name, value)
        return
    if not name:
        raise UserError(f"health.{rule} is {value!r}", "use a mapping of settings, such as enabled or warn")
    limits = rules()[rule].limits
    level, _, rest = name.partition(".")
    full = name if rest else next((known for known in limits if known.startswith(f"{level}.")), name)
    if full not in limits:
        known = (*limits, *_SWITCHES)
        raise UserError(
            f"health.{rule} has no setting {name!r}", near_hint(name, known, f"use one of {', '.join(known)}")
        )
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise UserError(f"health.{rule}.{name} is {value!r}", "use a number")
    own.limits[full] = float(value)


def _switch(path: str, name: str, value: Any) -> Any:
    if name in ("enabled", "muted"):
        if not isinstance(value, bool):
            raise UserError(f"{path} is {value!r}", "use true or false")
        return value
    if name == "release":
        if type(value) is not int or not 1 <= value <= 1000:
            raise UserError(f"{path} is {value!r}", "use a number of steps from 1 to 1000")
        return value
    pair = list(value) if isinstance(value, (list, tuple)) else []
    if len(pair) != 2 or any(type(n) is not int for n in pair) or not 1 <= pair[0] <= pair[1] <= 1000:
        raise UserError(f"{path} is {value!r}", "use [n, m]: n bad steps of the last m, 1 <= n <= m <= 1000")
    return tuple(pair)


def _effective(rule: str, own: _Own, k: float) -> Limits:
    table = rules()[rule]
    raising = {name: own.limits.get(name, limit.scaled(limit.value, k)) for name, limit in table.limits.items()}
    _check_order(rule, raising)
    releasing = {name: table.limits[name].released(value, table.factor) for name, value in raising.items()}
    count, window = own.switches.get("raise", table.raised)
    return Limits(
        Values(raising),
        Values(releasing),
        k=k,
        count=count,
        window=window,
        release=own.switches.get("release", table.release),
        enabled=own.switches.get("enabled", True),
        muted=own.switches.get("muted", False),
    )


def _check_order(rule: str, raising: Mapping[str, float]) -> None:
    """Checks that limits of one name get stricter from NOTICE to CRITICAL."""
    names = [name for _, name in FLAGS]
    for name, value in raising.items():
        level, _, rest = name.partition(".")
        for higher in names[names.index(level) + 1 :]:
            other = raising.get(f"{higher}.{rest}")
            if other is None:
                continue
            lower = rules()[rule].limits[name].lower
            if other > value if lower else other < value:
                relation = "at most" if lower else "at least"
                raise UserError(
                    f"health.{rule}.{higher}.{rest} is {other:g}",
                    f"use {relation} health.{rule}.{level}.{rest} ({value:g})",
                )

"""VALUE-1 to VALUE-17: values that veRL accepts but that train badly, by usual.toml and the ranges of presets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launcher.check.finding import Finding, found
from launcher.preset.effective import EffectiveConfig
from launcher.preset.schema import BY_KEY
from launcher.preset.yaml_text import text_of
from launcher.verl.usual import BY_VERL_KEY, DECLARED, RANGES, usual_of


@dataclass(frozen=True)
class Unusual(Finding):
    """`now`: the value and the usual range, without the key: `3, above the usual 0.6 to 1.2`."""

    now: str = ""


def unusual(config: EffectiveConfig) -> list[Unusual]:
    """Settings outside of all reported values, each with the nearest usual value as its change."""
    return [finding for rule in RULES for finding in rule(config)]


def _outside(config: EffectiveConfig, id: str, key: str) -> Iterator[Unusual]:
    """The finding about a key with a value outside of its usual range."""
    value, range_ = config.number(key), usual_of(config, key)
    if value is None or range_ is None or range_.id != id or range_.allows(value):
        return
    low = value < range_.low
    side, happens = ("below", range_.below) if low else ("above", range_.above)
    nearest = range_.usual[0 if low else 1]
    side = "not" if nearest in range_.off else side
    now = f"{text_of(int(value) if value.is_integer() else value)}, {side} the usual {range_.words}"
    name = BY_KEY[key].name
    own = f"correct usual.{name}" if key in config.usual else f"declare usual.{name} in the preset"
    effect = f": {happens}" if happens else ""
    finding = found(f"{id}.range", key=key, now=now, effect=effect, nearest=nearest, own=own)
    yield Unusual(**vars(finding), now=now)


def _rule(id: str) -> Callable[[EffectiveConfig], Iterator[Unusual]]:
    keys = list(dict.fromkeys(key for each in RANGES if each.id == id for key in each.keys))

    def check(config: EffectiveConfig) -> Iterator[Unusual]:
        for key in keys or [key for key in config.usual if key not in BY_VERL_KEY]:
            yield from _outside(config, id, key)

    check.__doc__ = f"{id}: values outside their usual range."
    return check


RULES = tuple(_rule(id) for id in (*dict.fromkeys(each.id for each in RANGES), DECLARED))

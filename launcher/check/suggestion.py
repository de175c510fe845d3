"""The value to suggest instead of one that is refused."""

from collections.abc import Callable, Iterator
from typing import Any, get_origin

from launcher.core.text import nearest
from launcher.preset import yaml_text
from launcher.preset.effective import EffectiveConfig
from launcher.preset.fields import Spec

_SWITCHES = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}


def suggested_value(spec: Spec, value: Any, works: Callable[[Any], bool] = lambda _: True, own: Any = None) -> Any:
    """The value that is probably meant, is allowed and `works`; None if there is none.

    `1e-6` for the text '1e-6', 64 for 64.0, 0.9 for 90 where 1 is the limit; else `own`, which the preset has without
    it, the nearest limit, or veRL's default.
    """
    candidates = (each for each in _candidates(spec, value, own) if each is not None)
    return next((each for each in candidates if spec.allows(each) and works(each)), None)


def _candidates(spec: Spec, value: Any, own: Any) -> Iterator[Any]:
    is_text = isinstance(value, str)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]  # a text alone was taken for a list of one
    if isinstance(value, str):
        text = value.strip()
        yield _SWITCHES.get(text.lower())
        yield yaml_text.value_of(text)
        if any(get_origin(kind) is list for kind in spec.types):
            yield [yaml_text.value_of(part) for part in text.strip("[]").split(",")]
        if text.endswith("%"):
            value = _number(text[:-1])
            yield value and value / 100
        yield nearest(text.lower(), spec.choices)
        value = yaml_text.value_of(text)
    if isinstance(value, int) and value in (0, 1):
        yield bool(value)
    if isinstance(value, float) and value.is_integer():
        yield int(value)
    if isinstance(value, (int, float)) and 5 <= value <= 100:
        yield value / 100  # per cent where a share is wanted
    yield own
    if isinstance(value, (int, float)):
        bounds = [bound for bound in (spec.ge, spec.le) if bound is not None]
        yield from sorted(bounds, key=lambda bound: abs(bound - value))
    if is_text and not spec.choices:
        return  # a word for a number does not mean veRL's default
    yield spec.default
    yield EffectiveConfig().get(spec.key) if spec.key else None


def _number(text: str) -> float | int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number

"""The values that a form offers for a field: choices, divisors of the batch, files, presets; and the next number."""

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError
from launcher.preset.effective import EffectiveConfig
from launcher.preset.fields import Spec
from launcher.preset.layers import declarable
from launcher.preset.schema import SETTINGS
from launcher.preset.yaml_text import Where
from launcher.settings import read_alerts
from launcher.verl.config import ACTOR, BATCH, CRITIC, CRITIC_MINI, MINI, N
from launcher.verl.defaults import NEWEST, leaves, tree

MOST = 200
_SMALLEST = 1e-4  # smallest positive value on the 1-2-5 scale


def choices(where: Where, text: str, *, fresh: bool, config: EffectiveConfig, folder: Path) -> list[str]:
    """The choices that match the typed text. `fresh`: nothing was typed yet, so everything is offered.

    Files are those of the folder in the text, relative to `folder`; folders end in `/`.
    """
    spec = SETTINGS.get(".".join(where))
    if spec is None:
        return []
    if list[str] in spec.types and (words := _listed(where, spec)):
        before, comma, last = text.strip("[]").rpartition(",")
        return [f"{before}{comma}{' ' * len(comma)}{name}" for name in _fitting(words, last, fresh)]
    if spec.choices:
        return _fitting(spec.choices, text, fresh)
    if bool in spec.types:
        return _fitting(("true", "false"), text, fresh)
    if spec.scale == "divisor":
        return _fitting([str(value) for value in allowed(spec.name, config)], text, fresh)
    names: Sequence[str] = spec.suggested
    if where == ("extends",):
        from launcher.preset.files import available

        names = list(available())
    elif where == ("recipe",):
        from launcher.preset.files import recipes

        names = list(recipes())
    named = _fitting(names, text, fresh)
    if spec.kind == "path" or where == ("extends",) or (spec.kind and text.startswith(("/", "~", ".", "$"))):
        named += files(text, folder, fresh=fresh)
    return named


def _listed(where: Where, spec: Spec) -> Sequence[str]:
    """The words allowed in a list; empty for any words."""
    from launcher.health.catalogue import rules

    if where == ("health", "alert_to"):
        with contextlib.suppress(UserError):
            return list(read_alerts())
    return list(rules()) if where == ("health", "checkpoint_on") else spec.choices


def files(text: str, folder: Path, *, fresh: bool = False) -> list[str]:
    """Entries of the folder in a path, folders first, spelled like the path."""
    head, slash, tail = text.rpartition("/")
    if text == "~":
        head, slash, tail = "~", "/", ""
    found: list[tuple[bool, str]] = []
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        above = folder / Path(os.path.expandvars(head + slash)).expanduser()
        for entry in os.scandir(above):
            hidden = entry.name.startswith(".") and not tail.startswith(".")
            if not hidden and (fresh or entry.name.startswith(tail)):
                is_file = not entry.is_dir()
                found.append((is_file, f"{head}{slash}{entry.name}{'' if is_file else '/'}"))
    return [name for _, name in sorted(found)[:MOST]]


def _fitting(names: Sequence[str], text: str, fresh: bool) -> list[str]:
    wanted = text.strip().lower()
    if fresh:
        return list(names)
    begin = [name for name in names if name.lower().startswith(wanted)]
    return begin or [name for name in names if wanted in name.lower()]


def verl_keys(typed: str = "", version: str = NEWEST, verl: Path | None = None) -> list[str]:
    """Keys of veRL `version` that begin with the typed text or, without any, contain it.

    Ignores a leading `+`. `verl`: folder of the installed veRL; its first call takes half a second.
    """
    return _fitting(_known(version, verl), typed.lstrip("+"), fresh=False)


def new_keys(typed: str, version: str = NEWEST, verl: Path | None = None) -> list[str]:
    """Keys that can be added to a preset and match the typed text: veRL's, and `usual.FIELD`."""
    ranges = [f"usual.{name}" for name in declarable()] if typed.startswith("usual") else []
    return _fitting(ranges, typed, fresh=False) if ranges else verl_keys(typed, version, verl)


@functools.cache
def _known(version: str, verl: Path | None) -> tuple[str, ...]:
    return tuple(sorted(leaves(tree(version, verl))))


def step(spec: Spec, value: Any, up: bool, config: EffectiveConfig) -> Any:
    """The value after `value` on the field's scale; None without one.

    An unset field starts at veRL's default. Switches toggle, and choices wrap around.
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
        values = allowed(spec.name, config)
        now = value if isinstance(value, (int, float)) else 0
        if up:
            return next((each for each in values if each > now), None)
        return next((each for each in reversed(values) if each < now), None)
    if spec.scale == "double":
        if not isinstance(value, (int, float)) or value <= 0:
            return 1 if up else None
        return value * 2 if up else value // 2 if isinstance(value, int) else value / 2
    if spec.scale == "125":
        found = _one_two_five(float(value or 0), up)
        return found if float in spec.types else max(1, round(found))
    return _step(value or 0, spec.step, up, whole=float not in spec.types)


def allowed(name: str, config: EffectiveConfig) -> list[int]:
    """The values of a "divisor" field that the preset allows (rules P2, P8 to P13)."""
    whole = _WHOLE.get(name)
    return divisors(whole(config)) if whole else []


def divisors(number: int) -> list[int]:
    """All divisors of a number, smallest first."""
    small = [part for part in range(1, int(number**0.5) + 1) if number % part == 0]
    return sorted({*small, *(number // part for part in small)})


def _responses(config: EffectiveConfig, prompts: int | None, model: str = ACTOR) -> int:
    """Responses per GPU for `prompts` prompts; 0 if they cannot be divided evenly."""
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
"""The number that the field's value must divide."""


def _one_two_five(value: float, up: bool) -> float:
    if value <= 0:
        return _SMALLEST if up else 0.0
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) - 1 + exponent
    around = [float(Decimal(mantissa).scaleb(power + shift)) for shift in (-1, 0, 1) for mantissa in (1, 2, 5)]
    return next(each for each in (around if up else reversed(around)) if (each > value if up else each < value))


def _step(value: float, distance: float, up: bool, *, whole: bool) -> Any:
    """The next multiple of the step. Below the first one is -1 (never), for fields that allow it."""
    by = Decimal(repr(distance))
    times = Decimal(repr(value)) / by
    found = by * (times.to_integral_value(ROUND_FLOOR) + 1 if up else times.to_integral_value(ROUND_CEILING) - 1)
    if value < 0 and up:
        found = max(found, by)
    if not whole:
        return float(found)
    return -1 if found == 0 and distance > 1 and not up else int(found)

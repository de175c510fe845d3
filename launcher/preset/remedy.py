"""What a fix changes in a preset: its settings as fields and veRL keys of the preset, with the values that it gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.console.fix import UNKNOWN, Change, Fix
from launcher.core.errors import UserError
from launcher.preset.effective import EffectiveConfig, of_draft
from launcher.preset.field_values import where_of
from launcher.preset.files import restore
from launcher.preset.schema import FIELDS
from launcher.preset.translate import OURS
from launcher.preset.yaml_text import value_of


@dataclass(frozen=True)
class Remedy:
    """Where in a preset the advice is followed, a field or veRL key, and the KEY=VALUE that it gives.

    `done`: the preset has these values already.
    """

    field: str
    settings: tuple[str, ...] = ()
    done: bool = False


def configuration(preset: Mapping[str, Any]) -> EffectiveConfig:
    """The configuration of a run's preset; that of veRL where it cannot be read any more."""
    try:
        return of_draft(restore("", preset).values())
    except UserError:
        return EffectiveConfig()


def remedy(fix: Fix, config: EffectiveConfig) -> Remedy | None:
    """How the fix is followed in the preset that comes to `config`; None when it is about something else."""
    changes = [change for change in fix.changes if _settable(change.key)]
    if not changes:
        return None
    values = {change.key: value for change in changes if (value := _value(change, config)) is not None}
    done = bool(values) and all(_now(key, config) == value_of(value) for key, value in values.items())
    return Remedy(changes[0].key, tuple(f"{key}={value}" for key, value in values.items()), done)


def _settable(key: str) -> bool:
    """Whether a word is a key that a preset can hold."""
    try:
        return where_of(key)[-1] not in OURS
    except UserError:
        return False


def _now(key: str, config: EffectiveConfig) -> Any:
    """The present value of a key, or of a field by its name."""
    where = where_of(key)
    spec = FIELDS.get(".".join(where))
    return config.get(spec.key if spec else where[1])


def _value(change: Change, config: EffectiveConfig) -> str | None:
    """The value that a change gives; of examples the first that leads on from where the preset is."""
    now = _now(change.key, config)
    if change.operation == "set" or not isinstance(now, int | float):
        return next((value for value in change.values if UNKNOWN not in value), None)
    if change.operation == "lower":
        return next((value for value in change.values if float(value) < now), None)
    return next((value for value in change.values if float(value) > now), None)

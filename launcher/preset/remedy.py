"""The changes of a fix in a preset: fields and veRL keys with their new values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
    """The field or veRL key that the advice changes, and the resulting KEY=VALUE."""

    field: str
    settings: tuple[str, ...] = ()


def configuration(preset: Mapping[str, Any]) -> EffectiveConfig:
    """The configuration of a run's preset; that of veRL if it is unreadable."""
    try:
        return of_draft(restore("", preset).values())
    except UserError:
        return EffectiveConfig()


def remedy(fix: Fix, config: EffectiveConfig) -> Remedy | None:
    """The changes of the fix in a preset with the configuration `config`; None if the fix is about something else."""
    changes = [change for change in fix.changes if _settable(change.key)]
    if not changes:
        return None
    values = {change.key: value for change in changes if (value := _value(change, config)) is not None}
    return Remedy(changes[0].key, tuple(f"{key}={value}" for key, value in values.items()))


def open_fixes(fixes: Iterable[Fix], config: EffectiveConfig) -> tuple[Fix, ...]:
    """The fixes without settings that the preset has already, and without numbers that cannot be lowered."""
    found, group = list[Fix](), False  # whether a fix before an alternative is left
    for fix in fixes:
        changes = tuple(change for change in fix.changes if not _done(change, fix, config))
        group = group and fix.alternative
        if changes or not fix.changes:
            found.append(replace(fix, changes=changes, alternative=group))
            group = True
    return tuple(found)


def _done(change: Change, fix: Fix, config: EffectiveConfig) -> bool:
    """Whether nothing of a change is left to do. Settings that a fix sets belong together."""
    if change.operation == "lower" and _settable(change.key):
        now = _now(change.key, config)
        if change.values:
            return isinstance(now, int | float) and _value(change, config) is None
        return type(now) is int and now <= 1
    together = [each for each in fix.changes if each.operation == "set"]
    return change in together and all(
        _settable(each.key) and _now(each.key, config) in map(value_of, each.values) for each in together
    )


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
    """The value after a change; of several examples, the first one that goes further than the present value."""
    now = _now(change.key, config)
    if change.operation == "set" or not isinstance(now, int | float):
        return next((value for value in change.values if UNKNOWN not in value), None)
    if change.operation == "lower":
        return next((value for value in change.values if float(value) < now), None)
    return next((value for value in change.values if float(value) > now), None)

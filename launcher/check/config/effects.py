"""KEY-7: user settings that another setting makes ineffective (launcher/check/effects.toml)."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.check.config.base import Findings
from launcher.check.finding import Level, Words, found, setting
from launcher.check.subject import Subject
from launcher.core.tables import read_tables, record
from launcher.preset.schema import BY_KEY, FIELDS
from launcher.preset.settle import shown_name
from launcher.preset.yaml_text import text_of
from launcher.record.fix import Change, Fix
from launcher.verl import defaults
from launcher.verl.algorithms import estimators, losses
from launcher.verl.config import ESTIMATOR, LOSS_MODE

_SHOWN = 3  # settings of one row


@dataclass(frozen=True)
class Effect:
    """A row of effects.toml, which explains its columns."""

    keys: tuple[str, ...]
    source: str
    needs: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    replaced_by: tuple[str, ...] = ()
    level: str = "info"
    since: str = "0.9.1"
    fsdp: bool = False

    def covers(self, key: str) -> bool:
        """Whether the row is about a key."""
        names = [name for name in self.keys if key == name or (name.endswith(".") and key.startswith(name))]
        return bool(names) and key not in self.needs

    def holds(self, subject: Subject) -> bool:
        """Whether the keys have an effect, or the row cannot judge."""
        if not subject.at_least(self.since) or (self.fsdp and not subject.is_fsdp):
            return True
        if self.replaced_by:
            return not all(subject.source(key) in ("field", "override") for key in self.replaced_by)
        return any(_unknown(key, subject) or _has(subject.get(key), wanted) for key, wanted in self.needs.items())


@functools.cache
def effects() -> tuple[Effect, ...]:
    """All rows."""
    return tuple(record(Effect, row) for row in read_tables(Path(__file__).parents[1] / "effects.toml")["effects"])


def without_effect(subject: Subject) -> Findings:
    """KEY-7: every user setting has an effect; one finding per reason."""
    left = {} if subject.program else _chosen(subject)
    for row in effects():
        idle = {key: left[key] for key in left if row.covers(key)}
        if not idle or row.holds(subject):
            continue
        left = {key: unusual for key, unusual in left.items() if key not in idle}
        names = ", ".join(list(idle)[:_SHOWN]) + (f" and {len(idle) - _SHOWN} more" if len(idle) > _SHOWN else "")
        words: Words = {"names": names, "have": "have" if len(idle) > 1 else "has", "state": _state(row, subject)}
        level: Level = "warning" if row.level == "warning" and any(idle.values()) else "info"
        keys = [*idle, *row.needs, *row.replaced_by]
        left_out = Fix(changes=tuple(Change(shown_name(key), "remove") for key in idle), alternative=not row.why)
        fixes = [left_out] if row.why else [_remedy(row, subject), left_out]
        yield found("KEY-7", **words, keys=keys, level=level, fixes=fixes)


def _chosen(subject: Subject) -> dict[str, bool]:
    """The veRL keys that the user set to more than null, 0 or false, and whether they differ from the default."""
    chosen = {}
    for where, entry in subject.loaded.layer.items():
        spec = FIELDS.get(".".join(where))
        key = spec.key if spec else where[1].lstrip("+~") if where[0] == "overrides" else ""
        usual = defaults.leaf(subject.defaults, key)[1] if key else None
        if key and entry.own and (entry.value or (entry.value is False and usual is True)):
            chosen[key] = (spec.to_verl(entry.value) if spec else entry.value) != usual
    return chosen


def _has(now: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_has(now, each) for each in wanted)
    return bool(now) is wanted if isinstance(wanted, bool) else bool(now == wanted)


def _unknown(key: str, subject: Subject) -> bool:
    """Whether a loss or estimator is the user's own, which may read any setting."""
    known = {ESTIMATOR: estimators(), LOSS_MODE: losses()}.get(key)
    return known is not None and subject.get(key) not in known


def _state(row: Effect, subject: Subject) -> str:
    """`kl.in_reward is false`, with veRL keys."""
    if row.why:
        return row.why
    named = [key for key in row.replaced_by or row.needs if subject.get(key) is not None]
    return " and ".join(f"{key} is {_shown(key, subject.get(key))}" for key in named or row.needs)


def _remedy(row: Effect, subject: Subject) -> Fix:
    """How to make the settings effective, by the first of the conditions."""
    if row.replaced_by:
        return Fix(f"set {' and '.join(map(shown_name, row.replaced_by))} instead")
    key, wanted = next(iter(row.needs.items()))
    first = wanted[0] if isinstance(wanted, list) else wanted
    now, spec = subject.get(key), BY_KEY.get(key)
    if isinstance(first, bool) and not (isinstance(now, bool) or (spec and bool in spec.types)):
        return Fix(
            changes=(Change(shown_name(key), "choose" if first else "remove", words="a value" if first else ""),)
        )
    return setting({shown_name(key): spec.from_verl(first) if spec else first})


def _shown(key: str, value: Any) -> str:
    """A value in preset form: ppo for gae."""
    if value is None:
        return "not set"
    spec = BY_KEY.get(key)
    return text_of(spec.from_verl(value) if spec else value)


RULES = (without_effect,)

"""The `health:` options about actions after a flag (fields.toml); `launcher.health` has the limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.core.errors import UserError
from launcher.core.text import near_hint
from launcher.health.catalogue import rules
from launcher.health.settings import read
from launcher.preset.schema import SETTINGS
from launcher.settings import read_alerts

OPTIONS = {spec.path[1]: spec for spec in SETTINGS.values() if spec.path[0] == "health" and len(spec.path) > 1}
del OPTIONS["preset"]  # the preset of limits is not an option here
STOPPERS = OPTIONS["stop_on"].choices
"""Rules that may end a run: they are seldom wrong."""


@dataclass(frozen=True)
class AlertSettings:
    """The options about actions in a preset's `health:` block."""

    on_alert: tuple[str, ...]
    alert_to: list[str] | None
    stop_on: frozenset[str]
    stop_at: str
    checkpoint_on: frozenset[str]
    grace_steps: int
    retry: int
    notify: frozenset[str]

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> "AlertSettings":
        """Checks and reads the options. Raises UserError."""
        found = {name: _checked(name, settings.get(name, spec.default)) for name, spec in OPTIONS.items()}
        found |= {name: frozenset(found[name] or ()) for name in ("stop_on", "checkpoint_on", "notify")}
        return cls(**found | {"on_alert": tuple(found["on_alert"] or ())})

    def targets(self) -> list[str]:
        """The names of the alert targets in config.yaml. Raises UserError for a missing one."""
        known = read_alerts()
        for name in self.alert_to or ():
            if name not in known:
                hint = near_hint(name, list(known), "add it under alerts: in config.yaml")
                raise UserError(f"health.alert_to: {name!r} is not a target in config.yaml", hint)
        return list(known) if self.alert_to is None else list(self.alert_to)


def limits_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The other settings of a `health:` block, for the rules."""
    return {name: value for name, value in settings.items() if name not in OPTIONS}


def check_health(settings: Mapping[str, Any]) -> None:
    """Refuses an invalid `health:` block before a start. Raises UserError."""
    if limits := limits_of(settings):
        read(limits, OPTIONS)
    AlertSettings.read(settings).targets()


def _checked(name: str, value: Any) -> Any:
    spec = OPTIONS[name]
    known = tuple(rules()) if name == "checkpoint_on" else spec.choices
    if not spec.allows(value):
        raise UserError(f"health.{name} is {value!r}", f"use {spec.allowed}")
    for each in value if known and isinstance(value, list) else ():
        if each not in known:
            hint = near_hint(each, known, f"use a list of {', '.join(known)}")
            raise UserError(f"health.{name}: {each!r} is not allowed", hint)
    return value

"""The options of a preset's `health:` block that are about acting on a flag; `launcher.health` has those about limits.

health:
  on_alert: [curl, -sd, "@-", https://ntfy.sh/my-runs]   # an argument list; the event comes as JSON on stdin
  alert_to: [phone]           # names under alerts: in config.yaml; all of them unless it is given, none with []
  stop_on: [NUM-1, KL-1]      # off unless named
  stop_at: checkpoint         # or now, the default
  checkpoint_on: [REW-1]      # rules that have veRL save a checkpoint when they become WARN or CRITICAL
  grace_steps: 3              # steps that a rule must stay CRITICAL; none for NUM-1 and ERR-1
  retry: 2                    # how often a failed run is continued when its cause may be gone; never by default
  notify: [toast, bell, osc9] # what an open screen may do; bell and osc9 only when CRITICAL or at the end
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from launcher.core.errors import UserError
from launcher.core.text import near_hint
from launcher.health.catalogue import rules
from launcher.health.settings import read
from launcher.settings import read_alerts

STOPPERS = ("NUM-1", "ERR-1", "KL-1", "SIG-1", "REW-1")
"""Rules for which a run may be ended: they are seldom wrong."""
NOTICES = ("toast", "bell", "osc9")


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _whole(most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 0 <= value <= most


class _Option(NamedTuple):
    """The values that `fits`, how they are kept, and the hint for others; of a list that is kept as a set, the words
    that it may have.
    """

    hint: str
    fits: Callable[[Any], bool]
    kept: Callable[[Any], Any] = lambda value: value
    known: Sequence[str] = ()


def _some_of(known: Sequence[str]) -> _Option:
    return _Option(f"use a list of {', '.join(known)}", lambda value: isinstance(value, list), frozenset, known)


OPTIONS = {
    "on_alert": _Option("use a list of words, such as [notify-send, ppo-tui]", _words, tuple),
    "alert_to": _Option("use a list of names under alerts: in config.yaml", _words, tuple),
    "stop_on": _some_of(STOPPERS),
    "stop_at": _Option("use now or checkpoint", lambda value: value in ("now", "checkpoint")),
    "checkpoint_on": _some_of(tuple(rules())),
    "grace_steps": _Option("use a number of steps from 0 to 1000", _whole(1000)),
    "retry": _Option("use a number of retries from 0 to 100", _whole(100)),
    "notify": _some_of(NOTICES),
}
_NULL = ("on_alert", "alert_to", "stop_on", "checkpoint_on")  # may be null, which is the default


@dataclass(frozen=True)
class AlertSettings:
    """The options of a preset's `health:` block that are about acting."""

    on_alert: tuple[str, ...] = ()
    alert_to: tuple[str, ...] | None = None
    stop_on: frozenset[str] = frozenset()
    stop_at: str = "now"
    checkpoint_on: frozenset[str] = frozenset()
    grace_steps: int = 3
    retry: int = 0
    notify: frozenset[str] = frozenset(NOTICES)

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> "AlertSettings":
        """Checks and takes the options. Raises UserError."""
        given = {name: settings[name] for name in OPTIONS if name in settings}
        return cls(
            **{name: _read(name, value) for name, value in given.items() if value is not None or name not in _NULL}
        )

    def targets(self) -> list[str]:
        """The names of the targets in config.yaml that get the alerts. Raises UserError for one that is not there."""
        known = read_alerts()
        for name in self.alert_to or ():
            if name not in known:
                hint = near_hint(name, list(known), "add it under alerts: in config.yaml")
                raise UserError(f"health.alert_to: {name!r} is not a target in config.yaml", hint)
        return list(known) if self.alert_to is None else list(self.alert_to)


def limits_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The rest of a `health:` block, which is for the rules."""
    return {name: value for name, value in settings.items() if name not in OPTIONS}


def check_health(settings: Mapping[str, Any]) -> None:
    """Refuses a `health:` block that is wrong, before anything is started. Raises UserError."""
    read(limits_of(settings), OPTIONS)
    AlertSettings.read(settings).targets()


def _read(name: str, value: Any) -> Any:
    option = OPTIONS[name]
    if not option.fits(value):
        raise UserError(f"health.{name} is {value!r}", option.hint)
    for each in value if option.known else ():
        if each not in option.known:
            raise UserError(f"health.{name}: {each!r} is not allowed", near_hint(str(each), option.known, option.hint))
    return option.kept(value)

"""The options of a preset's `health:` block that are about acting on a flag; `settings` has those about limits.

health:
  on_alert: [curl, -sd, "@-", https://ntfy.sh/my-runs]   # an argument list; the event comes as JSON on stdin
  alert_to: [phone]           # names under alerts: in config.yaml; all of them unless it is given, none with []
  stop_on: [NUM-1, KL-1]      # off unless named
  stop_at: checkpoint         # or now, the default
  stop_behind: sweep-1        # end when behind the median reward of the runs with this tag
  checkpoint_on: [REW-1]      # rules that have veRL save a checkpoint when they become WARN or CRITICAL
  grace_steps: 3              # steps that a rule must stay CRITICAL; none for NUM-1 and ERR-1
  retry: 2                    # how often a failed run is continued when its cause may be gone; never by default
  notify: [toast, bell, osc9] # what an open screen may do; bell and osc9 only when CRITICAL or at the end
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.core.errors import UserError
from launcher.core.text import near_hint
from launcher.health import settings as limits
from launcher.health.catalogue import rules
from launcher.settings import read_alerts

STOPPERS = ("NUM-1", "ERR-1", "KL-1", "SIG-1", "REW-1")
"""Rules for which a run may be ended: they are seldom wrong."""
NOTICES = ("toast", "bell", "osc9")


@dataclass(frozen=True)
class AlertSettings:
    """The options of a preset's `health:` block that are about acting."""

    on_alert: tuple[str, ...] = ()
    alert_to: tuple[str, ...] | None = None
    stop_on: frozenset[str] = frozenset()
    stop_at: str = "now"
    stop_behind: str = ""
    checkpoint_on: frozenset[str] = frozenset()
    grace_steps: int = 3
    retry: int = 0
    notify: frozenset[str] = frozenset(NOTICES)

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> "AlertSettings":
        """Checks and takes the options. Raises UserError."""
        command = settings.get("on_alert") or []
        if not isinstance(command, list) or not all(isinstance(word, str) and word for word in command):
            raise UserError(f"health.on_alert is {command!r}", "use a list of words, such as [notify-send, ppo-tui]")
        targets = settings.get("alert_to")
        if targets is not None and (
            not isinstance(targets, list) or not all(isinstance(name, str) for name in targets)
        ):
            raise UserError(f"health.alert_to is {targets!r}", "use a list of names under alerts: in config.yaml")
        stopping = _listed(settings.get("stop_on") or [], "stop_on", STOPPERS)
        saving = _listed(settings.get("checkpoint_on") or [], "checkpoint_on", tuple(rules()))
        when = settings.get("stop_at", "now")
        if when not in ("now", "checkpoint"):
            raise UserError(f"health.stop_at is {when!r}", "use now or checkpoint")
        behind = settings.get("stop_behind") or ""
        if not isinstance(behind, str):
            raise UserError(f"health.stop_behind is {behind!r}", "use a tag of runs, such as sweep-1")
        grace = settings.get("grace_steps", 3)
        if type(grace) is not int or not 0 <= grace <= 1000:
            raise UserError(f"health.grace_steps is {grace!r}", "use a number of steps from 0 to 1000")
        retry = settings.get("retry", 0)
        if type(retry) is not int or not 0 <= retry <= 100:
            raise UserError(f"health.retry is {retry!r}", "use a number of retries from 0 to 100")
        ways = _listed(settings.get("notify", list(NOTICES)), "notify", NOTICES)
        return cls(
            on_alert=tuple(command),
            alert_to=None if targets is None else tuple(targets),
            stop_on=frozenset(stopping),
            stop_at=when,
            stop_behind=behind,
            checkpoint_on=frozenset(saving),
            grace_steps=grace,
            retry=retry,
            notify=frozenset(ways),
        )

    def targets(self) -> list[str]:
        """The names of the targets in config.yaml that get the alerts. Raises UserError for one that is not there."""
        known = read_alerts()
        for name in self.alert_to or ():
            if name not in known:
                hint = near_hint(name, list(known), "add it under alerts: in config.yaml")
                raise UserError(f"health.alert_to: {name!r} is not a target in config.yaml", hint)
        return list(known) if self.alert_to is None else list(self.alert_to)


def _listed(value: Any, name: str, known: Sequence[str]) -> list[str]:
    """A list of known names. Raises UserError."""
    if not isinstance(value, list):
        raise UserError(f"health.{name} is {value!r}", f"use a list of {', '.join(known)}")
    for each in value:
        if each not in known:
            hint = near_hint(str(each), known, f"use a list of {', '.join(known)}")
            raise UserError(f"health.{name}: {each!r} is not allowed", hint)
    return value


def check_health(settings: Mapping[str, Any]) -> None:
    """Refuses a `health:` block that is wrong, before anything is started. Raises UserError."""
    limits.read(settings)
    AlertSettings.read(settings).targets()

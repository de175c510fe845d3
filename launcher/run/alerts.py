"""What a flag sets off besides an event: the user's `on_alert` command, and `stop_on`.

health:
  on_alert: [curl, -sd, "@-", https://ntfy.sh/my-runs]   # an argument list; the event comes as JSON on stdin
  stop_on: [NUM-1, KL-1]      # off unless named
  stop_at: checkpoint         # or now, the default
  grace_steps: 3              # steps that a rule must stay CRITICAL; none for NUM-1 and ERR-1
  notify: [toast, bell, osc9] # what an open screen may do; bell and osc9 only when CRITICAL or at the end
"""

import queue
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from launcher.errors import UserError
from launcher.health.levels import Level
from launcher.text import clean, did_you_mean

STOPPERS = ("NUM-1", "ERR-1", "KL-1", "SIG-1", "REW-1")
"""What a run may be ended for: rules that are seldom wrong."""
NOTICES = ("toast", "bell", "osc9")
AT_ONCE = frozenset({"NUM-1", "ERR-1"})
TIME_LIMIT = 30.0  # seconds an on_alert command may take
_WAITING = 50  # alerts that may wait for the command; more are dropped, with a note


@dataclass(frozen=True)
class AlertSettings:
    """The options of a preset's `health:` block that are about acting."""

    on_alert: tuple[str, ...] = ()
    stop_on: frozenset[str] = frozenset()
    stop_at: str = "now"
    grace_steps: int = 3
    notify: frozenset[str] = frozenset(NOTICES)

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> "AlertSettings":
        """Checks and takes the options. Raises UserError."""
        command = settings.get("on_alert") or []
        if not isinstance(command, list) or not all(isinstance(word, str) and word for word in command):
            raise UserError(
                f"health.on_alert is {command!r}, but must be a list of words, such as [notify-send, ppo-tui]"
            )
        rules = settings.get("stop_on") or []
        for rule in rules if isinstance(rules, list) else [rules]:
            if rule not in STOPPERS or not isinstance(rules, list):
                near = did_you_mean(str(rule), STOPPERS)
                raise UserError(f"health.stop_on is a list of {', '.join(STOPPERS)}; {rule!r} is not{near}")
        when = settings.get("stop_at", "now")
        if when not in ("now", "checkpoint"):
            raise UserError(f"health.stop_at is {when!r}, allowed are now and checkpoint")
        grace = settings.get("grace_steps", 3)
        if type(grace) is not int or not 0 <= grace <= 1000:
            raise UserError(f"health.grace_steps is {grace!r}, but must be a number of steps from 0 to 1000")
        ways = settings.get("notify", list(NOTICES))
        for way in ways if isinstance(ways, list) else [ways]:
            if way not in NOTICES or not isinstance(ways, list):
                near = did_you_mean(str(way), NOTICES)
                raise UserError(f"health.notify is a list of {', '.join(NOTICES)}; {way!r} is not{near}")
        return cls(tuple(command), frozenset(rules), when, grace, frozenset(ways))


class AlertCommand:
    """Runs `on_alert` once an alert, one at a time, beside the supervisor: never waited for."""

    def __init__(self, argv: tuple[str, ...], report: Callable[[str], None]) -> None:
        """`report` is called with a sentence when a command failed, from another thread."""
        self._argv, self._report = list(argv), report
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._work, name="on_alert", daemon=True)
        if self._argv:
            self._thread.start()

    def send(self, event: dict[str, Any]) -> None:
        """Hands an event over; returns at once."""
        if not self._argv:
            return
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self._report(f"on_alert: {_WAITING} alerts are waiting for {self._argv[0]}, this one is dropped")

    def close(self) -> None:
        """Gives the alerts that wait a last chance."""
        if self._argv:
            self._queue.put(None)
            self._thread.join(TIME_LIMIT)

    def _work(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                done = subprocess.run(
                    self._argv,
                    input=orjson.dumps(event),
                    timeout=TIME_LIMIT,
                    check=False,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
                if done.returncode:
                    said = clean(done.stderr.decode(errors="replace")).strip().splitlines()
                    self._report(
                        f"on_alert: {self._argv[0]} left with {done.returncode}" + (f": {said[-1]}" if said else "")
                    )
            except subprocess.TimeoutExpired:
                self._report(f"on_alert: {self._argv[0]} took more than {TIME_LIMIT:.0f} s and was ended")
            except OSError as error:
                self._report(f"on_alert: {self._argv[0]} cannot be run: {error.strerror}")


class StopRule:
    """Decides when `stop_on` ends the run."""

    def __init__(self, settings: AlertSettings, save_every: int | None) -> None:
        self._settings = settings
        self._save_every = save_every if save_every and save_every > 0 else None
        self._since: dict[str, int] = {}
        self._verdict: tuple[str, int] | None = None  # the rule, and the step whose checkpoint is awaited

    def due(self, levels: Mapping[str, Level], step: int) -> str | None:
        """The reason to stop after this step, or None to go on."""
        if self._verdict is None:
            for rule in self._settings.stop_on:
                if levels.get(rule) != Level.CRITICAL:
                    self._since.pop(rule, None)
                    continue
                since = self._since.setdefault(rule, step)
                if rule in AT_ONCE or step - since >= self._settings.grace_steps:
                    self._verdict = (rule, self._wait_until(step))
                    break
        if self._verdict is not None and step >= self._verdict[1]:
            return f"stop_on: {self._verdict[0]} is CRITICAL"
        return None

    def _wait_until(self, step: int) -> int:
        """The step with which the next checkpoint is on disk: a step's own is saved before its line."""
        if self._settings.stop_at == "now" or self._save_every is None:
            return step
        return -(-step // self._save_every) * self._save_every

"""Actions of a flag besides an event: `on_alert`, messages to the user's targets, `stop_on`."""

import contextlib
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from subprocess import DEVNULL, PIPE

import orjson

from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.core.secrets import redact, redact_tree
from launcher.machine import targets
from launcher.preset.alerting import AlertSettings
from launcher.record.events import LevelChange
from launcher.record.levels import Level
from launcher.settings import read_alerts

AT_ONCE = frozenset({"NUM-1", "ERR-1"})
TIME_LIMIT = 30.0  # seconds an on_alert command may take
PAUSE = 300.0  # seconds between two messages about a run, each with all events since the last one
_WAITING = 50  # alerts that may wait for the command; more are dropped, and counted in a note


class AlertCommand:
    """Runs a command once per alert, one at a time; the supervisor never waits for it.

    With a `pause` in seconds, each call gets all alerts since the last one; alerts about the end of the run are sent at
    once.
    """

    def __init__(
        self, argv: Sequence[str], report: Callable[[str], None], name: str = "on_alert", *, pause: float = 0.0
    ) -> None:
        """`report` gets a sentence, beginning with `name`, when a command fails; called from another thread."""
        self._argv, self._report, self._name = list(argv), report, name
        self._pause, self._due = pause, 0.0
        self._queue: queue.SimpleQueue[Mapping[str, object] | None] = queue.SimpleQueue()  # a put never waits
        self._dropped = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        if self._argv:
            self._thread.start()

    @property
    def listens(self) -> bool:
        """Whether there is a command."""
        return bool(self._argv)

    def send(self, event: Mapping[str, object]) -> None:
        """Queues an event; returns at once."""
        if not self._argv:
            return
        if self._queue.qsize() < _WAITING:
            self._queue.put(event)
        else:
            self._dropped += 1

    def close(self) -> None:
        """Sends the waiting alerts for at most `TIME_LIMIT` seconds."""
        if not self._argv:
            return
        self._queue.put(None)
        self._thread.join(TIME_LIMIT)
        if self._thread.is_alive():
            self._report(f"{self._name}: {self._argv[0]} did not take all alerts within {TIME_LIMIT:.0f} s")

    def _work(self) -> None:
        while events := self._next():
            failure = _call(self._argv, events if self._pause else events[0])
            dropped, self._dropped = self._dropped, 0
            lost = f"{counted(dropped, 'alert')} dropped, since {_WAITING} were waiting" if dropped else ""
            for said in filter(None, (failure, lost)):
                with contextlib.suppress(Exception):  # the disk may be full
                    self._report(f"{self._name}: {said}")

    def _next(self) -> list[Mapping[str, object]]:
        """The alerts for one call of the command; empty at the end."""
        event = self._queue.get()
        events: list[Mapping[str, object]] = []
        while event is not None:
            events.append(event)
            left = self._due - time.monotonic()
            if left <= 0 or event.get("kind") == "exit":
                break
            try:
                event = self._queue.get(timeout=left)
            except queue.Empty:
                break
        else:
            if events:
                self._queue.put(None)  # the end, for the next call
        self._due = time.monotonic() + self._pause
        return events


def _call(argv: Sequence[str], told: object, folder: str | None = None) -> str:
    """Calls a command with JSON on stdin; returns why it failed."""
    try:
        given = orjson.dumps(redact_tree(told))
        done = subprocess.run(
            argv, input=given, timeout=TIME_LIMIT, check=False, stdout=DEVNULL, stderr=PIPE, cwd=folder
        )
        errors = redact(done.stderr.decode(errors="replace")).strip().splitlines()
        failed = f"{argv[0]} failed with exit code {done.returncode}" + (f": {errors[-1]}" if errors else "")
        return failed if done.returncode else ""
    except subprocess.TimeoutExpired:
        return f"{argv[0]} was killed after {TIME_LIMIT:.0f} s"
    except Exception as error:  # an argument with a null byte, a full process table: the next alert may pass
        return f"cannot run {argv[0]}: {getattr(error, 'strerror', None) or error}"


def send_test(alerts: AlertSettings, name: str) -> Iterator[str]:
    """Sends a test to a preset's command and targets; yields the result of each. Raises UserError."""
    folder = tempfile.gettempdir()
    change = LevelChange(27, "KL-1", Level.WARN, Level.CRITICAL, "a test of alerts; all runs are fine")
    event = {"run": "test", "name": name, "dir": folder, "kind": change.kind, **change.to_json()}
    title, body = targets.message([event])
    if alerts.on_alert:
        yield f"on_alert: {_call(alerts.on_alert, event, folder) or f'sent to {alerts.on_alert[0]}'}"
        yield orjson.dumps(event).decode()
    known = read_alerts()
    for each in alerts.targets():
        try:
            targets.send(each, known[each], title, body)
        except UserError as error:
            yield str(error)
        else:
            yield f"{each}: sent to {targets.service(known[each])}\n{title}\n{body}"


class StopRule:
    """Decides when `stop_on` ends the run."""

    def __init__(self, settings: AlertSettings, save_every: int | None) -> None:
        self._settings = settings
        self._save_every = save_every if save_every and save_every > 0 else None
        self._since: dict[str, int] = {}
        self._verdict: tuple[str, int] | None = None  # the reason, and the step whose checkpoint is awaited

    def due(self, levels: Mapping[str, Level], step: int) -> str | None:
        """The reason to stop after this step, or None to continue."""
        if self._verdict is None:
            for rule in self._settings.stop_on:
                if levels.get(rule) != Level.CRITICAL:
                    self._since.pop(rule, None)
                    continue
                since = self._since.setdefault(rule, step)
                if rule in AT_ONCE or step - since >= self._settings.grace_steps:
                    until = step
                    if self._settings.stop_at != "now" and self._save_every is not None:
                        # the next checkpoint is on disk by that step; it is saved before its step line
                        until = -(-step // self._save_every) * self._save_every
                    self._verdict = (f"stop_on: {rule} is CRITICAL", until)
                    break
        return self._verdict[0] if self._verdict is not None and step >= self._verdict[1] else None

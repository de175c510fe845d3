"""Consequences of a flag besides an event: `on_alert`, messages to the user's targets, `stop_on`."""

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import orjson

from launcher.core.text import clean
from launcher.preset.alerting import AlertSettings
from launcher.record.levels import Level

AT_ONCE = frozenset({"NUM-1", "ERR-1"})
TIME_LIMIT = 30.0  # seconds an on_alert command may take
PAUSE = 300.0  # seconds between two messages about a run; what happens meanwhile is in the next one
_WAITING = 50  # alerts that may wait for the command; more are dropped, with a note


class AlertCommand:
    """Runs a command once per alert, one at a time; the supervisor never waits for it.

    With a `pause`, in seconds, it gets a list of the alerts since the last time, and an alert about the end of the run
    at once.
    """

    def __init__(
        self, argv: Sequence[str], report: Callable[[str], None], name: str = "on_alert", *, pause: float = 0.0
    ) -> None:
        """`report` is called with a sentence when a command failed, from another thread; `name` begins it."""
        self._argv, self._report, self._name = list(argv), report, name
        self._pause, self._due = pause, 0.0
        self._queue: queue.Queue[Mapping[str, object] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        if self._argv:
            self._thread.start()

    def send(self, event: Mapping[str, object]) -> None:
        """Queues an event; returns at once."""
        if not self._argv:
            return
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self._report(f"{self._name}: dropped an alert; {_WAITING} are waiting")

    def close(self) -> None:
        """Sends the waiting alerts a last time, for at most `TIME_LIMIT` seconds."""
        if not self._argv:
            return
        end = time.monotonic() + TIME_LIMIT
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=TIME_LIMIT)
        self._thread.join(max(0.0, end - time.monotonic()))
        if self._thread.is_alive():
            self._report(f"{self._name}: {self._argv[0]} did not take all alerts within {TIME_LIMIT:.0f} s")

    def _work(self) -> None:
        while events := self._next():
            try:
                failure = self._run(events)
            except Exception as error:  # an argument with a null byte, a full process table: the next alert may pass
                failure = f"cannot run {self._argv[0]}: {getattr(error, 'strerror', None) or error}"
            if failure:
                with contextlib.suppress(Exception):  # the disk may be full
                    self._report(f"{self._name}: {failure}")

    def _run(self, events: list[Mapping[str, object]]) -> str:
        """Calls the command; returns why it failed. Raises whatever prevents the call."""
        try:
            done = subprocess.run(
                self._argv,
                input=orjson.dumps(events if self._pause else events[0]),
                timeout=TIME_LIMIT,
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except subprocess.TimeoutExpired:
            return f"{self._argv[0]} was killed after {TIME_LIMIT:.0f} s"
        if not done.returncode:
            return ""
        errors = clean(done.stderr.decode(errors="replace")).strip().splitlines()
        return f"{self._argv[0]} failed with exit code {done.returncode}" + (f": {errors[-1]}" if errors else "")

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

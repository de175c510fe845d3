"""Read-only view of a run directory that follows it: what the screen and `--plain` show."""

from collections import deque
from pathlib import Path
from typing import Any

from launcher.console.lines import LineSplitter
from launcher.metrics.records import StepRecord, parse_object
from launcher.metrics.store import SeriesStore
from launcher.run.directory import AttemptDir, RunDir
from launcher.run.state import derive
from launcher.tail import LineTail, Tail

LOG_LINES = 200  # for the tail of the dashboard; the log screen reads the file itself
_LOG_TAIL = 1 << 16  # bytes before the end at which a console that is there already is taken up
_SAMPLES = 3600


class RunReader:
    """Follows one run. `poll` reads what is new and tells what changed; nothing else touches the disk.

    `state` is state.json with `lost` derived; `series` joins all attempts; `samples` are memory samples;
    `log` holds clean lines of the newest attempt's console.
    """

    def __init__(self, directory: Path) -> None:
        self.dir = RunDir(directory)
        self.id = self.dir.id
        self.info: dict[str, Any] = self.dir.read_info()
        self.name = str(self.info.get("name") or self.id)
        self.state: dict[str, Any] = {}
        self.series = SeriesStore()
        self.events: list[dict[str, Any]] = []
        self.samples: deque[dict[str, Any]] = deque(maxlen=_SAMPLES)
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.log_count = 0  # lines seen, those that fell out of `log` included
        self._events = LineTail(self.dir.events)
        self._memory = LineTail(self.dir.memory)
        self._attempt: AttemptDir | None = None
        self._steps: LineTail | None = None
        self._console: Tail | None = None
        self._splitter = LineSplitter()

    def poll(self) -> set[str]:
        """Reads what is new; which of "state", "steps", "events", "memory", "log" changed."""
        changed = set()
        state = derive(self.dir.read_state())
        told = {key: value for key, value in state.items() if key != "heartbeat"}
        if told != self.state:
            self.state = told
            changed.add("state")
        if self._follow(self._events, self.events):
            changed.add("events")
        if self._follow(self._memory, self.samples):
            changed.add("memory")
        if self._read_steps():
            changed.add("steps")
        if self._read_log():
            changed.add("log")
        return changed

    def _follow(self, tail: LineTail, into: "list[dict[str, Any]] | deque[dict[str, Any]]") -> bool:
        found = False
        while lines := tail.read():
            for line in lines:
                if (value := parse_object(line)) is not None:  # None: a killed writer's half line
                    into.append(value)
                    found = True
        return found

    def _read_steps(self) -> bool:
        found = False
        while True:
            attempt = self._attempt.number if self._attempt else 0
            while self._steps is not None and (lines := self._steps.read()):
                for line in lines:
                    record = StepRecord.from_line(line)
                    if record is not None:
                        self.series.add(record, attempt)
                        found = True
            later = [number for number in self.dir.attempt_numbers() if number > attempt]
            if not later:
                return found
            self._attempt = self.dir.attempt(later[0])
            self._steps = LineTail(self._attempt.steps)
            self._console = None

    def _read_log(self) -> bool:
        if self._attempt is None:
            return False
        if self._console is None:
            size = self._attempt.console.stat().st_size if self._attempt.console.exists() else 0
            self._console = Tail(self._attempt.console, max(0, size - _LOG_TAIL))
            self._splitter = LineSplitter()
        before = self.log_count
        while chunk := self._console.read():
            for line in self._splitter.feed(chunk):
                if not line.text.strip():
                    continue  # blank, or what a progress bar leaves before its carriage return
                self.log.append(f"({line.source}) {line.text}" if line.source else line.text)
                self.log_count += 1
        return self.log_count != before

"""Events of a console log, read as it grows.

Most lines of a log interest nobody here, so they are told by their bytes; only the others are decoded.
"""

import re

from launcher.console.config_dump import ConfigCollector
from launcher.console.events import (
    ConfigDump,
    Event,
    Notable,
    PhaseChange,
    Progress,
    Resumed,
    RolloutCount,
    StepLine,
    TotalSteps,
)
from launcher.console.lines import LONGEST, PREFIX, Piece, PieceSplitter, clean_line
from launcher.console.notable import is_notable
from launcher.console.phases import MARK, PhaseTracker
from launcher.console.steps import Step, complete_step, read_step
from launcher.text import clean

__all__ = ["ConfigDump", "ConsoleReader", "Event", "Notable", "PhaseChange", "Progress", "Resumed",
           "RolloutCount", "StepLine", "TotalSteps"]  # fmt: skip

# Ray's prefix, then the head of a log line as veRL, Ray or vLLM write it, then blanks.
_HEAD = re.compile(
    rb"(?:%b)(?:[A-Z]+:[0-9-]{10} [0-9:,]{12}:|[0-9-]{10} [0-9:,]{12}\t[A-Z]+ \S{1,80} -- "
    rb"|[A-Z]+ [0-9-]{5} [0-9:]{8} \[[^\]\n]{1,80}\] )?[ ]*" % PREFIX.pattern
)
_BAR = re.compile(rb"Training Progress: *[0-9]+%\|[^|]*\| *([0-9]{1,15})/([0-9]{1,15})")
_COUNT = re.compile(
    rb"pending: ([0-9]{1,9}), running: ([0-9]{1,9}), finished: ([0-9]{1,9}), failure: ([0-9]{1,9})"
)
_TOTAL = re.compile(rb"Total training steps: ([0-9]{1,15})")
_RESUMED = re.compile(rb"(?:Resuming from .*, s|S)etting global step to ([0-9]{1,15})")
_CONFIG = b"{'actor_rollout_ref': "


class ConsoleReader:
    """Reads a console log in chunks of any size; the events do not depend on where it is cut."""

    def __init__(self) -> None:
        self._pieces = PieceSplitter()
        self._tracker = PhaseTracker()
        self._total: int | None = None
        self._config: tuple[bytes | None, ConfigCollector] | None = None  # pid of its writer
        self._last_step: tuple[bytes | None, Piece, str, bool] | None = None  # pid, place, text, sound
        self._events: list[Event] = []

    def feed(self, data: bytes) -> list[Event]:
        """The events of the lines that `data` completes."""
        for piece in self._pieces.feed(data):
            self._take(piece, len(piece.raw) == LONGEST)
        return self._taken()

    def close(self) -> list[Event]:
        """The events of a last line without a newline."""
        piece = self._pieces.close()
        if piece:
            self._take(piece, True)
        return self._taken()

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _take(self, piece: Piece, cut: bool) -> None:
        raw = piece.raw
        if not self._tracker.phase:
            self._enter(self._tracker.begin(), piece)
        head = _HEAD.match(raw)
        assert head is not None  # it matches nothing as well
        start, pid = head.end(), head[2]
        if self._last_step and pid == self._last_step[0] and self._completes(raw[start:]):
            return
        if b"Training Progress: " in raw and (bar := _BAR.search(raw)):
            self._events.append(Progress(int(bar[1]), int(bar[2])))
        if (b"step:" in raw or b"[Step " in raw) and self._step(piece, pid, cut):
            return
        if self._config and pid == self._config[0]:
            self._collect(raw[start:])
        if raw.startswith((b"'", b'"'), start):
            return  # the configuration, or printed metrics
        mark = MARK.match(raw, start)
        if mark:
            self._enter(self._tracker.mark(mark), piece)
            self._marked(raw, start, pid)
        elif count := _COUNT.match(raw, start):
            self._events.append(RolloutCount(*map(int, count.groups())))
            self._enter(self._tracker.rollout_count(), piece)
        elif is_notable(raw, start):
            self._events.append(Notable(clean_line(piece)))

    def _step(self, piece: Piece, pid: bytes | None, cut: bool) -> bool:
        text = clean_line(piece).text
        found = read_step(text, cut=cut)
        if found is None:
            return False
        self._last_step = (pid, piece, text, found.sound)
        self._emit_step(piece, found)
        return True

    def _emit_step(self, piece: Piece, found: Step) -> None:
        self._events.append(
            StepLine(found.step, found.data, piece.number, piece.offset, found.three_decimals)
        )
        self._enter(self._tracker.step(self._total is not None and found.step >= self._total), piece)

    def _completes(self, more: bytes) -> bool:
        """Whether a line is the rest of the step line that its writer wrote before."""
        assert self._last_step is not None
        _, piece, text, sound = self._last_step
        self._last_step = None
        if sound and b" - " not in more:
            return False
        whole = complete_step(text, clean(more.decode(errors="replace")))
        if whole is None:
            return False
        self._emit_step(piece, whole)
        return True

    def _marked(self, raw: bytes, start: int, pid: bytes | None) -> None:
        if total := _TOTAL.match(raw, start):
            self._total = int(total[1])
            self._events.append(TotalSteps(self._total))
        elif resumed := _RESUMED.match(raw, start):
            self._events.append(Resumed(int(resumed[1])))
        elif raw.startswith(_CONFIG, start):
            self._config = (pid, ConfigCollector())
            self._collect(raw[start:])

    def _collect(self, text: bytes) -> None:
        assert self._config is not None
        collector = self._config[1]
        keys = collector.add(text)
        if keys is not None:
            self._events.append(ConfigDump(keys))
            self._tracker.validates_first = keys.get("trainer.val_before_train") is not False
        if keys is not None or collector.hopeless:
            self._config = None

    def _enter(self, phase: str | None, piece: Piece) -> None:
        if phase:
            self._events.append(PhaseChange(phase, piece.number, piece.offset))

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
from launcher.console.lines import LONGEST, Piece, PieceSplitter, clean_line
from launcher.console.marks import HEAD, HINTS, MARK, PID, SAMPLE, STAMP, STEP_HINT, name_of, tells_trouble
from launcher.console.phases import PhaseTracker
from launcher.console.steps import Step, complete_step, read_step

__all__ = [
    "ConfigDump",
    "ConsoleReader",
    "Event",
    "Notable",
    "PhaseChange",
    "Progress",
    "Resumed",
    "RolloutCount",
    "StepLine",
    "TotalSteps",
]

_BATCH = 64  # lines that are looked through together


class ConsoleReader:
    """Reads a console log in chunks of any size; the events do not depend on where it is cut."""

    def __init__(self) -> None:
        self._pieces = PieceSplitter()
        self._tracker = PhaseTracker()
        self._total: int | None = None
        self._config: ConfigCollector | None = None
        self._last_step: tuple[bytes | None, Piece, str, bool] | None = None  # pid, place, text, sound
        self._plain: list[Piece] = []  # lines without a mark, not looked through yet
        self._samples: dict[bytes | None, int] = {}  # pid that prints an answer, and its last line at most
        self._events: list[Event] = []

    def feed(self, data: bytes) -> list[Event]:
        """The events of the lines that `data` completes."""
        for piece in self._pieces.feed(data):
            if self._config is not None and self._plain:
                self._look_through()  # a step among them ends the collecting
            if self._config is None or not self._config.add(piece[2]):
                self._take(piece)
            elif piece[2].endswith(b"}"):
                self._read_config(self._config)
        return self._taken()

    def close(self) -> list[Event]:
        """The events of a last line without a newline."""
        piece = self._pieces.close()
        if piece:
            self._take(piece, cut=True)
        return self._taken()

    def _taken(self) -> list[Event]:
        self._look_through()
        events, self._events = self._events, []
        return events

    def _take(self, piece: Piece, *, cut: bool = False) -> None:
        raw = piece[2]
        if not self._tracker.phase:
            self._enter(self._tracker.begin(), piece)
        head = HEAD.match(raw)
        assert head is not None  # it matches nothing as well
        start = head.end()
        if self._last_step and head[PID] == self._last_step[0] and self._completes(piece):
            return
        mark = MARK.match(raw, start)
        if mark is not None:
            self._look_through()  # in the order of the log: marks and steps move the phase
            self._marked(name_of(mark), mark, head, piece, cut)
        elif not raw.startswith((b"'", b'"'), start):  # else the configuration, or printed metrics
            self._plain.append(piece)
            if cut or len(self._plain) >= _BATCH:
                self._look_through(cut=cut)

    def _marked(self, name: str, mark: "re.Match[bytes]", head: "re.Match[bytes]", piece: Piece, cut: bool) -> None:
        if name == "step":
            self._step(piece, cut, head)
            return
        if name == "trouble":
            if not self._in_sample(piece, head) or piece[2].startswith(b"Error executing job"):
                self._events.append(Notable(clean_line(piece)))
            return
        if name == "sample":
            self._samples[head[PID]] = piece[0] + SAMPLE
            return
        if name == "sample-end":
            self._samples.pop(head[PID], None)
            return
        if name == "progress":
            self._events.append(Progress(int(mark["done"]), int(mark["of"])))
            if STEP_HINT in piece[2] and self._step(piece, cut, head):
                return
        elif name == "count":
            self._events.append(
                RolloutCount(*(int(mark[state]) for state in ("pending", "running", "finished", "failed")))
            )
            self._enter(self._tracker.rollout_count(), piece)
            return
        elif name == "total":
            self._total = int(mark["total"])
            self._events.append(TotalSteps(self._total))
        elif name == "resumed":
            self._events.append(Resumed(int(mark["resumed"])))
        elif name == "config-dump":
            self._config = ConfigCollector(piece[2][: head.end()])
            self._config.add(piece[2])
            if piece[2].endswith(b"}"):
                self._read_config(self._config)
        self._enter(self._tracker.mark(name, head[STAMP]), piece)

    def _look_through(self, *, cut: bool = False) -> None:
        """Finds what has no place in the line: errors, and step lines behind what another process wrote."""
        pieces, self._plain = self._plain, []
        if not pieces:
            return
        together = b"\n".join([piece[2] for piece in pieces])
        hints = [hint for hint in HINTS if hint in together]
        if not hints:
            return
        for piece in pieces:
            raw = piece[2]
            if any(map(raw.__contains__, hints)):
                if STEP_HINT in raw and self._step(piece, cut):
                    continue
                if tells_trouble(raw) and not self._in_sample(piece):
                    self._events.append(Notable(clean_line(piece)))

    def _in_sample(self, piece: Piece, head: "re.Match[bytes] | None" = None) -> bool:
        """Whether a line belongs to an answer that veRL prints: a model that writes code writes errors."""
        if not self._samples:
            return False
        head = head or HEAD.match(piece[2])
        return head is not None and piece[0] <= self._samples.get(head[PID], 0)

    def _step(self, piece: Piece, cut: bool, head: "re.Match[bytes] | None" = None) -> bool:
        """Takes a step line; `head` when it starts its line, so that another may hold its rest."""
        text = clean_line(piece).text
        found = read_step(text, cut=cut or len(piece[2]) == LONGEST)
        if found is None:
            return False
        self._emit_step(piece, found)
        if head:
            self._last_step = (head[PID], piece, text, found.sound)
        return True

    def _emit_step(self, piece: Piece, found: Step) -> None:
        self._config = None  # what has not come by now does not come
        self._samples.clear()
        self._events.append(StepLine(found.step, found.data, piece[0], piece[1], found.three_decimals))
        self._enter(self._tracker.step(self._total is not None and found.step >= self._total), piece)

    def _completes(self, rest: Piece) -> bool:
        """Whether a line is the rest of the step line that its writer wrote before."""
        assert self._last_step is not None
        _, piece, text, sound = self._last_step
        self._last_step = None
        if sound and b"- " not in rest[2]:
            return False
        whole = complete_step(text, clean_line(rest).text)
        if whole is None:
            return False
        self._emit_step(piece, whole)
        return True

    def _read_config(self, config: ConfigCollector) -> None:
        """Ends the collecting when the configuration is complete, or none comes."""
        keys = config.read()
        if keys is not None:
            self._events.append(ConfigDump(keys))
            self._tracker.configured(keys)
        if keys is not None or config.hopeless:
            self._config = None

    def _enter(self, phase: str | None, piece: Piece) -> None:
        if phase:
            self._events.append(PhaseChange(phase, piece[0], piece[1]))

"""The evidence for judgements: frames that show what a process waits for, and their words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.record.standstill import Seen
from launcher.runs.watch.stalls import calls, reasons

MOST = 4  # lines of evidence
_SHORT = re.compile(r".*/(?:site|dist)-packages/|.*/lib/python3\.\d+/")


@dataclass(frozen=True)
class Judgement:
    """A reason, the values for its texts, and the evidence."""

    reason: str
    words: Mapping[str, Any]
    evidence: tuple[str, ...]

    @property
    def title(self) -> str:
        return _filled(reasons()[self.reason].title, self.words)

    @property
    def command(self) -> str | None:
        command = reasons()[self.reason].command
        return _filled(command, self.words) if command else None


def _filled(text: str, words: Mapping[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: str(words.get(name[1], "…")), text)


def judged(reason: str, evidence: Sequence[str], **words: Any) -> Judgement:
    return Judgement(reason, words, tuple(dict.fromkeys(each for each in evidence if each))[:MOST])


def short(frame: str) -> str:
    """`torch/distributed/distributed_c10d.py:3012 all_reduce`, without the library's install path."""
    return _SHORT.sub("", frame)


def name(seen: Seen) -> str:
    """`ray::Worker.update`, or the script of a process."""
    words = seen.name.split()
    if words and words[0].startswith("ray::"):
        return words[0]
    scripts = [word for word in words[1:] if not word.startswith("-")]
    return (scripts[0] if scripts else words[0] if words else "?").rpartition("/")[2]


def who(seen: Seen) -> str:
    rank = f", rank {seen.ranks[0]}" if len(seen.ranks) == 2 else ""
    return f"{name(seen)} (pid {seen.pid}{rank})"


def waits_of(seen: Seen, busy: bool) -> Iterator[Sequence[str]]:
    """The frames of each thread and coroutine, innermost first."""
    yield from (stack.frames for stack in seen.stacks if stack.still or not busy)
    yield from (task for task in seen.tasks if not busy)


def first_call(frames: Sequence[str], pattern: str) -> str | None:
    return next((frame for frame in frames if calls()[pattern].search(frame)), None)


def waiting_call(seen: Seen, pattern: str, busy: bool) -> tuple[str, str | None] | None:
    """The call in which a thread or coroutine waits, and the user's frame that led to it."""
    for frames in waits_of(seen, busy):
        if (call := first_call(frames, pattern)) is not None:
            return call, own_frame(frames)
    return None


def own_frame(frames: Sequence[str]) -> str | None:
    """The innermost frame outside of libraries and veRL."""
    return next((frame for frame in frames if not calls()["library"].search(frame)), None)


def activity_of(seen: Seen) -> str:
    """The activity of a process that does not wait for the others."""
    waits = list(waits_of(seen, busy=False))
    own = next((place for frames in waits if (place := own_frame(frames))), None)
    if own is not None:
        return f"is in {own}"
    main = next((stack.frames for stack in seen.stacks[::-1] if stack.frames), None)
    if main is None:
        return f"shows no stack ({seen.source or 'no answer'}; state {seen.state})"
    return f"is in {short(main[0])}"

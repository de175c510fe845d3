"""Selects the parts of a large log to read: its beginning, its end, and errors and steps between them."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

HEAD = TAIL = MIDDLE = 8 << 20  # bytes that are read of each part; parsing takes a second per 15 MB
_BLOCK = 1 << 18
_STEP = b"step:"
_TROUBLE = (b"Traceback (most", b"Error", b"out of memory", b"NCCL", b"SIGTERM", b"signal", b"Killed", b"No space")


class Part(NamedTuple):
    """Consecutive whole lines of a log, either read or only counted."""

    data: bytes
    read: bool


def parts(chunks: Iterable[bytes]) -> Iterator[Part]:
    """Divides a log: HEAD + MIDDLE + TAIL bytes and one line per block are read; at most TAIL bytes are in memory."""
    head, room = HEAD, MIDDLE
    waiting: deque[bytes] = deque()
    held = 0
    for block in _blocks(chunks):
        if head > 0:
            head -= len(block)
            yield Part(block, True)
            continue
        waiting.append(block)
        held += len(block)
        while held > TAIL:
            block = waiting.popleft()
            held -= len(block)
            if room > 0 and any(word in block for word in _TROUBLE):
                room -= len(block)
                yield Part(block, True)
            else:
                yield from _last_step(block)
    yield from (Part(block, True) for block in waiting)


def _last_step(block: bytes) -> Iterator[Part]:
    """Skips a block except for its last step line."""
    at = block.rfind(_STEP)
    begin = block.rfind(b"\n", 0, at) + 1 if at >= 0 else len(block)
    end = block.find(b"\n", at) + 1 if at >= 0 else 0
    parts = (Part(block[:begin], False), Part(block[begin:end], True), Part(block[max(begin, end) :], False))
    yield from (part for part in parts if part.data)


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines in blocks of about 256 KiB; a longer line comes in pieces."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        if len(rest) >= _BLOCK:
            end = rest.rfind(b"\n") + 1 or len(rest)
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest

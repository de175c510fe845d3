"""The gap in the middle of a large console: a hole in a sparse file.

The driver keeps its console open and appends to it, so the file cannot be renamed or truncated. Instead, a hole is
punched into it (Linux, `fallocate(2)`): the beginning, the end and all byte offsets stay, and the hole uses no disk
space. One line in the hole reports it; zero bytes fill it up to the next line.
"""

import os
from pathlib import Path

HEAD = 16 << 20  # bytes kept of the beginning: versions, configuration and the first steps
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h
_LINE = 1 << 16  # bytes searched for the end of a line


def find(fd: int) -> range:
    """The first hole of an open file, whose bytes need not be read; empty without one."""
    try:
        status = os.fstat(fd)
        if status.st_blocks * 512 >= status.st_size:
            return range(0)
        at = os.lseek(fd, 0, os.SEEK_CUR)
        try:
            begin = os.lseek(fd, 0, os.SEEK_HOLE)
            end = os.lseek(fd, begin, os.SEEK_DATA) if begin < status.st_size else begin
        finally:
            os.lseek(fd, at, os.SEEK_SET)
    except (OSError, AttributeError):  # a pipe; a hole at the end; a system without SEEK_HOLE
        return range(0)
    return range(begin, end)


def limit(console: Path, most: int) -> None:
    """Shrinks a console to `most` bytes on disk: keeps its head and its newest `most / 2` bytes.

    Raises OSError if the system or the disk does not support it.
    """
    if console.stat().st_size <= most:
        return
    file = os.open(console, os.O_RDWR | os.O_CLOEXEC)
    try:
        size, gap = os.fstat(file).st_size, find(file)
        if size - len(gap) > most:
            head, tail = min(HEAD, most // 4), size - most // 2
            head = min(head, gap.start) if gap else head
            begin = _line_end(file, max(0, head - _LINE), head, last=True)
            end = _line_end(file, tail, tail + _LINE)
            _punch(file, begin, end - 1)
            removed = f"{(end - begin) / (1 << 20):,.1f} MiB"
            note = f"\nppo-tui: removed {removed} of this log here (max_console_size in config.yaml)"
            os.pwrite(file, note.encode(), begin - 1)
            os.pwrite(file, b"\n", end - 1)
    finally:
        os.close(file)


def _line_end(file: int, begin: int, end: int, *, last: bool = False) -> int:
    """The byte after the first (or last) newline in a range; `end` without one."""
    block = os.pread(file, end - begin, begin)
    newline = block.rfind(b"\n") if last else block.find(b"\n")
    return begin + newline + 1 if newline >= 0 else end


def _punch(file: int, begin: int, end: int) -> None:
    import ctypes

    try:
        fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        raise OSError("this file system does not support hole punching") from None
    span = (ctypes.c_int64(begin), ctypes.c_int64(end - begin))
    if fallocate(file, _KEEP_SIZE | _PUNCH_HOLE, *span):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

"""The gap in the middle of a large console: what was printed there has been given back to the disk.

The driver holds its console open and appends to it, so the file cannot be renamed or cut. A hole is punched into it
instead (Linux, `fallocate(2)`): the beginning, the end and the place of every byte stay, and what is between takes no
room. In the gap stands one line that says so, filled up with zero bytes to where the next line begins.
"""

import os
from pathlib import Path

HEAD = 16 << 20  # bytes that stay at least: versions, configuration and the first steps
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h
_LINE = 1 << 16  # bytes in which the end of a line is looked for


def find(fd: int) -> range:
    """The bytes of an open file that need not be read: its first hole, empty where it has none."""
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
    except (OSError, AttributeError):  # a pipe; a hole at the end; a system that does not tell
        return range(0)
    return range(begin, end)


def limit(console: Path, most: int) -> None:
    """Keeps a console to `most` bytes on the disk: of a larger one the head and the newest half of `most` stay.

    Raises OSError where the system or the disk cannot do that.
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
            said = f"\nppo-tui: {removed} of this log were removed here (console_size in config.yaml)"
            os.pwrite(file, said.encode(), begin - 1)
            os.pwrite(file, b"\n", end - 1)
    finally:
        os.close(file)


def _line_end(file: int, begin: int, end: int, *, last: bool = False) -> int:
    """The byte after the first newline between two bytes, or after the last one; `end` where there is none."""
    block = os.pread(file, end - begin, begin)
    found = block.rfind(b"\n") if last else block.find(b"\n")
    return begin + found + 1 if found >= 0 else end


def _punch(file: int, begin: int, end: int) -> None:
    import ctypes

    try:
        fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        raise OSError("this system cannot punch holes into files") from None
    span = (ctypes.c_int64(begin), ctypes.c_int64(end - begin))
    if fallocate(file, _KEEP_SIZE | _PUNCH_HOLE, *span):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

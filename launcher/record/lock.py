"""Locks between processes, on a folder or on a file of its own; the end of a process releases its locks."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def lock(path: Path) -> int | None:
    """Takes the lock of a folder, or of a file, which is made; it is held until the descriptor is closed.

    None where the file system has no locks. Raises BlockingIOError where another process holds it, OSError.
    """
    how = os.O_RDONLY if path.is_dir() else os.O_CREAT | os.O_RDWR
    descriptor = os.open(path, how | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Holds a lock; False where the file system has none. Raises as `lock` does."""
    held = lock(path)
    try:
        yield held is not None
    finally:
        if held is not None:
            os.close(held)

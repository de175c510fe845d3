"""How a run's end gets onto a disk that may be full.

A checkpoint that does not fit ends veRL and leaves no room for the record of it. So some room is taken when
the run starts and given back for that record.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

_ROOM = 1 << 17  # bytes; exit.json and state.json take a tenth of it
_PAUSE = 1.0  # seconds between two tries


class Reserve:
    """Disk space for writes that must succeed. `gone` tells that nobody can read them any more."""

    def __init__(self, file: Path, gone: Callable[[], bool]) -> None:
        self._file, self._gone = file, gone
        with contextlib.suppress(OSError):
            file.write_bytes(os.urandom(_ROOM))  # no file system makes that smaller

    def retry(self, write: Callable[[], object]) -> None:
        """Calls `write` until it raises no OSError, with the reserved space given back."""
        while not self._gone():
            try:
                write()
                return
            except OSError:
                if not self.release():
                    time.sleep(_PAUSE)

    def release(self) -> bool:
        """Gives the room back; whether there was any."""
        try:
            self._file.unlink()
        except OSError:
            return False
        return True

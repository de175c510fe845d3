"""Keeping two from doing the same to an ended run: resuming it, deleting it."""

import contextlib
import fcntl
from collections.abc import Iterator

from launcher.errors import UserError
from launcher.record.layout import RunDir


@contextlib.contextmanager
def alone(run: RunDir) -> Iterator[None]:
    """Keeps everybody else out of here meanwhile. Raises UserError when somebody is in already."""
    try:
        file = (run.path / ".lock").open("ab")
    except OSError as error:
        raise UserError(f"run {run.id} cannot be changed: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"run {run.id} is just being resumed or deleted by somebody else") from None
        except OSError:  # a file system without locks
            pass
        yield

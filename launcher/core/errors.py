"""Errors that a user causes and reads."""

import errno
import functools
import shlex
from collections.abc import Callable
from pathlib import Path

_HINTS = {
    errno.ENOENT: "check the path",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "'ls -l' shows who may use it"),
    errno.EISDIR: "name a file, not a folder",
    errno.ENOTDIR: "name a folder, not a file",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free disk space: 'ppo-tui clean --dry-run' lists candidates"),
    errno.EROFS: "choose a folder on a writable disk",
    errno.ENAMETOOLONG: "use a shorter name",
}


class UserError(Exception):
    """Wrong use: `message` says what is wrong (value and place); `hint` is one action, or empty.

    The command line prints both on stderr and exits with `exit_code`; a screen shows them in one notice. `place`: where
    the value was given; it begins the message. A hint that takes long to find, such as the nearest of many names, is a
    function, called on demand: of a thousand errors one is printed.
    """

    exit_code = 2

    def __init__(self, what: str, hint: str | Callable[[], str] = "", place: str = "") -> None:
        super().__init__(what, hint, place)
        self.what, self._hint, self.place = what, hint, place

    @functools.cached_property
    def hint(self) -> str:
        """One action, or empty."""
        return self._hint if isinstance(self._hint, str) else self._hint()

    @property
    def message(self) -> str:
        """The place and the error, in one line."""
        return f"{self.place}: {self.what}" if self.place else self.what

    @property
    def without_place(self) -> str:
        """The error without its place, for a reader who has it."""
        return f"{self.what}; {self.hint}" if self.hint else self.what

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def at(self, place: str) -> "UserError":
        """A copy of the error with `place` in front of its own place."""
        return UserError(self.message, self._hint, place)


def of_file(doing: str, error: Exception, hint: str = "") -> UserError:
    """The error of an unreadable or unwritable file: `cannot read FILE`, the system's reason, and an action."""
    reason = getattr(error, "strerror", None) or str(error)
    return UserError(f"{doing}: {reason}", hint or hint_for(error) or "use another file")


def of_writing(path: Path, error: OSError, place: str = "", hint: str = "") -> UserError:
    """The error of an unwritable file or folder; if its folder is missing, with the command that creates it."""
    missing = error.errno == errno.ENOENT and not path.parent.exists()
    made = f"create the folder: mkdir -p {shlex.quote(str(path.parent))}" if missing else ""
    known = "" if error.errno == errno.ENOENT else hint_for(error)  # the path itself is right
    wrong = of_file(f"cannot write {path}", error, hint or made or known or "choose another folder")
    return wrong.at(place) if place else wrong


def hint_for(error: Exception) -> str:
    """The action for a system error; empty if unknown."""
    return _HINTS.get(getattr(error, "errno", None) or 0, "")


class NoStep(UserError):
    """A log has no step, and its form is unknown."""


class NoStepYet(NoStep):
    """A log is empty, or of a known form without a step: it may still get one."""


class SecretValue(UserError):
    """A setting that would store a secret with the run."""

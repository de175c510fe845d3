"""A line of a log that may show why its run ended, and the choice among several."""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from launcher.console.causes import Cause
from launcher.console.tracebacks import Owner, Quote

_THIN = re.compile(r"AssertionError:?$|TypeError: .*'NoneType'|(?:KeyError|IndexError): \S{0,24}$")
_FRAME = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_regex = functools.cache(re.compile)


@dataclass
class ErrorLine:
    """A line that may show why the run ended, with its context."""

    quote: Quote
    message: str
    source: str
    causes: tuple[Cause, ...]
    """Catalog entries with matching text, regardless of their `where`."""
    raised: bool
    """Whether it is a traceback's exception."""
    context: str
    remote_call: Quote | None = None
    frame: Quote | None = None
    """The raising frame: the last one of the highest owner."""
    owner: Owner = Owner.LIBRARY
    config_key: Quote | None = None
    told: Quote | None = None
    """A later line of its message that describes the error, if the first does not."""
    calls: tuple[str, ...] = ()
    """The frames and remote calls before it, innermost last."""
    codes: Mapping[str, str] = field(default_factory=dict)
    """The code line of each frame."""

    @property
    def whole(self) -> str:
        """Its message; if unspecific, such as a bare AssertionError, with the code line."""
        code = self.codes.get(self.calls[-1], "") if self.calls and _THIN.match(self.message) else ""
        return f"{self.message.rstrip(':')}: {code}" if code else self.message

    @property
    def own(self) -> str:
        """The innermost frame of the user's own code: `in reward, train.py line 28`; empty without one."""
        frame = self._own_frame
        return f"in {frame['function']}, {frame['path'].rpartition('/')[2]} line {frame['line']}" if frame else ""

    @property
    def own_call(self) -> str:
        """`own` in the form of `calls`."""
        return f"{frame['path']}:{frame['function']}" if (frame := self._own_frame) else ""

    @property
    def _own_frame(self) -> re.Match[str] | None:
        return _FRAME.search(self.frame.text) if self.frame is not None and self.owner is Owner.USER else None

    @property
    def program(self) -> str:
        """The program file, if the exception left it and so ended the program."""
        first = self.calls[0] if self.calls else ""
        return first if first.endswith((":<module>", ":_run_module_as_main")) else ""

    def fits(self, cause: Cause) -> bool:
        """Whether its context matches the `where` of this cause, and not its `unless`."""
        whole = f"{self.context}\n{self.message}"
        if cause.unless and _regex(cause.unless).search(whole):
            return False
        return not cause.where or _regex(cause.where).search(whole) is not None


Candidate = tuple[Cause, ErrorLine]


def likeliest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The entry closest to the root, with its first line."""
    return min(candidates, key=lambda pair: (pair[0].level, pair[1].quote.line, pair[0].place), default=None)

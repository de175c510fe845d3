"""The traceback that a process is printing: its calls, and the owner of the raising code.

Most tracebacks end in a library. The decisive frame is the last one in the user's own code, such as a reward function;
without one, the last one in veRL.
"""

import re
from collections import deque
from enum import IntEnum
from typing import NamedTuple

LINES = 80  # maximum distance of an exception from its frames, in lines of the process

_FRAME = re.compile(r' +File "([^"]+)", line \d+, in (\S+)')
_REMOTE_CALL = re.compile(r"ray::(\S+?)\(\) \(")
# The last line. Near frames any name of a module or of an error is one; marks.toml has a stricter rule for elsewhere.
_EXCEPTION = re.compile(r"((?:[A-Za-z_]\w*\.)*)([A-Z]\w*)(?:: |:$|\(|$)")
_ERROR_NAME = re.compile(r"Error|Exception|Interrupt|Exit|StopIteration")
_VERL = re.compile(
    r".*/(?=verl/(?:trainer|workers|utils|single_controller|experimental|models|interactions|tools|plugin"
    r"|checkpoint_engine|model_merger|third_party|protocol\.py))"
)
# Python's own folders, this program's plugin, and folders of packages that have no such name (`pip install
# --target`, a checkout), which are known by what lies in them.
_LIBRARY = re.compile(r".*-packages/|.*/lib/python\d|.*/ppo_tui_inside/|<")
_FOLDER = re.compile(
    r"(.*/)(?:ray/_private|hydra/_internal|torch/(?:nn|_\w+|utils|distributed)|transformers/models"
    r"|megatron/(?:core|bridge|training)|mbridge|mcore_bridge|flash_attn|transformer_engine"
    r"|vllm/(?:v1|lora|engine|worker|model_executor)|sglang/srt)/"
)
_EGG = re.compile(r"(?<=-packages/)[^/]+\.egg/")
_FOLDERS = 16  # maximum number of remembered folders


class Owner(IntEnum):
    """The owner of code, in ascending order of use to the user."""

    LIBRARY = 0
    VERL = 1
    USER = 2


class Folders:
    """Finds the owner of a file, and collects the library folders in a log."""

    def __init__(self) -> None:
        self._libraries: tuple[str, ...] = ()

    def owner(self, path: str) -> Owner:
        if _VERL.match(path):
            return Owner.VERL
        folder = _FOLDER.match(path)
        if folder and folder[1] not in self._libraries:
            self._libraries = (*self._libraries, folder[1])[-_FOLDERS:]
        library = not path.startswith("/") or _LIBRARY.match(path) or path.startswith(self._libraries)
        return Owner.LIBRARY if library else Owner.USER


class Quote(NamedTuple):
    """A line of the log (numbered from 1) as evidence."""

    line: int
    text: str


class Traceback:
    """The traceback of one process, as far as printed."""

    def __init__(self) -> None:
        self.calls: deque[str] = deque(maxlen=64)
        """Frames (`verl/trainer/main_ppo.py:run`) and remote calls (`WorkerDict.update_actor`)."""
        self.codes: dict[str, str] = {}
        """The code line of each frame."""
        self.ignored = False
        """Whether Python ignores the exception of the next traceback."""
        self.raised: int | None = None
        """The line of these frames' exception."""
        self.handled = False
        """Whether the next traceback is from code that handled the last exception."""
        self._last_line = -LINES
        self._start(None)

    def _start(self, remote_call: Quote | None) -> None:
        """Starts the frames of this process, or of a remote call that it waited for."""
        self.code = ""
        self.remote_call = remote_call
        self.frame: Quote | None = None
        """The decisive frame."""
        self.owner = Owner.LIBRARY

    def begin(self, number: int, *calls: str) -> None:
        """Starts a traceback at a line, or the line before it."""
        self._last_line, self.raised = number, None
        self.calls.clear()
        self.codes.clear()
        self.calls.extend(calls)
        self._start(None)

    def end(self) -> None:
        self._last_line = -LINES

    def explains(self, number: int) -> bool:
        """Whether the frames belong to an exception at this line: only the first one, or one a line later."""
        return self.raised is None or number - self.raised <= 1

    def includes(self, number: int) -> bool:
        """Whether a line is close enough to belong to it."""
        return number - self._last_line < LINES

    def add_remote_call(self, quote: Quote, method: str) -> None:
        self._last_line, self.raised = quote.line, None
        self.calls.append(method)
        self._start(quote)

    def add_indented(self, number: int, text: str, folders: Folders) -> None:
        """Adds a frame or a line of code."""
        self._last_line, self.raised = number, None
        frame = _FRAME.match(text)
        if frame is None:
            if text.strip(" ^~"):
                self.code = text.strip()[:300]
                if self.calls:
                    self.codes[self.calls[-1]] = self.code
            return
        path, function = frame.groups()
        path = _EGG.sub("", path)
        inside = _VERL.match(path)
        self.calls.append(f"{path[inside.end() :] if inside else path.rpartition('-packages/')[2]}:{function}")
        self.code = ""
        owner = folders.owner(path)
        if owner >= self.owner:
            self.frame, self.owner = Quote(number, text.strip()), owner


def remote_method(text: str) -> str | None:
    """The method in a line with a remote call of Ray: `ray::WorkerDict.update() (pid=1)`."""
    match = _REMOTE_CALL.search(text) if "ray::" in text else None
    return match[1] if match else None


def is_exception(text: str) -> bool:
    """Whether a line after frames is their exception."""
    match = _EXCEPTION.match(text)
    return match is not None and bool(_ERROR_NAME.search(match[2]) or match[1])

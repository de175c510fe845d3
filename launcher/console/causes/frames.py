"""Whose code a frame of a traceback is in, by its file's path.

Most tracebacks end in a library that did as it was told. The frame that says more is the last one in the
user's own code, a reward function above all, or else the last one in veRL.
"""

import re
from enum import IntEnum

_VERL = re.compile(
    r".*/verl/(?:trainer|workers|utils|single_controller|experimental|models|interactions|tools|plugin"
    r"|checkpoint_engine|protocol\.py)"
)
# Python's own folders, this program's plugin, and folders of packages that have no such name (`pip install
# --target`, a checkout), which are known by what lies in them.
_LIBRARY = re.compile(r".*-packages/|.*/lib/python\d|.*/launcher/verl_plugin/|<")
_FOLDER = re.compile(
    r"(.*/)(?:ray/_private|hydra/_internal|torch/(?:nn|_\w+|utils|distributed)|transformers/models"
    r"|vllm/(?:v1|lora|engine|worker|model_executor)|sglang/srt)/"
)
_FOLDERS = 16  # that are remembered


class Owner(IntEnum):
    """Whose code it is; the higher, the more it tells the user."""

    LIBRARY = 0
    VERL = 1
    USER = 2


class Folders:
    """Tells the owner of a file, and learns on the way where a log's libraries lie."""

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

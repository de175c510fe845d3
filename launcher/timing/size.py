"""The sizes of a model that its speed depends on: from its files, or from what veRL printed about it."""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from launcher.core.errors import UserError
from launcher.estimate.models import ModelFacts, facts, table

_COUNT = re.compile(rb"(\w+) contains (\d+\.\d\d)([KMBT]?) parameters")  # veRL's print_model_size
_CRITIC = b"TokenClassification"
_SCALE = {b"": 1.0, b"K": 1e3, b"M": 1e6, b"B": 1e9, b"T": 1e12}
_HEAD = 4 << 20  # bytes of a console in which the models are loaded


@dataclass(frozen=True)
class Size:
    """Parameters, layers, and the widths of all query heads and of all key heads.

    Where only the parameters are known, the others are 0: attention and its cache are left out.
    """

    parameters: int
    layers: int = 0
    query: int = 0
    kv: int = 0

    @classmethod
    def of(cls, model: ModelFacts) -> "Size":
        """Of a model that is known."""
        return cls(model.parameters, model.sizes.layers, model.sizes.query, model.sizes.kv)


def size_of(path: str, console: Path | None) -> Size | None:
    """The model `path` of a run with this console; None where neither has it."""
    with contextlib.suppress(OSError, UserError):
        if found := facts(path):
            return Size.of(found)
    if console is None:
        return None
    with contextlib.suppress(OSError), console.open("rb") as file:
        for name, count, scale in _COUNT.findall(file.read(_HEAD)):
            if _CRITIC not in name:
                return _counted(float(count) * _SCALE[scale], 0.005 * _SCALE[scale])
    return None


def _counted(parameters: float, rounded: float) -> Size:
    """The model of the table that has so many parameters, otherwise no more than their number."""
    for sizes in table().values():
        if abs(sizes.count() - parameters) <= rounded:
            return Size(sizes.count(), sizes.layers, sizes.query, sizes.kv)
    return Size(round(parameters))

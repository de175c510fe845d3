"""The entries of a diagnosis: enter opens the line in the log, or the preset editor at the fix."""

from typing import ClassVar

from textual.binding import BindingType

from tui.kit.keys import KEYS
from tui.kit.widgets.items import Items


class DiagnosisList(Items, inherit_bindings=False):
    """Lines of the log, then fixes."""

    BINDINGS: ClassVar[list[BindingType]] = [*KEYS["diagnosis list"]]

"""Other frameworks and other programs of veRL, recognized by the commands that people paste."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from launcher.core.tables import read_tables, record


@dataclass(frozen=True)
class Framework:
    """`sign` is searched in each line of a text; `about` ends the sentence "this is a command of NAME, ..."."""

    name: str
    sign: str
    about: str
    hint: str = "start from a preset ('ppo-tui presets') and set its fields"


@functools.cache
def _frameworks() -> tuple[Framework, ...]:
    rows = read_tables(Path(__file__).with_suffix(".toml"))["framework"]
    return tuple(record(Framework, row) for row in rows)


def recognized(text: str) -> Framework | None:
    """The framework to which a text's command belongs; None for one that is not known."""
    return next((each for each in _frameworks() if re.search(each.sign, text, re.MULTILINE)), None)

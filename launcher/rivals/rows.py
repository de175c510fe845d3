"""The causes that a symptom can have, as data: the rows of console/rivals.toml and health/rivals.toml.

Of `needs` each clue that holds supports the cause, each that is known not to hold excludes it; `supports` and
`excludes` do one of both. `decides` is what to look at otherwise. A clue is
  KEY                    the setting is on
  A = B, !=, <, >        numbers: settings, metrics, parts of the message, and products of them
  KEY = a|b, KEY ~ REGEX
  KIND: REGEX            what the log, the message or the list of flags has, as each of the two judges
Unknown evidence neither supports nor excludes a cause.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from launcher.core.tables import record
from launcher.record.fix import Fix, fixes_of


@dataclass(frozen=True)
class Row:
    """A cause that a symptom can have. `entry` is a known one (of the catalog, a rule), which then has the texts."""

    id: str = ""
    entry: str = ""
    title: str = ""
    meaning: str = ""
    needs: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    decides: str = ""
    """A look or a short run that shows whether it is this one."""
    fixes: tuple[Fix, ...] = ()

    @property
    def cause(self) -> str:
        """Its id."""
        return self.entry or self.id


R = TypeVar("R", bound=Row)


def row_of(kind: type[R], table: Mapping[str, Any], fixes: Mapping[str, Any]) -> R:
    """Reads a row; `fixes` are the lists that several rows share."""
    return record(kind, table, fixes=tuple(fixes_of(table.get("fixes", ()), fixes)))

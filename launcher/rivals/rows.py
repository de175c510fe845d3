"""The possible causes of a symptom, as data: the rows of console/rivals.toml and health/rivals.toml.

Each clue in `needs` supports the cause if it holds, and excludes it if it does not; `supports` and `excludes` do one of
both. `decides`: what to inspect otherwise. A clue is
  KEY                    the setting is on
  A = B, !=, <, >        numbers: settings, metrics, parts of the message, and products of them
  KEY = a|b, KEY ~ REGEX
  KIND: REGEX            text of the log, message or list of flags, as judged by the two subclasses
Unknown evidence neither supports nor excludes a cause.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from launcher.core.tables import record
from launcher.record.fix import Fix, fixes_of


@dataclass(frozen=True)
class Row:
    """A possible cause of a symptom. `entry`: a known one (of the catalog, a rule), which supplies the texts."""

    id: str = ""
    entry: str = ""
    title: str = ""
    meaning: str = ""
    needs: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    decides: str = ""
    """An inspection or short run that shows whether it is this cause."""
    fixes: tuple[Fix, ...] = ()

    @property
    def cause(self) -> str:
        """Its id."""
        return self.entry or self.id


R = TypeVar("R", bound=Row)


def row_of(kind: type[R], table: Mapping[str, Any], fixes: Mapping[str, Any]) -> R:
    """Reads a row; `fixes`: the lists shared by several rows."""
    return record(kind, table, fixes=tuple(fixes_of(table.get("fixes", ()), fixes)))

"""Reference data as TOML files next to the modules that use them; each is read when it is first needed."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")


def read_tables(path: Path) -> dict[str, Any]:
    """Reads a data file of ppo-tui."""
    if sys.version_info >= (3, 11):  # a late import: 'ppo-tui --help' needs no data
        import tomllib
    else:
        import tomli as tomllib
    tables: dict[str, object] = tomllib.loads(path.read_text("utf-8"))
    return tables


def record(kind: type[Row], table: Mapping[str, Any], **made: Any) -> Row:
    """Makes a dataclass from a table, its lists as tuples; `made` are the fields that are not plain values.

    Raises TypeError for a name that the dataclass does not have.
    """
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
    return kind(**{**plain, **made})

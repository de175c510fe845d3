"""Reference data as TOML files next to the modules that use them, read on first use."""

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


def tables_of(module: str, name: str = "") -> Mapping[str, Any]:
    """Reads the data file of a module's `__file__`: the file with its name, or `name` next to it."""
    path = Path(module)
    return read_tables(path.with_name(name) if name else path.with_suffix(".toml"))


def record(kind: type[Row], table: Mapping[str, Any], **made: Any) -> Row:
    """Makes a dataclass from a table, with tuples for lists; `made`: fields that are not plain values.

    Raises TypeError for a name that the dataclass lacks.
    """
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
    return kind(**{**plain, **made})

"""The value that veRL will see, for a preset that is being edited: what is set, else veRL's default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launcher.preset import versions
from launcher.preset.defaults import NEWEST, default_of
from launcher.preset.field_values import Where
from launcher.preset.schema import FIELDS


class Effective:
    """Answers for veRL keys as the newest version calls them; `values` are those that are set."""

    def __init__(self, values: Mapping[Where, Any], version: str = NEWEST) -> None:
        self._version = version
        self._keys: dict[str, Any] = {}
        for spec in FIELDS.values():
            value = values.get(spec.path)
            if value is None and spec.follows:
                value = values.get(FIELDS[spec.follows].path)
            if value is None:
                value = spec.default
            if spec.key and value is not None:
                self._keys[spec.key] = spec.names.get(value, value) if isinstance(value, str) else value
        self._keys |= {where[1]: value for where, value in values.items() if where[0] == "overrides"}

    def __call__(self, key: str) -> Any:
        """The value of a veRL key, None where nothing is known."""
        if key in self._keys:
            return self._keys[key]
        return default_of(versions.newest(key), self._version, keys=self._keys)

    def whole(self, key: str, otherwise: int = 1) -> int:
        """The value where it is a whole number above 0, else `otherwise`."""
        value = self(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else otherwise

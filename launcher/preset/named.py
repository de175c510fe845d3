"""Settings named in a text."""

import re
from collections.abc import Iterator

from launcher.core.errors import UserError
from launcher.preset.layers import ROOTS
from launcher.preset.schema import FIELDS, GROUPS
from launcher.verl import versions
from launcher.verl.defaults import NEWEST, life

_NAME = re.compile(r"(?<![\w./-])([a-z_]+(?:\.\w+)+)(?![\w./(]*[/(])(\s?=)?")
_FIRST = frozenset((*ROOTS, *GROUPS))
_PARTS = 3  # minimum parts of a name that counts as a setting without an assignment


def settings_in(text: str, version: str = NEWEST) -> Iterator[tuple[str, str | None]]:
    """Each name in the form of a veRL key or preset field, with its veRL key: None if this veRL lacks it, empty for a
    field of ppo-tui only.
    """
    for name, assigned in _NAME.findall(text):
        if name in FIELDS:
            yield name, FIELDS[name].key
        elif name.partition(".")[0] in _FIRST and (assigned or name.count(".") + 1 >= _PARTS):
            yield name, _key(name, version)


def _key(name: str, version: str) -> str | None:
    key = versions.newest(name)
    try:
        return key if life(versions.at(key, version))[0] else None
    except UserError:
        return None

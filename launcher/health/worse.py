"""Directions of settings that worsen a flag (worse.toml); no advice may move a setting in such a direction."""

import functools

from launcher.core.tables import tables_of


@functools.cache
def worse() -> dict[str, dict[str, int]]:
    """Rule -> veRL key -> 1 if a higher value is worse, -1 if a lower one is."""
    found: dict[str, dict[str, int]] = {}
    for row in tables_of(__file__, "worse.toml")["rows"]:
        keys = dict.fromkeys(row.get("up", ()), 1) | dict.fromkeys(row.get("down", ()), -1)
        for rule in row["rules"]:
            found.setdefault(rule, {}).update(keys)
    return found


def worsens(rule: str, key: str, before: object, now: object) -> bool:
    """Whether changing a veRL key from `before` to `now` worsens a rule."""
    side = worse().get(rule, {}).get(key, 0)
    numbers = isinstance(before, int | float) and isinstance(now, int | float)
    return bool(side) and numbers and (now - before) * side > 0  # type: ignore[operator]

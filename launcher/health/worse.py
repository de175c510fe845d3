"""Directions of settings that make the trouble of a flag worse (worse.toml); no advice moves a setting so."""

import functools

from launcher.core.tables import tables_of


@functools.cache
def worse() -> dict[str, dict[str, int]]:
    """Rule -> veRL key -> 1 where a higher value is worse, -1 where a lower one is."""
    found: dict[str, dict[str, int]] = {}
    for row in tables_of(__file__, "worse.toml")["rows"]:
        keys = dict.fromkeys(row.get("up", ()), 1) | dict.fromkeys(row.get("down", ()), -1)
        for rule in row["rules"]:
            found.setdefault(rule, {}).update(keys)
    return found


def worsens(rule: str, key: str, before: object, now: object) -> bool:
    """Whether moving a veRL key from one value to another makes the trouble of a rule worse."""
    side = worse().get(rule, {}).get(key, 0)
    numbers = isinstance(before, int | float) and isinstance(now, int | float)
    return bool(side) and numbers and (now - before) * side > 0  # type: ignore[operator]

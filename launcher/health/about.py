"""Which rules are about a metric, and which of their limits hold for a whole run."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from launcher.health.config import RunConfig
from launcher.health.rules import ALL
from launcher.health.rules.base import Setup
from launcher.health.settings import read
from launcher.record.levels import Bound


@cache
def rules_about(key: str) -> frozenset[str]:
    """The ids of the rules that cannot judge without this metric."""
    return frozenset(rule.id for rule in ALL if any(key in group for group in rule.needs))


def lasting_bounds(
    config: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
) -> dict[str, list[Bound]]:
    """By metric, the limits that do not depend on the steps of a run: those its rules have before the first.

    `config` holds veRL keys, flattened; `settings` is what the preset has under `health:`. Raises UserError
    when that is wrong. A limit of 0 is left out: on a chart that is the axis.
    """
    limits = read(settings)
    found: dict[str, list[Bound]] = {}
    for kind in ALL:
        rule = kind(Setup(RunConfig(config), limits[kind.id]))
        if not kind.on_chart or not limits[kind.id].enabled or rule.not_applicable() is not None:
            continue
        bounds = [bound for bound in rule.lasting() if bound.value and math.isfinite(bound.value)]
        for key in kind.needs[0]:
            found.setdefault(key, []).extend(bounds)
    return found

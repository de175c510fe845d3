"""Steps of a run in, the level of one health rule out."""

from collections.abc import Iterable, Mapping
from typing import Any

from launcher.health.checklist import Checklist
from launcher.record.check import Check
from launcher.record.levels import Level

BASE = {"actor/pg_loss": 0.01}
TOKENS = 50_000.0


def row(checklist: Checklist, rule: str) -> Check:
    return next(found for found in checklist.checks() if found.rule == rule)


def levels(
    rule: str,
    steps: Iterable[Mapping[str, float]],
    config: Mapping[str, Any] | None = None,
    *,
    three_decimals: bool = False,
    **options: Any,
) -> list[Level]:
    """The level of a rule after each step."""
    checklist = Checklist(config, clock=False, **options)
    found = []
    for number, data in enumerate(steps, start=1):
        checklist.step(number, {**BASE, **data}, three_decimals=three_decimals)
        found.append(row(checklist, rule).level)
    return found


def of(key: str, values: Iterable[float]) -> list[dict[str, float]]:
    return [{key: value} for value in values]


def score(values: Iterable[float], high: float = 1.0, low: float = 0.0) -> list[dict[str, float]]:
    return [{"critic/score/mean": x, "critic/score/max": high, "critic/score/min": low} for x in values]

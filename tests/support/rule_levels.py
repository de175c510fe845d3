"""The row of one health rule."""

from launcher.health.checklist import Checklist
from launcher.record.check import Check

BASE = {"actor/pg_loss": 0.01}


def row(checklist: Checklist, rule: str) -> Check:
    return next(found for found in checklist.checks() if found.rule == rule)

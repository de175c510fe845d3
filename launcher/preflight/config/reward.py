"""How answers are scored, as far as the configuration decides it; P30 of verl.md."""

from __future__ import annotations

from launcher.preflight.config.base import Findings, unknown_name
from launcher.preflight.subject import Subject

MANAGER, SOURCE = "reward.reward_manager.name", "reward.reward_manager.source"


def manager(subject: Subject) -> Findings:
    """P30: the reward manager has a known name; one of one's own comes with a file."""
    if subject.value(SOURCE, "register") == "register":
        yield from unknown_name(
            subject,
            "P30",
            MANAGER,
            subject.facts.names.get("managers", []),
            "a reward manager",
            "dies of it after the models were loaded",
        )


RULES = (manager,)

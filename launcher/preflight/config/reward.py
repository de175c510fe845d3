"""How answers are scored, as far as the configuration decides it; P30 of verl.md."""

from __future__ import annotations

from launcher.preflight.config.base import Findings, error, unknown_name
from launcher.preflight.subject import Subject

MANAGER, SOURCE = "reward.reward_manager.name", "reward.reward_manager.source"
MODEL = "reward.reward_model"


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


def model(subject: Subject) -> Findings:
    """REWARD-1: a reward model that is switched on has a path."""
    if subject.value(f"{MODEL}.enable") is True and not subject.value(f"{MODEL}.model_path"):
        yield error(
            "REWARD-1",
            [f"{MODEL}.enable", f"{MODEL}.model_path"],
            "the reward model is on and has no path",
            f"set {MODEL}.model_path, or {MODEL}.enable to false",
        )


RULES = (manager, model)

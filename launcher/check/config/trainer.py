"""The course of the run: P21, and contradicting settings.

veRL: `verl/utils/tracking.py: Tracking`.
"""

from launcher.check.config.base import Findings, error, of_registry, warning
from launcher.check.subject import Subject
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.core.text import did_you_mean
from launcher.verl.config import DATA, TRAINER

LOGGER = f"{TRAINER}.logger"
STEPS, WARMUP = f"{TRAINER}.total_training_steps", f"{TRAINER}.critic_warmup"


@of_registry
def loggers(subject: Subject) -> Findings:
    """P21: trackers have known names; veRL fails only after loading the models and the engine."""
    known, value = subject.facts.names.get("loggers", []), subject.get(LOGGER)
    ours = sorted(set(known) - {"console", "file"})
    for name in [value] if isinstance(value, str) else value or []:
        if not known or name in known or name == "tracking":
            continue
        parts = [part.strip(" '\"") for part in str(name).strip("[]").split(",")]
        wanted = [part for part in parts if part not in ("console", "file")]
        if len(parts) > 1 and all(part in known for part in parts):
            message = (
                f"veRL reads {str(name)!r} as one name, which is not a tracker: it fails after everything is loaded"
            )
            fix = f"use a list: trainer.loggers=[{','.join(wanted)}]"
            yield error("P21", message, fix, [LOGGER], {"trainer.loggers": wanted})
        else:
            message = (
                f"'{name}' is not a tracker{did_you_mean(str(name), known)}: veRL fails after everything is loaded"
            )
            yield error("P21", message, f"set trainer.loggers to any of {', '.join(ours)}", [LOGGER])


def warmup(subject: Subject) -> Findings:
    """COURSE-1: the critic's warm-up ends before the run does."""
    steps, first = subject.whole(STEPS), subject.whole(WARMUP)
    if steps is not None and first is not None and subject.has_critic and first >= steps:
        message = (
            f"the actor is never trained: the critic's warm-up takes {counted(first, 'step')}, and the run has {steps}"
        )
        yield warning("COURSE-1", message, f"set {WARMUP} to 0", [WARMUP, STEPS], {"trainer.critic_warmup": 0})


def enough_samples(subject: Subject) -> Findings:
    """P6: a limit on the rows leaves at least one batch."""
    batch, limit = subject.whole(f"{DATA}.train_batch_size"), subject.whole(f"{DATA}.train_max_samples")
    if batch is not None and limit is not None and limit < batch:
        message = f"{counted(limit, 'row')} for a batch of {batch} (data.train_max_samples): veRL fails after start-up"
        fix = f"set data.train_max_samples to -1, or set data.train_batch_size to {limit} or less"
        change = {"data.train_max_samples": -1}
        yield error("P6", message, fix, [f"{DATA}.train_max_samples", f"{DATA}.train_batch_size"], change)


def thresholds(subject: Subject) -> Findings:
    """HEALTH-1: each key of `health` is a rule, a limit or an alert of ppo-tui; otherwise no run starts."""
    from launcher.health.settings import REMOVED, check_health

    settings = subject.loaded.preset.health
    for name in filter(settings.get, REMOVED):
        yield warning("HEALTH-1", f"health.{name} no longer has an effect", "delete it", [f"health.{name}"])
    try:
        check_health(settings)
    except UserError as wrong:
        yield error("HEALTH-1", wrong.message, wrong.hint or "correct it, or remove it", ["health"])


RULES = (loggers, warmup, enough_samples, thresholds)

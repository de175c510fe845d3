"""The course of the run: P21, and contradicting settings. veRL: `verl/utils/tracking.py: Tracking`."""

from launcher.check.config.base import Findings, of_registry
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.core.errors import UserError
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
            yield found("P21.list", name=name, wanted=wanted)
        else:
            yield found("P21.unknown", name=name, near=did_you_mean(str(name), known), ours=ours)


def warmup(subject: Subject) -> Findings:
    """COURSE-1: the critic's warm-up ends before the run does."""
    steps, first = subject.whole(STEPS), subject.whole(WARMUP)
    if steps is not None and first is not None and subject.has_critic and first >= steps:
        yield found("COURSE-1", first=first, steps=steps)


def enough_samples(subject: Subject) -> Findings:
    """P6: a limit on the rows leaves at least one batch."""
    batch, limit = subject.whole(f"{DATA}.train_batch_size"), subject.whole(f"{DATA}.train_max_samples")
    if batch is not None and limit is not None and limit < batch:
        yield found("P6.limit", limit=limit, batch=batch)


def thresholds(subject: Subject) -> Findings:
    """HEALTH-1: each key of `health` is a rule, a limit or an alert of ppo-tui; otherwise no run starts."""
    from launcher.health.settings import REMOVED, check_health

    settings = subject.loaded.preset.health
    for name in filter(settings.get, REMOVED):
        yield found("HEALTH-1.removed", name=name)
    try:
        check_health(settings)
    except UserError as wrong:
        yield found("HEALTH-1.wrong", message=wrong.message, fix=wrong.hint or "correct it, or remove it")


RULES = (loggers, warmup, enough_samples, thresholds)

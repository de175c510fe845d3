"""The course of the run: P21 of verl.md, and settings that contradict each other."""

from __future__ import annotations

from launcher.errors import UserError
from launcher.preflight.config.base import DATA, TRAINER, Findings, error, has_critic, warning, whole
from launcher.preflight.subject import Subject
from launcher.text import did_you_mean

LOGGER = f"{TRAINER}.logger"
STEPS, WARMUP = f"{TRAINER}.total_training_steps", f"{TRAINER}.critic_warmup"


def loggers(subject: Subject) -> Findings:
    """P21: trackers have known names; veRL finds out after the models and the engine were loaded."""
    known, value = subject.facts.names.get("loggers", []), subject.value(LOGGER)
    ours = sorted(set(known) - {"console", "file"})
    for name in [value] if isinstance(value, str) else value or []:
        if not known or name in known or name == "tracking":
            continue
        parts = [part.strip(" '\"") for part in str(name).strip("[]").split(",")]
        wanted = [part for part in parts if part not in ("console", "file")]
        if len(parts) > 1 and all(part in known for part in parts):
            yield error(
                "P21",
                [LOGGER],
                f"{str(name)!r} is one name to veRL and no tracker: it finds out after everything was loaded",
                f"write a list: trainer.loggers=[{','.join(wanted)}]",
                {"trainer.loggers": wanted},
            )
        else:
            yield error(
                "P21",
                [LOGGER],
                f"'{name}' is not a tracker{did_you_mean(str(name), known)}: veRL finds out "
                "after everything was loaded",
                f"trainer.loggers takes {', '.join(ours)}",
            )


def warmup(subject: Subject) -> Findings:
    """COURSE-1: the critic's warm-up ends before the run does."""
    steps, first = whole(subject, STEPS), whole(subject, WARMUP)
    if steps is not None and first is not None and has_critic(subject) and first >= steps:
        yield warning(
            "COURSE-1",
            [WARMUP, STEPS],
            f"the actor is not trained at all: {first} steps of warm-up in {steps} steps",
            f"set {WARMUP} to 0",
            {"trainer.critic_warmup": 0},
        )


def enough_samples(subject: Subject) -> Findings:
    """P6: a limit on the rows leaves at least one batch."""
    batch, limit = whole(subject, f"{DATA}.train_batch_size"), whole(subject, f"{DATA}.train_max_samples")
    if batch is not None and limit is not None and limit < batch:
        yield error(
            "P6",
            [f"{DATA}.train_max_samples", f"{DATA}.train_batch_size"],
            f"only {limit} rows are used, and a batch has {batch}: veRL dies of it after start-up",
            f"set data.train_max_samples to -1, or data.train_batch_size to {limit} or less",
            {"data.train_max_samples": -1},
        )


def thresholds(subject: Subject) -> Findings:
    """HEALTH-1: what `health` sets is a rule, a limit or an alert of ppo-tui's; no run starts otherwise."""
    from launcher.run.health import check_health

    try:
        check_health(subject.loaded.preset.health)
    except UserError as wrong:
        yield error("HEALTH-1", ["health"], str(wrong), "correct it, or leave it out")


RULES = (loggers, warmup, enough_samples, thresholds)

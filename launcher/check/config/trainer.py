"""The schedule of a run: P21, contradicting settings, and learning rates that are too low for most of it."""

from launcher.check.config.base import Findings, of_registry
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.core.errors import UserError
from launcher.core.format import counted, number
from launcher.core.text import did_you_mean
from launcher.preset.flow import flow
from launcher.preset.schedule import Schedule
from launcher.verl.config import ACTOR, CRITIC, DATA, TRAINER
from launcher.verl.usual import usual_of

LOGGER = f"{TRAINER}.logger"
STEPS, WARMUP = f"{TRAINER}.total_training_steps", f"{TRAINER}.critic_warmup"
_MOST = 0.5  # share of the steps


@of_registry
def loggers(subject: Subject) -> Findings:
    """P21: known trackers; veRL fails after the model and engine load. veRL: `verl/utils/tracking.py: Tracking`."""
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
    """HEALTH-1: each key of `health` is a rule, limit or alert of ppo-tui; otherwise no run starts."""
    from launcher.health.settings import REMOVED
    from launcher.preset.alerting import check_health

    settings = subject.loaded.preset.health
    for name in filter(settings.get, REMOVED):
        yield found("HEALTH-1.removed", name=name)
    try:
        check_health(settings)
    except UserError as wrong:
        yield found("HEALTH-1.wrong", message=wrong.message, fix=wrong.hint or "correct it, or remove it")


def schedules(subject: Subject, rows: int | None = None) -> Findings:
    """VALUE-12: each learning rate reaches its usual range and stays there for most of the run.

    `rows` of the training files determine the steps if the preset does not.
    """
    course = flow(subject, rows)
    for block, each in ((ACTOR, course.actor_rate), (CRITIC, course.critic_rate)):
        if each is not None and each.steps and each.peak:
            yield from _judged(subject, f"{block}.optim", each)


def _judged(subject: Subject, optim: str, course: Schedule) -> Findings:
    lr, ratio, steps = f"{optim}.lr", f"{optim}.lr_warmup_steps_ratio", f"{optim}.lr_warmup_steps"
    rates, share = list(course.rates), course.warmup / course.steps
    if share > _MOST:
        warmup, usual = subject.whole(steps), usual_of(subject, ratio)
        if (warmup or share > 1) and usual:  # otherwise the rule of the ratio covers it
            what = f"{steps} is {warmup}" if warmup else f"{ratio} makes {counted(course.warmup, 'step')} of warm-up"
            then = f"{lr} reaches only {number(max(rates))} of {number(course.peak)}"
            then = then if share > 1 else f"the warm-up takes {100 * share:.0f} % of them"
            fewer = max(1, round(usual.usual[1] * course.steps))
            yield found(
                "VALUE-12.warmup",
                what=what,
                steps=course.steps,
                then=then,
                most=100 * usual.usual[1],
                fewer=fewer,
                key=steps,
                keys=[steps if warmup else ratio, STEPS],
            )
        return
    range_ = usual_of(subject, lr)
    below = sum(rate < range_.low for rate in rates) / len(rates) if range_ else 0.0
    if range_ and below > _MOST and range_.allows(course.peak):
        least = f"{optim}.min_lr_ratio"
        yield found(
            "VALUE-12.low",
            lr=lr,
            peak=number(course.peak),
            last=number(rates[-1]),
            share=100 * below,
            low=number(range_.low),
            words=range_.words,
            least=least,
        )


RULES = (loggers, warmup, enough_samples, thresholds, schedules)

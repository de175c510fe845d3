"""VALUE-12: learning rates that are too low for most of a run, computed to its end."""

from launcher.check.config.base import Findings
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.core.format import counted, number
from launcher.preset.flow import flow
from launcher.preset.schedule import Schedule
from launcher.preset.usual import usual_of
from launcher.verl.config import ACTOR, CRITIC

STEPS = "trainer.total_training_steps"
_MOST = 0.5  # of the steps


def schedules(subject: Subject, rows: int | None = None) -> Findings:
    """VALUE-12: each learning rate reaches its usual range and stays there for most of the run.

    `rows` of the training files give the steps where the preset does not.
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
        if (warmup or share > 1) and usual:  # else the rule of the ratio finds it
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


RULES = (schedules,)

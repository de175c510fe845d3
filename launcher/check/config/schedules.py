"""VALUE-12: learning rates that are too low for most of a run, computed to its end."""

from launcher.check.config.base import Findings, warning
from launcher.check.subject import Subject
from launcher.core.format import counted, number
from launcher.preset.flow import flow
from launcher.preset.schedule import Schedule
from launcher.preset.schema import BY_KEY
from launcher.preset.usual import usual_of
from launcher.verl.config import ACTOR, CRITIC

STEPS = "trainer.total_training_steps"
_MOST = 0.5  # of the steps


def schedules(subject: Subject, rows: int | None = None) -> Findings:
    """VALUE-12: each learning rate reaches its usual range and stays there for most of the run.

    `rows` of the training files give the steps where the preset does not.
    """
    course = flow(subject, rows)
    for block, found in ((ACTOR, course.actor_rate), (CRITIC, course.critic_rate)):
        if found is not None and found.steps and found.peak:
            yield from _judged(subject, f"{block}.optim", found)


def _judged(subject: Subject, optim: str, found: Schedule) -> Findings:
    lr, ratio, steps = f"{optim}.lr", f"{optim}.lr_warmup_steps_ratio", f"{optim}.lr_warmup_steps"
    rates, share = list(found.rates), found.warmup / found.steps
    if share > _MOST:
        warmup, usual = subject.whole(steps), usual_of(subject, ratio)
        if (warmup or share > 1) and usual:  # else the rule of the ratio finds it
            what = f"{steps} is {warmup}" if warmup else f"{ratio} makes {counted(found.warmup, 'step')} of warm-up"
            then = f"{lr} reaches only {number(max(rates))} of {number(found.peak)}"
            then = then if share > 1 else f"the warm-up takes {100 * share:.0f} % of them"
            message = (
                f"{what}, and its schedule has {counted(found.steps, 'step')}: {then} "
                f"(usual: a warm-up of at most {100 * usual.usual[1]:.0f} %)"
            )
            fewer = max(1, round(usual.usual[1] * found.steps))
            change = {BY_KEY[steps].name: fewer}
            yield warning("VALUE-12", message, f"set {steps} to {fewer}", [steps if warmup else ratio, STEPS], change)
        return
    range_ = usual_of(subject, lr)
    below = sum(rate < range_.low for rate in rates) / len(rates) if range_ else 0.0
    if range_ and below > _MOST and range_.allows(found.peak):
        least = f"{optim}.min_lr_ratio"
        message = (
            f"{lr} falls from {number(found.peak)} to {number(rates[-1])}: for {100 * below:.0f} % of the run it is "
            f"below {number(range_.low)} (usual: {range_.words}), and almost nothing is learned"
        )
        yield warning("VALUE-12", message, f"raise {lr}, or set {least} to 0.1", [lr, least, STEPS])


RULES = (schedules,)

"""Ends that are no failures: a run that finished, was stopped, still runs, or stands still."""

from launcher.console.causes import CATALOGUE
from launcher.console.diagnosis import Diagnosis, shorten
from launcher.console.evidence import Candidate, Evidence, likeliest
from launcher.console.tracebacks import Quote

RAY_CPUS = next(cause for cause in CATALOGUE if cause.id == "ray-cpus")


def finished(log: Evidence) -> Diagnosis:
    """The driver ended by itself without an error, which is not always what was planned."""
    title, meaning, fixes = "Finished", "The run reached its last step.", []
    if log.step is not None and log.total is not None and log.step < log.total:
        title = f"Ended at step {log.step} of {log.total}: the epochs were over"
        meaning = "trainer.total_training_steps is more than the epochs hold; veRL ends without a last validation."
        fixes = ["trainer.total_epochs ↑"]
    elif log.step is None and log.progress is not None:
        title = "Nothing was left to do"
        meaning = "The checkpoint it resumed from is already at the last step."
        fixes = ["trainer.total_epochs ↑ (or trainer.total_training_steps) to train on"]
    if log.failed_prompts:
        meaning += f" {log.failed_prompts} prompts were dropped because an exception was raised for them."
        fixes.append("`ppo-tui reward test FILE` finds what the reward function cannot read")
    shown = next(filter(None, map(log.quote, ("final", "step", "progress", "last"))), None)
    return Diagnosis("finished", title, meaning, shorten([shown, log.quote("prompt_error")]), tuple(fixes))


def stopped(log: Evidence, shown: Quote | None) -> Diagnosis:
    """Somebody asked it to end; `shown` is the line that says so. What had gone wrong before is named too."""
    fixes: list[str] = []
    reached = f"after step {log.step}" if log.step else "before its first step"  # 0: validated only
    meaning = f"It was asked to end {reached}."
    quotes = [shown]
    waits = waiting(log)
    if waits is not None and not log.step:
        quotes.append(waits)
        meaning += " The start-up stood where Ray waits for CPUs: it may have been stalled."
        fixes.append(f"if it stood there for minutes, it was stalled: {RAY_CPUS.fixes[0]}")
    hangs = hung(log)
    if hangs is not None:
        cause, error = hangs
        quotes.append(error.quote)
        meaning += f" It stood still before that: {cause.title[0].lower()}{cause.title[1:]}."
        fixes.extend(cause.fixes)
    if log.failed_prompts and not log.step:
        quotes.append(log.quote("prompt_error"))
        meaning += f" {log.failed_prompts} prompts had failed and no step was done."
        fixes.append("`ppo-tui reward test FILE`: a reward function that always raises never lets a step end")
    if (nan := log.quote("nan")) is not None:
        quotes.append(nan)
        meaning += " Its gradients were not finite."
        fixes.append("resume from a checkpoint before the first nan, with a lower actor_rollout_ref.actor.optim.lr")
    return Diagnosis("stopped", "Stopped", meaning, shorten(quotes), (*fixes, _resuming(log)))


def lost(log: Evidence) -> Diagnosis:
    """Neither the driver nor its supervisor lives, and neither wrote why."""
    return Diagnosis(
        "unknown",
        "The run and its supervisor ended without a word",
        "Both were killed at once: the machine restarted, or a container or a batch job ended.",
        shorten([log.quote("last")]),
        (_resuming(log), "look for a restart (`last reboot`) and for what the kernel killed (`dmesg | tail`)"),
    )


def _resuming(log: Evidence) -> str:
    place = f"from {log.saved}" if log.saved else "from its newest checkpoint; without one it can only be run anew"
    return f"`ppo-tui resume RUN` continues {place}"


def running(log: Evidence, alive: bool | None) -> Diagnosis:
    """The log shows no end."""
    shown = log.quote("step") or log.quote("last")
    if alive:
        return Diagnosis("running", "Still running", "The driver lives.", shorten([shown]))
    meaning = "The log ends in the middle of the run: it still runs, or was cut off."
    return Diagnosis("running", "The log does not show an end", meaning, shorten([shown]))


def complete(log: Evidence) -> bool:
    """Whether the last step was reached."""
    if log.quote("final") is not None or (log.total is not None and (log.step or 0) >= log.total):
        return True
    return log.progress is not None and log.progress[0] == log.progress[1]


def waiting(log: Evidence) -> Quote | None:
    """Where the start-up stands when it is a place at which Ray waits for CPUs without saying so."""
    if log.ready or log.quote("group_created"):
        return None
    if RAY_CPUS.id in log.errors:
        return log.errors[RAY_CPUS.id][1].quote
    return log.quote("worker_groups") or (None if log.quote("dataset") else log.quote("config_ends"))


def hung(log: Evidence) -> Candidate | None:
    """What a run stands still of since its last step."""
    step = log.quote("step")
    return likeliest(
        pair for pair in log.errors.values() if pair[0].hangs and (step is None or pair[1].quote.line > step.line)
    )

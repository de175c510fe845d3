"""Ends that are no failures: a run that finished, was stopped, still runs, or stands still."""

import re

from launcher.console.causes import CATALOGUE
from launcher.console.causes.scan import Scan
from launcher.console.causes.sighting import Found, Quote, best
from launcher.console.diagnosis import Diagnosis, evidence

RAY_CPUS = next(cause for cause in CATALOGUE if cause.id == "ray-cpus")


def finished(scan: Scan) -> Diagnosis:
    """The driver ended by itself without an error, which is not always what was planned."""
    title, meaning, fixes = "Finished", "The run reached its last step.", []
    if scan.step is not None and scan.total is not None and scan.step < scan.total:
        title = f"Ended at step {scan.step} of {scan.total}: the epochs were over"
        meaning = "trainer.total_training_steps is more than the epochs hold; veRL ends without a last validation."
        fixes = ["trainer.total_epochs ↑"]
    elif scan.step is None and "bar" in scan.marks:
        title = "Nothing was left to do"
        meaning = "The checkpoint it resumed from is already at the last step."
        fixes = ["trainer.total_epochs ↑ (or trainer.total_training_steps) to train on"]
    if scan.failed_prompts:
        meaning += f" {scan.failed_prompts} prompts were dropped because an exception was raised for them."
        fixes.append("`ppo-tui reward test FILE` finds what the reward function cannot read")
    marks = scan.marks
    shown = marks.get("final") or marks.get("step") or marks.get("bar") or marks.get("last")
    return Diagnosis("finished", title, meaning, evidence([shown, marks.get("prompt")]), tuple(fixes))


def stopped(scan: Scan, shown: Quote | None) -> Diagnosis:
    """Somebody asked it to end; `shown` is the line that says so. What had gone wrong before is told, too."""
    fixes: list[str] = []
    reached = f"after step {scan.step}" if scan.step else "before its first step"  # 0: validated only
    meaning = f"It was asked to end {reached}."
    quotes = [shown]
    stands = waiting(scan)
    if stands is not None and not scan.step:
        quotes.append(stands)
        meaning += " The start-up stood where Ray waits for CPUs: it may have been stalled."
        fixes.append(f"if it stood there for minutes, it was stalled: {RAY_CPUS.fixes[0]}")
    hangs = hung(scan)
    if hangs is not None:
        cause, sighting = hangs
        quotes.append(sighting.quote)
        meaning += f" It stood still before that: {cause.title[0].lower()}{cause.title[1:]}."
        fixes.extend(cause.fixes)
    if scan.failed_prompts and not scan.step:
        quotes.append(scan.marks["prompt"])
        meaning += f" {scan.failed_prompts} prompts had failed and no step was done."
        fixes.append("`ppo-tui reward test FILE`: a reward function that always raises never lets a step end")
    if "nan" in scan.marks:
        quotes.append(scan.marks["nan"])
        meaning += " Its gradients were not finite."
        fixes.append("resume from a checkpoint before the first nan, with a lower actor_rollout_ref.actor.optim.lr")
    return Diagnosis("stopped", "Stopped", meaning, evidence(quotes), (*fixes, _resuming(scan)))


def lost(scan: Scan) -> Diagnosis:
    """Neither the driver nor its supervisor lives, and neither wrote why."""
    return Diagnosis(
        "unknown",
        "The run and its supervisor ended without a word",
        "Both were killed at once: the machine restarted, or a container or a batch job ended.",
        evidence([scan.marks.get("last")]),
        (_resuming(scan), "look for a restart (`last reboot`) and for what the kernel killed (`dmesg | tail`)"),
    )


def _resuming(scan: Scan) -> str:
    saved = scan.marks.get("saved")
    place = f"from {saved.text}" if saved else "from its newest checkpoint; without one it can only be run anew"
    return f"`ppo-tui resume RUN` continues {place}"


def running(scan: Scan, alive: bool | None) -> Diagnosis:
    """The log shows no end."""
    shown = scan.marks.get("step") or scan.marks.get("last")
    if alive:
        return Diagnosis("running", "Still running", "The driver lives.", evidence([shown]))
    meaning = "The log ends in the middle of the run: it still runs, or was cut off."
    return Diagnosis("running", "The log does not show an end", meaning, evidence([shown]))


def complete(scan: Scan) -> bool:
    """Whether the last step was reached."""
    if "final" in scan.marks or (scan.total is not None and (scan.step or 0) >= scan.total):
        return True
    bar = re.search(r"(\d+)/(\d+) \[", scan.marks["bar"].text) if "bar" in scan.marks else None
    return bar is not None and bar[1] == bar[2]


def waiting(scan: Scan) -> Quote | None:
    """Where the start-up stands when it is a place at which Ray waits for CPUs without saying so."""
    if scan.ready or "created" in scan.marks:
        return None
    if "ray-cpus" in scan.seen:
        return scan.seen["ray-cpus"][1].quote
    if "groups" in scan.marks:
        return scan.marks["groups"]
    return scan.marks.get("dumped") if "data" not in scan.marks else None


def hung(scan: Scan) -> Found | None:
    """What a run stands still of since its last step."""
    step = scan.marks.get("step")
    return best(
        pair for pair in scan.seen.values() if pair[0].hangs and (step is None or pair[1].quote.line > step.line)
    )

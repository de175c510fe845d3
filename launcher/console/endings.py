"""Diagnoses without a failure: a run that finished, was stopped, still runs, or hangs."""

import re
from collections.abc import Iterator
from dataclasses import replace

from launcher.console.causes import Cause, cause_of
from launcher.console.diagnosis import UNKNOWN, Diagnosis, shorten
from launcher.console.entry import of_entry
from launcher.console.error_line import Candidate, likeliest
from launcher.console.evidence import Evidence
from launcher.console.machine_end import KILLED, full_disk, proven
from launcher.console.tracebacks import Quote
from launcher.core.format import counted
from launcher.record.fix import Change, Fix

MORE_EPOCHS = Change("trainer.total_epochs", "raise")
ENGINE = re.compile(r"vLLM|SGLang|EngineCore|Scheduler")
_LAST = 40  # last lines in which an exception may explain a log's end
WORKERS = re.compile(r"TaskRunner|AgentLoop|RewardLoop|WorkerDict")


def finished(log: Evidence) -> Diagnosis:
    """The driver ended without an error, perhaps before the planned end."""
    title, meaning, fixes = "Finished", "The run reached its last step.", list[Fix]()
    if log.over:
        title = f"Finished after {log.numbering.place(log.step or 0)}"
        meaning = "The log has the line that ends training, and no step after it."
    elif log.step is not None and log.total is not None and log.step < log.total:
        title = f"Finished early at {log.numbering.place(log.step)} of {log.total}: the last epoch ended"
        meaning = "The epochs have fewer steps than trainer.total_training_steps; veRL ends without a final validation."
        fixes = [Fix(changes=(MORE_EPOCHS,))]
    elif log.only_validates:
        title, meaning = "Finished: validated only", "trainer.val_only=True ends a run after one validation."
        fixes = [Fix(changes=(Change("trainer.val_only", "set", ("False",)),), why="to train")]
    elif log.step is None and (log.progress is not None or log.resumed is not None):
        title = "Already complete"
        meaning = "The checkpoint that the run resumed from is already at the last step."
        fixes = [Fix(changes=(MORE_EPOCHS,), why="(or trainer.total_training_steps) to continue training")]
        if log.resumed is not None and log.resumed < (log.total or 0):
            title = f"Finished without training: resumed at step {log.resumed} of {log.total}"
            meaning = "No batches were left: the loader state in the checkpoint (data.pt) is at the end of an epoch."
            again = Fix("remove data.pt from the checkpoint", why=", so that this epoch restarts")
            fixes = [Fix(changes=(MORE_EPOCHS,)), replace(again, alternative=True)]
    if log.failed_prompts:
        meaning += f" veRL dropped {counted(log.failed_prompts, 'prompt')} whose score raised an exception."
        fixes.append(Fix("run `ppo-tui check --reward FILE` to find responses on which the reward function fails"))
    shown = next(filter(None, map(log.quote, ("final", "step", "validated_first", "progress"))), None)
    if shown is not None and shown == log.quote("final"):  # its metrics continue in the next lines
        shown = Quote(shown.line, shown.text.partition(": ")[0].strip("(\"'"))
    return Diagnosis("finished", title, meaning, shorten([shown, log.quote("prompt_error")]), tuple(fixes))


def stopped(log: Evidence, shown: Quote | None) -> Diagnosis:
    """A user or program stopped the run; `shown`: the line that shows it. Adds earlier errors."""
    fixes: list[Fix] = []
    reached = f"after {log.numbering.place(log.step)}" if log.step else "before its first step"  # 0: validated only
    meaning = f"The run was stopped {reached}."
    quotes = [shown]
    waits = waiting(log)
    if waits is not None and not log.step:
        quotes.append(waits[1])
        meaning += f" Startup got no further than: {waits[0].title}. It may hang."
        fixes.append(replace(waits[0].fixes[0], when="if the start-up takes minutes at this point again"))
    hangs = hung(log)
    if hangs is not None:
        cause, error = hangs
        quotes.append(error.quote)
        meaning += f" The run hung before that: {cause.title[0].lower()}{cause.title[1:]}."
        fixes.extend(of_entry(log, cause, [error.quote], error.message, error).fixes)
    if log.failed_prompts and not log.step:
        quotes.append(log.quote("prompt_error"))
        meaning += f" {counted(log.failed_prompts, 'prompt').capitalize()} failed before the first step ended."
        why = ": with a reward function that always raises, no step ever ends"
        fixes.append(Fix("run `ppo-tui check --reward FILE`", why=why))
    if (repeated := log.facts.repeated) is not None:
        first, count = repeated
        quotes.insert(0, first)
        meaning += f" Until then an error was printed {count}×: {first.text[:120]}"
        fixes.append(Fix("find the cause of this error", why="before you continue the run"))
    if (nan := log.quote("nan")) is not None:
        quotes.append(nan)
        meaning += " Its gradients were not finite."
        lower = Change("actor_rollout_ref.actor.optim.lr", "lower")
        fixes.append(Fix("resume from a checkpoint before the first NaN", (lower,)))
    return Diagnosis("stopped", "Stopped", meaning, shorten(quotes), (*fixes, _resuming(log)))


def vanished(log: Evidence) -> Diagnosis:
    """A supervisor saw the end of its adopted driver, but neither exit code nor log shows the reason."""
    reason = full_disk(None, log.machine)
    if reason is not None:
        return of_entry(log, reason, [log.quote("last")])
    found = of_entry(log, proven(cause_of(KILLED), log.machine), [log.quote("last")])
    return replace(
        found,
        title="The driver vanished under its supervisor: probably killed (SIGKILL); exit code unknown",
        meaning="Only its parent could have read the exit code, but that supervisor had been killed. "
        f"Probably, {found.meaning[0].lower()}{found.meaning[1:]}",
        confidence="likely",
    )


def lost(log: Evidence) -> Diagnosis:
    """Neither the supervisor nor the log shows how the driver ended."""
    return Diagnosis(
        UNKNOWN,
        "Run and supervisor ended without a message",
        "The driver and its supervisor were killed: the machine restarted, or a container or a batch job ended.",
        shorten([log.quote("last")]),
        (_resuming(log), Fix("check for a restart (`last reboot`) and for killed processes (`dmesg | tail`)")),
        confidence="unknown",
        lost=True,
    )


def _resuming(log: Evidence) -> Fix:
    place = log.saved or "its newest checkpoint"
    return Fix("continue with `ppo-tui resume RUN`", why=f"from {place}", fits="steps left")


def running(log: Evidence, alive: bool | None) -> Diagnosis:
    """The log shows no end."""
    shown = log.quote("step")
    if alive:
        return Diagnosis("running", "Still running", "The driver is running.", shorten([shown]))
    meaning = "The log ends in the middle of the run: the run continues or hangs, or the log is truncated."
    quotes = [shown or log.quote("last")]
    if log.step is not None:
        of = f" of {log.total}" if log.total else ""
        meaning += f" {log.numbering.place(log.step + 1).capitalize()}{of} was never printed."
    elif log.ready:
        meaning += f" No step was printed{f' after step {log.resumed}, where it resumed' if log.resumed else ''}."
    meaning += _validation(log)
    title = "Log stops mid-run"
    if (repeated := log.facts.lasting) is not None:
        quotes.insert(0, repeated[0])
        title += f": an error was printed {repeated[1]}×: {repeated[0].text[:80]}"
        meaning += f" An error was printed {repeated[1]}×: {repeated[0].text[:120]}."
    named, last = log.facts.named, log.quote("last")
    if named is not None and (last is None or last.line - named.line <= _LAST):
        quotes.insert(0, Quote(named.line, named.text))
        meaning += " Its last lines name an exception."
    for quote, text in _engine(log):
        quotes.append(quote)
        meaning += text
    if (retried := log.facts.retried) is not None:
        quotes.append(Quote(retried.line, retried.text))
        meaning += " A client repeats a request: the service, such as a verifier or a tool, does not answer."
    looking = tuple(_looking(log))
    return Diagnosis("running", title, meaning, shorten(quotes), looking, confidence="unknown")


def _engine(log: Evidence) -> Iterator[tuple[Quote, str]]:
    """The state of the engine and the prompts, by their last lines."""
    if log.facts.engine is None:
        return
    quote, active, queued = log.facts.engine
    if active or queued:
        yield quote, f" The engine still runs {counted(active, 'request')} and has {queued} waiting: it is generating."
    elif (left := _unfinished(log)) is not None:
        prompts = counted(left[1], "prompt")
        yield quote, f" The engine has no request, and {prompts} are unfinished: check the reward and the tools."
        yield left[0], ""
    else:
        yield quote, " The engine has no requests: it waits for the trainer, the reward or a tool."


def _validation(log: Evidence) -> str:
    """Whether the log has the validation of the missing step, as far as its lines and settings show it."""
    if log.quote("validate") is not None:
        lacks = "scores were not printed" if log.quote("validation_generated") else "responses were not complete"
        return f" A validation began; its {lacks}."
    first, settings = log.quote("validated_first") is not None, log.facts.settings
    if log.step is None:
        told = log.ready and settings.get("trainer.val_before_train") != "False"
        return f" The first validation was {'' if first else 'not '}printed." if told else ""
    every = settings.get("trainer.test_freq", "")
    if not every.isdecimal() or not int(every):
        return " The run has no validation." if every else ""
    validates = (log.step + 1) % int(every) == 0 or log.step + 1 == log.total
    return f" That step {'ends with a' if validates else 'has no'} validation (trainer.test_freq={every})."


def _unfinished(log: Evidence) -> tuple[Quote, int] | None:
    """The last line since the last step with unfinished prompts, and their number."""
    counts = log.quote("rollout_count")
    running = re.search(r"running: (\d+)", counts.text) if counts is not None else None
    return (counts, int(running[1])) if counts is not None and running is not None and int(running[1]) else None


def _looking(log: Evidence) -> Iterator[Fix]:
    """The processes whose stacks to inspect, one per kind; none for an engine without requests."""
    idle = log.facts.engine is not None and not any(log.facts.engine[1:])
    first: dict[str, int] = {}
    for pid, source in log.processes.items():
        if pid > 0 and source and not (idle and ENGINE.search(source)):
            first.setdefault(source, pid)
    for source, pid in sorted(first.items(), key=lambda item: WORKERS.match(item[0]) is None)[:4]:
        node = log.nodes.get(pid)
        yield Fix(f"if it hangs: py-spy dump --pid {pid}", why=f"({source}{f' on {node}' if node else ''})")


def unended(log: Evidence) -> Diagnosis:
    """The log of another framework shows no error; its endings are unknown."""
    meaning = "The log has no error, and no line that marks the end of the run."
    if log.step is not None:
        of = f" of {log.total}" if log.total else ""
        meaning += f" Its last {log.numbering.unit} is {log.numbering.step(log.step)}{of}."
    look = Fix(
        "check the exit code where the run was started, and look for killed processes (`dmesg | tail`)",
        when="if the run has ended",
    )
    return Diagnosis("running", "No error in the log", meaning, fixes=(look,))


def without_signal(log: Evidence, ended: Diagnosis) -> Diagnosis:
    """Adds that every response got the same reward."""
    if (reward := log.facts.only_reward) is None:
        return ended
    meaning = f"{ended.meaning} Every response got the reward {reward:g}."
    title = ended.title
    if ended.cause == "running" and (repeated := log.facts.lasting) is not None:
        title = f"Every response got the reward {reward:g}, and an error is printed: {repeated[0].text[:80]}"
    prompt = Fix("read a prompt as the model gets it (chat template?), and try rows: `ppo-tui check --reward FILE`")
    quotes = shorten([*ended.evidence, log.quote("step")])
    return replace(
        ended, title=title, meaning=meaning, evidence=quotes, fixes=(prompt, *ended.fixes), confidence="likely"
    )


def complete(log: Evidence, settled: bool | None = None) -> bool:
    """Whether the last step was reached, by the log or by `settled`."""
    if log.over or (log.only_validates and log.quote("validated_first") is not None):
        return True
    if log.step is None and log.resumed is not None and (log.resumed == log.total or log.quote("closed") is not None):
        return True
    if log.quote("final") is not None:
        return True
    if settled is not None:
        return settled
    if log.total is not None and (log.step or 0) >= log.total:
        return True
    return log.progress is not None and log.progress[0] == log.progress[1]


def waiting(log: Evidence) -> tuple[Cause, Quote] | None:
    """The resource that Ray's start-up waits for, with the line that shows it."""
    if log.ready:
        return None
    waits = likeliest(pair for pair in log.errors.values() if pair[0].waits)
    if waits is not None:
        return waits[0], waits[1].quote
    if log.quote("group_created"):
        return None
    place = log.quote("worker_groups") or (None if log.quote("dataset") else log.quote("config_ends"))
    return None if place is None else (cause_of("ray-cpus"), place)


def hung(log: Evidence) -> Candidate | None:
    """The cause of the error after the last step, if such errors make a run hang; otherwise None."""
    step = log.quote("step")
    return likeliest(
        pair for pair in log.errors.values() if pair[0].hangs and (step is None or pair[1].quote.line > step.line)
    )

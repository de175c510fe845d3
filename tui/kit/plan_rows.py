"""A preset in short: rows about its model, batch, length and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from launcher.core.format import SHORT_ID, counted, duration, gib, number, roughly
from launcher.core.text import clean
from tui.kit.drawing.rows import Row, labelled

if TYPE_CHECKING:
    from launcher.check.subject import Subject
    from launcher.estimate.memory import Estimate
    from launcher.preset.flow import Flow
    from launcher.runs.watch.pace import Pace

_NAME = 8  # cells of a row's label


def essentials(what: Subject, batches: Flow, estimate: Estimate | None, pace: Pace | None) -> list[Row]:
    """Model and machine, batch, length, time and memory of the run: one line each."""
    model = clean(str(what.get("actor_rollout_ref.model.path")))
    rank = what.get("actor_rollout_ref.model.lora_rank", 0)
    where = "CPU" if what.on_cpu else counted(batches.gpus, "GPU")
    algorithm = "PPO" if batches.critic else str(what.get("algorithm.adv_estimator", "")).upper()
    about = [algorithm, *([f"LoRA {rank}"] if rank else []), where, f"veRL {what.version}", model]
    prompts, responses = (what.get(f"data.max_{part}_length") for part in ("prompt", "response"))
    responses_each = f" x {counted(batches.n, 'response')}" if batches.n > 1 else ""
    updates = counted(batches.actor.steps, "update")
    batch = (
        f"{counted(batches.prompts, 'prompt')}{responses_each} per step, {updates} of {batches.actor.mini}; "
        f"prompt {prompts}, response {responses} tokens"
    )
    rows = {
        "trains": " · ".join(about),
        "batch": batch,
        "length": _length(batches, what),
        "time": _time(batches.steps, pace),
        "memory": "unknown until the model can be read" if estimate is None else _memory(estimate),
    }
    return [[(f"{name:<{_NAME}}", "dim"), (text, "text")] for name, text in rows.items()]


def laid(row: Row, columns: int) -> list[Row]:
    """Wraps a row of `essentials` to lines of at most `columns` cells."""
    *label, (text, role) = row
    name: Row = [(f" {word.strip()}", role) for word, role in label]
    return labelled(name, text, role, 1 + _NAME if name else 1, columns)


def _length(batches: Flow, what: Subject) -> str:
    epochs = counted(batches.epochs, "epoch")
    length = epochs if batches.steps is None else f"{counted(batches.steps, 'step')} (at most {epochs})"
    parts = [length]
    for key, word in (("trainer.save_freq", "checkpoint"), ("trainer.test_freq", "validation")):
        every = what.get(key)
        if isinstance(every, int) and every > 0:
            parts.append(f"{word} every {counted(every, 'step')}")
    return "; ".join(parts)


def _time(steps: int | None, pace: Pace | None) -> str:
    """`about 3m 10s: 45s to start, 60 steps of 2.4 s; as in run 7f3a`."""
    if pace is None:
        return "unknown: first run of this preset here"
    source = f"as in run {clean(pace.run[:SHORT_ID])}" + ("" if pace.same else ", which had other settings")
    parts = f"{duration(pace.startup)} to start, {{}} of {number(pace.step)} s; {source}"
    if steps is None:
        return f"unknown without the data: {parts.format('steps')}"
    return f"about {roughly(pace.whole(steps))}: {parts.format(counted(steps, 'step'))}"


def _memory(estimate: Estimate) -> str:
    host = f"host {_range(estimate.host, estimate.host_high)} GiB"
    worst = estimate.worst
    if worst is None:
        return host
    of = f" of {gib(estimate.gpu_total)}" if estimate.gpu_total else ""
    return f"GPU {_range(worst.gpu, worst.gpu_high)}{of} GiB at peak ({worst.name}); {host}"


def _range(low: int, high: int) -> str:
    return gib(low) if gib(low) == gib(high) else f"{gib(low)} to {gib(high)}"

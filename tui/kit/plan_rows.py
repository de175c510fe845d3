"""A preset in short: rows about its model, batch, length and memory, and its memory drawn per phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from launcher.core.format import SHORT_ID, counted, duration, gib, number, range_bar, roughly
from launcher.core.text import clean
from tui.kit.drawing.glyphs import AXIS, CRITICAL, DOT, FILL, FILL_REST, OK, WARN
from tui.kit.drawing.rows import Row, crop, labelled, put

if TYPE_CHECKING:
    from launcher.check.subject import Subject
    from launcher.estimate.memory import Estimate
    from launcher.preset.flow import Flow
    from launcher.runs.watch.pace import Pace

_NAME = 8  # cells of a row's label
_PHASE, _FIGURES, _WIDEST = 20, 16, 110  # columns of a phase's name, of its gibibytes, and of its row at most


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


def memory_rows(memory: Mapping[str, Any] | None, machine: str, columns: int) -> list[Row]:
    """The memory of each phase on one GPU, and on the host. `memory`: as of `Estimate.as_json`."""
    if memory is None:
        return [[(" model size unknown", "dim")]]
    host = f"host {gib(memory.get('host'))} to {gib(memory.get('host_high'))} GiB"
    head: list[Row] = [crop([(f" {clean(machine)}", "dim")], columns)] if machine else []
    drawn = phase_rows(memory.get("phases") or [], memory.get("gpu_total"), columns)
    if not drawn:
        return [*head, [(f" {host}", "dim")]]
    *phases, legend = drawn
    return [*head, *phases, crop([*legend, (f" {DOT} {host}", "dim")], columns)]


def phase_rows(phases: Sequence[Mapping[str, Any]], usable: int | None, columns: int) -> list[Row]:
    """A bar per phase, with a line at the usable memory of a GPU, and the legend; none without phases."""
    most = max([usable or 0, *(phase["gpu_high"] for phase in phases)], default=0)
    room = min(columns, _WIDEST)
    cells, rows = room - _PHASE - _FIGURES - 4, list[Row]()
    for phase in phases:
        certain, high = phase["gpu"], phase["gpu_high"]
        sign, role = (OK, "ok") if usable else (" ", "text")
        if usable and high > usable:
            sign, role = (CRITICAL, "critical") if certain > usable else (WARN, "warn")
        row: Row = [(f" {sign} ", role), (clean(str(phase["name"])), "text")]
        if cells >= 6 and most:
            within, beyond = range_bar(certain, high, usable or most, most, cells)
            limit = AXIS if usable else ""
            row = put(row, _PHASE + 1, [(within, "bar"), (limit, "dim"), (beyond, role)])
        figures = f"{gib(certain)} to {gib(high)}"
        rows.append(put(row, room - _FIGURES, [(figures, role if role != "ok" else "text")]))
    of = f" of {gib(usable)} usable" if usable else ""
    legend = f" {FILL} certain {FILL_REST} likely {DOT} GiB{of} per GPU"
    return [*rows, crop([(legend, "dim")], columns)] if rows else []

"""The drawn plan of a preset: the flow of a batch, and the differences."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from launcher.core.format import counted, number
from launcher.core.text import clean
from launcher.preset.flow import Flow, Updates
from launcher.preset.schedule import Schedule
from launcher.preset.yaml_text import shown
from tui.kit.drawing.glyphs import CRITICAL, FILL, NOTICE, OK, WARN
from tui.kit.drawing.rows import Row, crop, labelled, put, width

_LABEL = 11  # column behind the label of a line
_CHANGE = 40  # column of old and new values


def flow_rows(flow: Flow, columns: int, *, read: bool = True) -> list[Row]:
    """The batch from prompts to optimizer steps, then the whole run; `read`: its files were read."""
    bar = max(4, min(24, columns - 46))
    rows = [
        _line(
            "batch",
            _cut(bar, 1),
            f"{counted(flow.prompts, 'prompt')} × {counted(flow.n, 'response')} = {_n(flow.responses)}",
        ),
        *_ahead(flow),
        *_update_rows("actor", flow.actor, flow, bar),
    ]
    if flow.critic == flow.actor:
        rows.append(_line("critic", "", "same as the actor"))
    elif flow.critic is not None:
        rows += _update_rows("critic", flow.critic, flow, bar)
    if flow.padding:
        rows.append(_said(WARN, "warn", f"the last mini-batch has {counted(flow.padding, 'padding response')}"))
    if flow.actor.per_gpu % 1:
        rows.append(
            _said(CRITICAL, "critical", f"a mini-batch does not divide evenly across {counted(flow.ranks, 'GPU')}")
        )
    return [line for row in [*rows, *_course(flow, read)] for line in _lines(row, columns)]


def _lines(row: Row, columns: int) -> list[Row]:
    """A row with its text wrapped."""
    if width(row) <= columns:
        return [row]
    *label, gap, (text, role) = row
    return [crop(line, columns) for line in labelled(label, text, role, width([*label, gap]), columns + 1)]


def _ahead(flow: Flow) -> list[Row]:
    """For asynchronous trainers: the source of responses, and their maximum age."""
    if flow.mode == "sync":
        return []
    own = f"{counted(flow.engine_gpus, 'GPU')} of the engine" if flow.engine_gpus else "the same GPUs"
    old = "" if flow.oldest is None else f", at most {counted(flow.oldest, 'weight version')} old"
    batches = counted(flow.ahead, "batch", "g")
    rows = [_line("rollout", "", f"on {own}, {batches} ahead{old}")]
    if flow.portion != flow.prompts:
        rows.append(_line("", "", f"training takes {counted(flow.portion, 'prompt')} at a time, as they finish"))
    return rows


def _update_rows(model: str, updates: Updates, flow: Flow, bar: int) -> list[Row]:
    passes = "" if updates.epochs == 1 else f", {counted(updates.epochs, 'time')}"
    rows = [
        _line(
            model,
            _cut(bar, updates.mini_batches),
            f"{counted(updates.mini_batches, 'mini-batch')} of {counted(updates.mini, 'prompt')}{passes}",
        )
    ]
    on = f"on {'its GPU' if flow.ranks == 1 else f'each of {flow.ranks} GPUs'}"
    if updates.tokens:
        size = f"of up to {_n(updates.tokens)} tokens"
    elif updates.micro:
        size = f"of {counted(updates.micro, 'response')}"
    else:
        return rows
    part = bar // updates.mini_batches or 1
    count = updates.micro_batches or 1
    rows.append(_line("", _cut(part, count), f"{counted(count, 'micro-batch')} {size} {on}"))
    rows.append(_line("", "", f"= {counted(updates.steps, 'optimizer step')} per step"))
    return rows


def _course(flow: Flow, read: bool) -> list[Row]:
    """The run: steps, updates, validations, checkpoints."""
    rows: list[Row] = []
    if flow.rows is None or flow.steps_an_epoch is None:
        why = (
            "the training file cannot be read; the steps depend on its rows" if read else "reading the training file …"
        )
        rows.append(_line("epoch", "", why))
    else:
        left = f", {_n(flow.unused_rows or 0)} unused" if flow.unused_rows else ""
        rows.append(
            _line(
                "epoch",
                "",
                f"{counted(flow.rows, 'row')} / {_n(flow.prompts)} = {counted(flow.steps_an_epoch, 'step')}{left}",
            )
        )
    if flow.steps is not None:
        ends = (
            counted(flow.epochs, "epoch")
            if flow.early
            or (flow.rows is not None and flow.steps_an_epoch and (flow.steps == flow.steps_an_epoch * flow.epochs))
            else "trainer.steps"
        )
        rows.append(
            _line(
                "run", "", f"{counted(flow.steps, 'step')} ({ends}), {counted(flow.actor_updates or 0, 'actor update')}"
            )
        )
        kept = f", the last {flow.kept} kept" if flow.kept != flow.checkpoints else ""
        many = "no checkpoints" if not flow.checkpoints else f"{counted(flow.checkpoints, 'checkpoint')}{kept}"
        rows.append(_line("", "", f"{counted(flow.validations or 0, 'validation')}, {many}"))
    for label, rate in (("actor lr", flow.actor_rate), ("critic lr", flow.critic_rate)):
        if rate is not None and rate.changes:
            rows.append(_line(label, "", _rate(rate)))
    if flow.steps == 0:
        rows.append(_said(CRITICAL, "critical", "fewer rows than one step requires; veRL fails"))
    if flow.early:
        rows.append(_said(WARN, "warn", "the epochs end before trainer.steps; no final validation or checkpoint"))
    return rows


def _rate(rate: Schedule) -> str:
    """The schedule of a learning rate: `up to 1e-6 in 10 steps, then a cosine to 1e-8`."""
    up = f"up to {number(rate.peak)} in {counted(rate.warmup, 'step')}" if rate.warmup else number(rate.peak)
    last = rate.rate(max(0, rate.steps - 1))
    if rate.warmup >= rate.steps:
        return f"{up}, but the run ends at {number(last)}"
    return f"{up}, then {f'a cosine to {number(last)}' if rate.cosine else 'constant'}"


def _line(label: str, bar: str, text: str) -> Row:
    row: Row = [(f" {label}", "dim")]
    row = put(row, _LABEL, [(bar, "bar")], least=0) if bar else row
    return put(row, _LABEL, [(text, "text")], least=1)


def _said(sign: str, role: str, text: str) -> Row:
    return put([(" ", "dim")], _LABEL, [(f"{sign} {text}", role)])


def _cut(width: int, parts: int) -> str:
    """A bar cut into `parts` parts, or as many as are visible."""
    parts = max(1, min(parts, (width + 1) // 2))
    size, rest = divmod(width - (parts - 1), parts)
    return " ".join(FILL * (size + (index < rest)) for index in range(parts))


def difference_rows(found: Sequence[tuple[str, Any, Any]], against: str, columns: int) -> list[Row]:
    """Each differing setting: its name, old and new value."""
    if not found:
        return [[(f" {OK} ", "ok"), (f"same as {against}", "dim")]]
    rows: list[Row] = [[(f" compared with {clean(against)}", "dim")]]
    for name, then, now in found:
        row: Row = [(f" {NOTICE} ", "notice"), (clean(name), "text")]
        change = f"{clean(shown(then))} to {clean(shown(now))}"
        if _CHANGE + len(change) <= columns and len(name) + 4 < _CHANGE:
            rows.append(put(row, _CHANGE, [(change, "dim")]))
        else:
            rows.append(crop(row, columns))
            folded = wrap(change, max(columns - 6, 8))
            rows += [crop([(f"     {line}", "dim")], columns) for line in folded]
    return rows


def _n(number: float) -> str:
    return f"{number:,.0f}"

"""Tunes a preset: short runs with maximum response length, and a new preset with the fastest settings that fit.

Each probe is a normal run with a tag, and its run directory is the result: an interrupted `tune` continues without
repeating probes.
"""

import hashlib
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from launcher.check.finding import Settings
from launcher.check.subject import subject
from launcher.core.errors import UserError
from launcher.core.files import make_folder, write_atomic
from launcher.core.format import gib
from launcher.estimate.tuning import Measured, Point, Space, best_of
from launcher.metrics.names import THROUGHPUT
from launcher.preset.files import LoadedPreset, restore
from launcher.preset.schema import FIELDS
from launcher.preset.yaml_text import put, text_of
from launcher.record.layout import RunDir, all_runs
from launcher.record.note import read_note
from launcher.record.state import current
from launcher.runs.act.start import Narrate, Plan, start
from launcher.runs.act.stop import stop
from launcher.runs.watch.peak_memory import peak_memory
from launcher.runs.watch.run_diagnosis import diagnosis
from launcher.runs.watch.steps import steps
from launcher.verl import hydra

PROBES, STEPS = 6, 3
POLL = 1.0
COURSE: Settings = {
    "rollout.ignore_eos": True,
    "trainer.save_every": -1,
    "trainer.validate_every": -1,
    "trainer.validate_first": False,
    "trainer.loggers": [],
}
"""Settings of every probe: maximum response length, and only training steps."""
_TOO_MUCH = ("gpu-oom", "host-oom", "host-memory", "engine-wake-up-oom", "nccl-gpu-memory", "kv-cache", "sglang-memory")
_TOO_MUCH_ENGINE = ("engine-free-memory", "sglang-pool")
_LENGTH = "response_length/mean"


@dataclass(frozen=True)
class Tuned:
    """All probes in order, the best one, its changes, and the file of the new preset."""

    probes: tuple[Measured, ...]
    best: Measured
    change: Settings
    path: Path


def tune(
    loaded: LoadedPreset, path: Path, narrate: Narrate, *, most: int = PROBES, count: int = STEPS, force: bool = False
) -> Tuned:
    """Probes a preset and writes the best settings as a new one. Interrupting it stops the running probe. Raises
    UserError if a probe fails for a reason other than memory, or if none fits.
    """
    space = Space(subject(loaded))
    tag = _tag(loaded, space, count)
    before = {run.read_info().overrides: run for run in reversed(all_runs()) if tag in read_note(run.note).tags}
    quiet = {name: value for name, value in loaded.snapshot().items() if name not in ("health", "sweep")}  # no alerts
    probes: list[Measured] = []
    while len(probes) < most and (point := space.next(probes)) is not None:
        words = _words(space.change(point), count)
        run = before.get(tuple(words))
        found = measured(run, point) if run is not None else None
        if found is None:
            narrate(f"probe {len(probes) + 1} of at most {most}: {_shown(space.change(point))}")
            found = _probe(restore(loaded.name, quiet), words, tag, point, narrate, force=force)
        narrate(f"  {told(found)}")
        if found.failed and not found.memory:
            raise UserError(f"probe {found.run} failed: {found.failed}", f"'ppo-tui diagnose {found.run}' explains it")
        probes.append(found)
    best = best_of(probes)
    if best is None:
        raise UserError(f"no probe ({len(probes)}) fits this machine", "use a smaller model, LoRA or more GPUs")
    change = space.change(best.point)
    make_folder(path.parent)
    write_atomic(path, preset_text(loaded, change, probes, best, space).encode())
    return Tuned(tuple(probes), best, change, path)


def measured(run: RunDir, point: Point) -> Measured | None:
    """The result of an ended probe; None if it was stopped or lost."""
    state = current(run)
    if state.going or state.state not in ("finished", "failed"):
        return None
    rows = [record.data for _, record in steps(run)]
    peak = peak_memory(run, rows)
    if state.state == "failed":
        why = diagnosis(run)
        cause = why.cause or ""
        memory = cause.startswith(_TOO_MUCH) or cause in _TOO_MUCH_ENGINE
        return Measured(point, run.id, peak=peak, failed=why.title, memory=memory)
    later = rows[1:]  # the first step compiles and warms up
    tokens = [row[THROUGHPUT[0]] for row in later if THROUGHPUT[0] in row]
    lengths = [row[_LENGTH] for row in later if _LENGTH in row]
    if not tokens:
        return Measured(point, run.id, peak=peak, failed="it logged no throughput")
    return Measured(point, run.id, statistics.mean(tokens), peak, statistics.mean(lengths) if lengths else None)


def told(probe: Measured) -> str:
    """`1,234 tokens/s per GPU, peak 17.2 of 24.0 GiB`."""
    peak = probe.peak
    memory = f"peak {gib(peak.used)}{f' of {gib(peak.total)}' if peak.total else ''} GiB" if peak else ""
    speed = probe.failed or f"{probe.tokens or 0:,.0f} tokens/s per GPU"
    return ", ".join(filter(None, (speed, memory, f"run {probe.run}")))


def preset_text(
    loaded: LoadedPreset, change: Settings, probes: Sequence[Measured], best: Measured, space: Space
) -> str:
    """The text of the new preset: its parent, the settings, and the measurements as comments."""
    base = loaded.name if loaded.path is None or loaded.origin == "shipped" else str(loaded.path)
    gpus = space.subject.machine.gpus[: space.subject.gpus]
    card = "no GPU: memory of the run's processes" if space.subject.on_cpu or not gpus else gpus[0].name
    lines = [
        f"# ppo-tui tune {loaded.name}, {time.strftime('%Y-%m-%d')}; {card}",
        "# Every response was generated to its maximum length.",
    ]
    if best.length is not None and best.length < 0.95 * (
        space.subject.whole(FIELDS["data.max_response_length"].key) or 0
    ):
        lines[1] = f"# Responses had {best.length:.0f} tokens on average: the engine does not support a minimum length."
    lines += [f"# {'*' if each is best else '-'} {_shown(space.change(each.point))}: {told(each)}" for each in probes]
    text = "\n".join([*lines, f"extends: {text_of(base)}", f"description: {text_of(f'{loaded.name}, tuned')}", ""])
    for name, value in change.items():
        text = put(text, FIELDS[name].path, value)
    return text


def _probe(
    loaded: LoadedPreset, words: list[str], tag: str, point: Point, narrate: Narrate, *, force: bool
) -> Measured:
    """Runs one short run to its end."""
    run = start(Plan.of(loaded, words, note=f"#{tag}"), force=force)
    try:
        last = None
        while (state := current(run, checks=False)).going:
            if state.step != last and state.step:
                narrate(f"  step {state.step}")
            last = state.step
            time.sleep(POLL)
    except BaseException:
        stop(run, by="tune: cancelled", wait=True)
        raise
    found = measured(run, point)
    if found is None:
        raise UserError(f"probe {run.id} was stopped", "run the command again to continue")
    return found


def _words(change: Settings, count: int) -> list[str]:
    values = {**COURSE, "trainer.steps": count, **change}
    return [f"{name}={hydra.quote(value)}" for name, value in values.items()]


def _shown(change: Settings) -> str:
    return " ".join(f"{name}={text_of(value)}" for name, value in change.items()) or "the unchanged preset"


def _tag(loaded: LoadedPreset, space: Space, count: int) -> str:
    """The tag shared by probes of the same preset, machine and number of steps."""
    gpus = [[gpu.name, gpu.total] for gpu in space.subject.machine.gpus]
    what = orjson.dumps([loaded.snapshot(), gpus, space.subject.version, count], default=str)
    return f"tune-{hashlib.sha256(what).hexdigest()[:8]}"

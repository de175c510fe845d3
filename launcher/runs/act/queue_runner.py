"""Adds runs to the queue; `python -m launcher.runs.act.queue_runner` checks them and starts them in turn."""

import math
import os
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from launcher.check.gate import admit_waiting
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.machine.sampler import VISIBLE, visible
from launcher.preset.alerting import STOPPERS, check_health
from launcher.preset.files import load, restore, with_settings
from launcher.record import queued
from launcher.record.layout import find, matching, new_id, require_name, require_writable
from launcher.record.note import is_tag
from launcher.record.process import ProcessId
from launcher.record.queued import Queued
from launcher.runs.act.fork import fork_folder
from launcher.runs.act.queue_check import Checkers, narrate, reason_of
from launcher.runs.act.start import Narrate, Plan, silent, start
from launcher.runs.supervise.spawn import wake_queue
from launcher.runs.watch.turns import Turn, arrange, look, turns
from launcher.verl import hydra

POLL = 1.0  # seconds between two looks for changes that no supervisor reports
SOON = 0.3  # seconds while a check or a start runs
STARTS = 16  # parallel starts; each waits for a supervisor's first sign of life


def add(
    plan: Plan, *, after: str | None = None, gpus: str | None = None, force: bool = False, narrate: Narrate = silent
) -> Queued:
    """Adds a run at the end of the queue with its current settings; later changes to the preset file have no effect.

    `gpus` as in CUDA_VISIBLE_DEVICES. Raises UserError.
    """
    require_writable()
    require_name(plan.name)
    loaded = plan.loaded if gpus is None else with_settings(plan.loaded, [f"env.{VISIBLE}={gpus}"])
    check_health(loaded.preset.health)
    trainer, named = loaded.preset.trainer, visible(loaded.preset.env) or []
    needs = 0 if trainer.device == "cpu" else trainer.gpus
    if gpus is not None and (len(set(named)) != needs or len(named) != needs):
        uses = f"uses {counted(needs, 'GPU')} (trainer.gpus)" if needs else "uses no GPU"
        hint = f"list {counted(needs, 'GPU')}, or omit --gpus" if needs else "omit --gpus"
        raise UserError(f"--gpus {gpus} does not match: {loaded.name} {uses}", hint)
    new = Queued(
        id=new_id(plan.name or loaded.name),
        name=plan.name or loaded.name,
        preset_name=loaded.name if plan.name else None,
        preset=loaded.snapshot(),
        host=socket.gethostname(),
        needs=needs,
        place=0.0,  # `append` gives it one
        added=time.time(),
        settings=plan.changes,
        gpus=tuple(named) if needs else (),
        after=_earlier(after, narrate) if after else None,
        force=force,
        note=plan.note,
        origin=plan.origin,
    )
    entry = queued.append(new)
    wake_queue()
    return entry


def begin_now(entry: Queued) -> None:
    """Starts an entry at the next poll, even if skipped or on used GPUs. Raises UserError or OSError."""
    queued.change(entry, paused=False, skipped=None, now=True)
    wake_queue()


def resume(entry: Queued | None) -> None:
    """Resumes a paused entry or the whole queue; rechecks a skipped entry; takes over one that waits for another host.
    Raises UserError, OSError.
    """
    if entry is None:
        queued.pause(on=False)
    else:
        here = socket.gethostname()
        taken = {"host": here, "starter": None} if entry.waits and entry.host != here else {}
        queued.change(entry, recheck=bool(taken), paused=False, skipped=None, **taken)
    wake_queue()


def go_on() -> None:
    """Starts due entries and checks new ones; returns when there are none, or if another process does this.

    Continues while a check runs, and while an entry waits for GPUs used by other programs, because nothing reports when
    they become free. Polls again after releasing the lock, since processes that found it held rely on it.
    """
    while any(turn.due or turn.lost or turn.outside or turn.unchecked for turn in turns()):
        with queued.alone() as ours:
            if not ours:
                return
            with ThreadPoolExecutor(STARTS) as starters:
                work = _Work(Checkers(), starters)
                while pause := work.step():
                    time.sleep(pause)


@dataclass
class _Work:
    """The running work of this process: checks and starts of entries, independent of each other."""

    checkers: Checkers
    starters: Executor
    starts: dict[str, Future[None]] = field(default_factory=dict)  # by entry id

    def step(self) -> float:
        """Starts due entries and checks unchecked ones. Returns the seconds until the next poll, 0 for none."""
        for id in [id for id, under_way in self.starts.items() if under_way.done()]:
            if error := self.starts.pop(id).exception():
                traceback.print_exception(error)
        seen = look()
        queue = [turn for turn in arrange(seen) if turn.entry.id not in self.starts]
        if any(turn.lost or turn.due for turn in queue):
            with queued.changing():  # another process may have started one since
                self._decide(queue, arrange(look(seen)))
        checks = self.checkers.look([turn for turn in queue if turn.unchecked])
        if checks or self.starts or any(turn.lost or turn.due for turn in queue):
            return SOON
        return POLL if any(turn.outside for turn in queue) else 0.0

    def _decide(self, before: Sequence[Turn], now: Sequence[Turn]) -> None:
        """Starts entries that are due in both looks, and skips entries that can never start."""
        same = [turn.entry for turn in before if turn.lost or turn.due]
        for turn in now:
            if turn.entry not in same:
                continue
            if turn.lost:
                queued.decide(turn.entry, skipped=turn.waits, now=False)
            elif turn.due and queued.decide(turn.entry, starter=ProcessId.of(os.getpid()), given=turn.gpus):
                self.starts[turn.entry.id] = self.starters.submit(_start, turn)


def _start(turn: Turn) -> None:
    """Starts a checked entry; records the reason in the entry if that fails."""
    entry = turn.entry
    try:
        chosen = [f"env.{VISIBLE}={','.join(turn.gpus)}"] if turn.gpus and not entry.gpus else []
        plan = Plan(
            restore(entry.of_preset, entry.preset, chosen),
            tuple(chosen),
            entry.origin,
            fork_folder(entry.origin) if entry.origin else None,
            entry.name if entry.preset_name else "",
            entry.note,
        )
        found = admit_waiting(plan.loaded, turn.check, force=entry.force)
        if found is None:
            narrate(f"{entry.id}: files have changed, so the preflight runs again")
            queued.change(entry, recheck=True, starter=None)
            return
        start(plan, narrate, id=entry.id, preflight=found)
    except FileExistsError:  # without locks another process may be at it
        if not entry.run.path.exists():
            queued.change(entry, starter=None)
            return
    except Exception as error:
        if not isinstance(error, UserError | OSError):
            traceback.print_exc()
        if not entry.run.path.exists():
            queued.change(entry, skipped=reason_of(error), now=False, starter=None)
            return
    queued.leave(entry)


def _earlier(word: str, narrate: Narrate) -> str:
    """The id of the run that another run waits for."""
    known = {each.id: each.name for each in reversed(queued.entries())}
    return word if word in known else matching(word, known, narrate) or find(word, narrate).id


def main() -> None:
    """Runs the queue."""
    try:
        go_on()
    except (UserError, OSError) as error:
        sys.exit(f"ppo-tui: {error}")


if __name__ == "__main__":
    main()


MOST = 64  # runs
_OPEN, _CLOSE, _QUOTES = "[{(", "]})", "'\""


def arms(preset: str, changes: Sequence[str] = (), seeds: int = 1) -> list[list[str]]:
    """The settings of each run: all combinations of the preset's `sweep:` values and of `KEY=a,b`, which win.

    With several seeds, each run has `data.seed` 1, 2, ... A run ends when a rule that may stop it is CRITICAL, unless
    the preset names such rules itself. Raises UserError.
    """
    loaded = load(preset).preset
    stops = [] if "stop_on" in loaded.health else [f"health.stop_on=[{', '.join(STOPPERS)}]"]
    named = _block(loaded.sweep)
    for values in named.values():
        try:
            load(preset, values[:1])
        except UserError as wrong:
            raise wrong.at(f"the 'sweep:' block of preset {preset}") from None
    choices = named | {change.partition("=")[0].strip(): _choices(change) for change in changes}
    if not choices:
        raise UserError(f"preset {preset} has no 'sweep:' block", "give KEY=VALUE,VALUE")
    seeded = [[f"data.seed={number}"] for number in range(1, seeds + 1)] if seeds > 1 else [[]]
    count = math.prod(map(len, choices.values())) * len(seeded)
    if count > MOST:
        raise UserError(f"the sweep has {counted(count, 'run')}, but {MOST} are allowed", "give fewer values or seeds")
    runs = [[*stops, *chosen, *seed] for chosen in product(*choices.values()) for seed in seeded]
    for settings in runs:
        check_health(load(preset, settings).preset.health)
    return runs


def sweep(preset: str, runs: Sequence[Sequence[str]], tag: str, *, force: bool = False) -> list[Queued]:
    """Adds the runs to the queue, each with this tag in its note. Raises UserError."""
    if not is_tag(tag):
        raise UserError(f"--tag {tag!r} is not a tag", "use letters, digits, '_', '-' and '.'")
    return [add(Plan.of(preset, settings, note=f"#{tag}"), force=force) for settings in runs]


def _block(values: Mapping[str, Any], above: str = "") -> dict[str, list[str]]:
    """`KEY=a`, `KEY=b` per key of a `sweep:` block: `actor.lr: [a, b]`, or nested. Raises UserError."""
    choices_of: dict[str, list[str]] = {}
    for name, value in values.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping):
            choices_of |= _block(value, f"{key}.")
            continue
        choices = [f"{key}={hydra.quote(each)}" for each in (value if isinstance(value, list) else [value])]
        if len(set(choices)) < max(len(choices), 1):
            fault = "has a value twice" if choices else "is an empty list"
            raise UserError(f"sweep: {key} {fault}", "list each value once")
        choices_of[key] = choices
    return choices_of


def _choices(change: str) -> list[str]:
    """`KEY=a`, `KEY=b` of `KEY=a,b`; commas within brackets and quotes belong to a value. Raises UserError."""
    key, equals, text = change.partition("=")
    if not equals:
        raise UserError(f"'{change}' is not a setting", "use KEY=VALUE or KEY=VALUE,VALUE")
    values, depth, quote = [""], 0, ""
    for letter in text:
        if letter == "," and not depth and not quote:
            values.append("")
            continue
        if letter in _QUOTES and quote in ("", letter):
            quote = "" if quote else letter
        elif not quote:
            depth += (letter in _OPEN) - (letter in _CLOSE)
        values[-1] += letter
    if len(values) > 1 and "" in (stripped := [value.strip() for value in values]):
        raise UserError(f"'{change}' has an empty value at place {stripped.index('') + 1}", "remove the comma")
    repeated = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if repeated is not None:
        raise UserError(f"'{change}' has {repeated} twice", "to repeat runs with other seeds, use --seeds")
    return [f"{key}={value.strip()}" for value in values]

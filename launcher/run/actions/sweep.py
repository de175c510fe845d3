"""A sweep: every combination of some settings, with several seeds, as runs of the queue with one tag."""

import math
from collections.abc import Sequence
from itertools import product

from launcher.errors import UserError
from launcher.health.alerting import STOPPERS, check_health
from launcher.preset.files import load
from launcher.record.note import is_tag
from launcher.record.queue import Queued
from launcher.run.actions.queue import add

MOST = 64  # runs
_OPEN, _CLOSE, _QUOTES = "[{(", "]})", "'\""


def arms(preset: str, changes: Sequence[str], seeds: int = 1) -> list[list[str]]:
    """The settings of each run: every combination of the values `KEY=a,b`, with several seeds `data.seed` 1, 2, ...

    Runs are stopped when a rule that may do so is CRITICAL, unless the preset names such rules itself. Raises
    UserError.
    """
    stops = [] if "stop_on" in load(preset).preset.health else [f"health.stop_on=[{', '.join(STOPPERS)}]"]
    seeded = [[f"data.seed={number}"] for number in range(1, seeds + 1)] if seeds > 1 else [[]]
    choices = [_choices(change) for change in changes]
    count = math.prod(map(len, choices)) * len(seeded)
    if count > MOST:
        raise UserError(f"the sweep has {count} runs, but {MOST} are allowed; give fewer values or seeds")
    found = [[*stops, *chosen, *seed] for chosen in product(*choices) for seed in seeded]
    for settings in found:
        check_health(load(preset, settings).preset.health)
    return found


def sweep(preset: str, runs: Sequence[Sequence[str]], tag: str, *, force: bool = False) -> list[Queued]:
    """Queues the runs, all with one tag in their notes. Raises UserError."""
    if not is_tag(tag):
        raise UserError(f"--tag {tag!r} is no tag; use letters, digits, '_', '-' and '.'")
    return [add(preset, settings, force=force, note=f"#{tag}") for settings in runs]


def _choices(change: str) -> list[str]:
    """`KEY=a`, `KEY=b` of `KEY=a,b`; commas within brackets and quotes belong to a value. Raises UserError."""
    key, equals, text = change.partition("=")
    if not equals:
        raise UserError(f"'{change}' is no setting; sweep expects KEY=VALUE or KEY=VALUE,VALUE")
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
        raise UserError(f"'{change}' has an empty value at place {stripped.index('') + 1}; remove the comma")
    repeated = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if repeated is not None:
        raise UserError(f"'{change}' has {repeated} twice; --seeds repeats runs with other seeds")
    return [f"{key}={value.strip()}" for value in values]

"""A sweep: every combination of some settings, with several seeds, as runs of the queue with one tag."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from launcher.core.errors import UserError
from launcher.health.alerting import STOPPERS, check_health
from launcher.preset.files import load
from launcher.record.note import is_tag
from launcher.record.queued import Queued
from launcher.runs.act.queue_runner import add
from launcher.verl import hydra

MOST = 64  # runs
_OPEN, _CLOSE, _QUOTES = "[{(", "]})", "'\""


def arms(preset: str, changes: Sequence[str] = (), seeds: int = 1, *, behind: str | None = None) -> list[list[str]]:
    """The settings of each run: every combination of the values of the preset's `sweep:` and of `KEY=a,b`, which win.

    With several seeds each has `data.seed` 1, 2, ... A run ends when a rule that may stop it is CRITICAL, unless the
    preset names such rules itself; with `behind`, a tag, also when its reward is behind the median. Raises UserError.
    """
    loaded = load(preset).preset
    stops = [] if "stop_on" in loaded.health else [f"health.stop_on=[{', '.join(STOPPERS)}]"]
    if behind is not None:
        stops.append(f"health.stop_behind={behind}")
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
        raise UserError(f"the sweep has {count} runs, but {MOST} are allowed", "give fewer values or seeds")
    found = [[*stops, *chosen, *seed] for chosen in product(*choices.values()) for seed in seeded]
    for settings in found:
        check_health(load(preset, settings).preset.health)
    return found


def sweep(preset: str, runs: Sequence[Sequence[str]], tag: str, *, force: bool = False) -> list[Queued]:
    """Adds the runs to the queue, each with this tag in its note. Raises UserError."""
    if not is_tag(tag):
        raise UserError(f"--tag {tag!r} is not a tag", "use letters, digits, '_', '-' and '.'")
    return [add(preset, settings, force=force, note=f"#{tag}") for settings in runs]


def _block(values: Mapping[str, Any], above: str = "") -> dict[str, list[str]]:
    """`KEY=a`, `KEY=b` by key, of a `sweep:` block: `actor.lr: [a, b]`, or nested. Raises UserError."""
    found: dict[str, list[str]] = {}
    for name, value in values.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping):
            found |= _block(value, f"{key}.")
            continue
        choices = [f"{key}={hydra.quote(each)}" for each in (value if isinstance(value, list) else [value])]
        if len(set(choices)) < max(len(choices), 1):
            fault = "has a value twice" if choices else "is an empty list"
            raise UserError(f"sweep: {key} {fault}", "list each value once")
        found[key] = choices
    return found


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

"""Finds the fewest settings that make a run fail on the toy, by preflight findings or by short runs."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from launcher.check import checks
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.console.diagnosis import UNKNOWN, Diagnosis
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.preset.files import LoadedPreset, load, restore
from launcher.preset.layers import Layer, Where, nest, over
from launcher.preset.rehearsal import of_machine
from launcher.preset.schema import FIELDS
from launcher.record.info import Preflight
from launcher.record.layout import RunDir, new_id
from launcher.record.state import ALIVE, current
from launcher.report.ddmin import ddmin
from launcher.runs.act.removal import delete
from launcher.runs.act.start import start
from launcher.runs.act.stop import stop
from launcher.runs.watch.run_diagnosis import diagnosis
from launcher.runs.watch.run_settings import last_settings
from launcher.verl import hydra

TOY = "toy-cpu"
PATIENCE = 1200.0  # seconds of one short run
POLL = 1.0
_ABOUT = frozenset(("description", "extends", "health", "needs", "recipe", "sweep", "usual"))  # nothing that veRL gets
Narrate = Callable[[str], None]
Fails = Callable[[LoadedPreset], bool]


@dataclass(frozen=True)
class Minimal:
    """The settings left of the number `before`, applied to the toy; `failure` is the finding or cause that stayed.

    `complete` is False if the search was interrupted, so that fewer may be enough.
    """

    settings: tuple[str, ...]
    before: int
    probes: int
    failure: str
    method: str
    complete: bool = True

    @property
    def command(self) -> str:
        return shlex.join(["ppo-tui", "run", TOY, *self.settings, *(["--force"] if self.method == "check" else [])])

    @property
    def told(self) -> str:
        """`1 of 9 settings is enough on the toy preset toy-cpu: finding P10 stays (11 probes by check).`"""
        count = len(self.settings)
        enough = "is enough" if count == 1 else "are enough"
        open_end = "" if self.complete else "; the search was interrupted"
        return (
            f"{count} of {self.before} settings {enough} on the toy preset {TOY}: {self.failure} stays "
            f"({self.probes} probes by {self.method}{open_end})."
        )


@dataclass
class _Search:
    """The question of a search and its results so far."""

    narrate: Narrate
    fails: Fails
    probes: int = 0
    left: tuple[Where, ...] = ()
    toy: LoadedPreset = field(default_factory=lambda: load(TOY))

    def holds(self, layer: Layer, some: tuple[Where, ...]) -> bool:
        """Whether the toy with some of the settings fails in the same way."""
        self.probes += 1
        self.narrate(f"probe {self.probes}: {len(some)} of {len(layer)} settings")
        try:
            stays = self.fails(_over_toy(self.toy, layer, some))
        except UserError:  # a value that is allowed only next to another one
            stays = False
        self.narrate(f"probe {self.probes}: the failure {'stays' if stays else 'is gone'}")
        return stays


def minimal(run: RunDir, narrate: Narrate, poll: float = POLL) -> Minimal:
    """Shrinks the settings of a failed run. Raises UserError if its failure does not occur on the toy.
    KeyboardInterrupt ends the search with the result so far.
    """
    info, found = last_settings(run)[0], diagnosis(run)
    if info.preset is None:
        raise UserError(f"the settings of {run.id} are not known", "use a run that ppo-tui started")
    if not found.failed:
        raise UserError(f"run {run.id} has not failed", "leave --minimal out")
    preset = restore(info.name, info.preset)
    by_check = of_finding(preset, {change.key for fix in found.fixes for change in fix.changes}, narrate)
    if by_check is not None:
        finding, fails = by_check
        return shrink(preset, fails, f"finding {finding.id}", "check", narrate, likely=finding.keys)
    steps = current(run).step or 0
    what = f"cause {found.cause}" if found.known_cause else f"failure '{found.title}'"
    kept = set() if info.on_cpu else of_machine()
    keys = [change.key for fix in found.fixes for change in fix.changes]
    return shrink(preset, _by_runs(found, steps, narrate, poll), what, "short runs", narrate, likely=keys, without=kept)


def shrink(
    preset: LoadedPreset,
    fails: Fails,
    failure: str,
    method: str,
    narrate: Narrate,
    *,
    likely: Iterable[str] = (),
    without: Iterable[str] = (),
) -> Minimal:
    """The fewest settings of a preset that differ from the toy's and with which it `fails`.

    The keys `likely` are first tried alone; the fields `without` keep the toy's values. Raises UserError if the toy
    does not fail with all settings.
    """
    search = _Search(narrate, fails)
    layer = _differing(preset, search.toy, set(without))
    search.left, complete = tuple(layer), True
    try:
        names = set(likely)
        first = tuple(where for where in layer if names & _names(where))
        if not (0 < len(first) < len(layer) and search.holds(layer, first)):
            first = tuple(layer)
            if not search.holds(layer, first):
                raise UserError(f"{failure} does not occur with these settings on {TOY}", "leave --minimal out")
        search.left = first

        def keep(some: tuple[Where, ...]) -> None:
            search.left = some

        search.left = ddmin(first, lambda some: search.holds(layer, some), keep)
    except KeyboardInterrupt:
        complete = False
    words = tuple(_word(where, layer) for where in search.left)
    return Minimal(words, len(layer), search.probes, failure, method, complete)


def of_finding(preset: LoadedPreset, keys: set[str], narrate: Narrate) -> tuple[Finding, Fails] | None:
    """The error of the preflight that stops a preset, preferably about one of the keys, and a function that looks for
    it in another preset; None if all errors are about this machine.
    """
    what = subject(preset)
    slow = ((title, check) for title, check in checks.SLOW if title not in checks.PASSING)
    known: tuple[tuple[str, Callable[[Subject], Iterable[Finding]]], ...] = (("configuration", checks.quick), *slow)
    for title, check in known:
        narrate(f"checking: {title}")
        errors = [each for each in check(what) if each.level == "error"]
        if errors:
            first = next((each for each in errors if keys & set(each.keys)), errors[0])
            return first, _asking(check, first)
    return None


def _asking(check: Callable[[Subject], Iterable[Finding]], wanted: Finding) -> Fails:
    def fails(preset: LoadedPreset) -> bool:
        found = check(subject(preset))
        return any((each.id, each.level, each.keys) == (wanted.id, "error", wanted.keys) for each in found)

    return fails


def _by_runs(wanted: Diagnosis, steps: int, narrate: Narrate, poll: float) -> Fails:
    """Starts a run, follows it until it ends or passes the step at which the original failed, and removes it."""

    def fails(preset: LoadedPreset) -> bool:
        quiet = restore(preset.name, preset.snapshot(), ["trainer.loggers=[]"])
        run = RunDir(paths.runs_dir() / new_id(TOY))  # known before it starts, for an interruption of the start
        try:
            start(quiet, narrate=narrate, preflight=Preflight(False, ()), id=run.id)
            begin = time.monotonic()
            while (state := current(run)).state in ALIVE and (state.step or 0) <= steps:
                if time.monotonic() - begin > PATIENCE:
                    break
                time.sleep(poll)
            return state.state not in ALIVE and _same(diagnosis(run), wanted)
        finally:
            if run.path.exists():
                if current(run).state in ALIVE:
                    stop(run, by="bundle --minimal: the answer is known", wait=True)
                delete(run)

    return fails


def _same(found: Diagnosis, wanted: Diagnosis) -> bool:
    """Whether two runs failed in the same way; failures without an entry in the catalog are compared by their
    titles.
    """
    return found.failed and found.cause == wanted.cause and (found.cause != UNKNOWN or found.title == wanted.title)


def _differing(preset: LoadedPreset, toy: LoadedPreset, without: set[str]) -> Layer:
    """The settings in which a preset differs from the toy."""
    return {
        where: entry
        for where, entry in preset.layer.items()
        if where[0] not in _ABOUT
        and ".".join(where) not in without
        and not (where in toy.layer and toy.layer[where].value == entry.value)
    }


def _over_toy(toy: LoadedPreset, layer: Layer, some: Iterable[Where]) -> LoadedPreset:
    return restore(TOY, nest(over({where: layer[where] for where in some}, toy.layer)))


def _names(where: Where) -> set[str]:
    """The field and the veRL key of a setting."""
    name = ".".join(where[1:] if where[0] == "overrides" else where)
    return {name, FIELDS[name].key} if name in FIELDS else {name}


def _word(where: Where, layer: Layer) -> str:
    entry = layer[where]
    key = entry.spelling if where[0] == "overrides" else ".".join(where)
    return f"{key}={entry.value if where[0] == 'env' else hydra.quote(entry.value)}"

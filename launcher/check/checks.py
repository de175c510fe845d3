"""The checks, and the functions that run them. A check is a function from a subject to findings."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from launcher.check import cluster, config, data, fitting, hardware, loading, login, model, reward, software
from launcher.check.finding import Finding, found, in_order
from launcher.check.subject import Subject, subject
from launcher.check.suggestion import suggested_value, tested
from launcher.core.errors import UserError
from launcher.estimate import memory
from launcher.machine import capacity
from launcher.preset.draft import Draft
from launcher.preset.fields import Spec
from launcher.preset.files import LoadedPreset, WrongValue, find, load
from launcher.preset.layers import ROOTS, near_name
from launcher.preset.schema import FIELDS, value_of
from launcher.preset.translate import NEEDED
from launcher.record.fix import Change, Fix
from launcher.verl import hydra

Check = Callable[[Subject], Iterable[Finding]]
Progress = Callable[[str], None]

QUICK: tuple[Check, ...] = (*config.RULES, model.shape, fitting.checks)
"""Checks that take at most a second in total and import neither torch nor veRL."""

SLOW: tuple[tuple[str, Check], ...] = (
    ("software", software.checks),
    ("hardware", hardware.checks),
    ("cluster", cluster.checks),
    ("login", login.checks),
    ("model", model.checks),
    ("names", loading.checks),
    ("data files", data.checks),
    ("reward function", reward.checks),
)
"""Checks that read files, use the network or start processes, each with its progress message."""

PASSING = frozenset({"hardware", "cluster", "login"})
"""Checks of SLOW whose result changes while a run waits in the queue."""

RUNNING = frozenset({"cluster", "names", "reward function"})
"""Checks of SLOW that run the preset's code, or open an address in it."""


@dataclass(frozen=True)
class Report:
    """All results about a preset; `ok` without errors. `skipped`: titles of the checks that were not made."""

    findings: list[Finding]
    memory: dict[str, object]
    skipped: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not any(finding.level == "error" for finding in self.findings)

    def as_json(self) -> Mapping[str, object]:
        """The output of `check --json`."""
        return {
            "ok": self.ok,
            "findings": [finding.as_json() for finding in self.findings],
            "memory": self.memory,
            "skipped": list(self.skipped),
        }


def quick(subject: Subject) -> list[Finding]:
    """The findings of the quick checks, errors first."""
    return in_order(tested(subject, list(_quick(subject)), _quick))


def _quick(subject: Subject) -> Iterator[Finding]:
    return (finding for check in QUICK for finding in _run(check, subject))


def slow(
    subject: Subject, progress: Progress, cancelled: Callable[[], bool] = lambda: False, *, passing: bool | None = None
) -> Iterator[Finding]:
    """The findings of the slow checks (`passing`: only PASSING, or only others); calls `cancelled` before each."""
    for title, check in SLOW:
        if passing is not None and passing != (title in PASSING):
            continue
        if title in skipped(subject):
            continue
        if cancelled():
            return
        progress(title)
        yield from _run(check, subject)


def skipped(subject: Subject) -> tuple[str, ...]:
    """The titles of the slow checks omitted in a static check."""
    other = subject.loaded.preset.python is not None  # its packages are unknown without running it
    left = RUNNING | ({"software"} if other else set())
    return tuple(title for title, _ in SLOW if title in left) if subject.static else ()


def check(
    loaded: LoadedPreset, *, assume: str | None = None, static: bool = False, progress: Progress = lambda _: None
) -> Report:
    """Runs every check of a preset for this or an assumed machine; with `static`, only checks that read.

    A preset that cannot be launched is also a finding. Raises UserError for an invalid machine.
    """
    on = capacity.assumed(assume) if assume else capacity.here()
    try:
        what = subject(loaded, on=on, static=static)
    except UserError as wrong:
        return Report([refused(wrong)], {})
    findings = [*quick(what), *slow(what, progress, lambda: False)]
    estimate = memory.estimate(what)
    return Report(in_order(findings), estimate.as_json() if estimate else {}, skipped(what))


def report(
    preset: str,
    settings: Sequence[str] = (),
    *,
    assume: str | None = None,
    static: bool = False,
    progress: Progress = lambda _: None,
) -> Report:
    """The report on a preset; an unreadable one is a finding. Raises UserError for wrong presets, keys or machines."""
    try:
        loaded = load(preset, settings)
    except UserError as wrong:
        broken = _wrong_without(preset)
        if broken:
            return Report([refused(broken)], {})
        key = _wrong_setting(preset, settings)
        works = functools.partial(_works, preset, settings, static)
        return Report([refused(wrong, key, works)], {})
    return check(loaded, assume=assume, static=static, progress=progress)


def wrong_keys(preset: str) -> list[Finding]:
    """Errors in the keys of a preset, without the other checks; empty for a preset that cannot be launched."""
    try:
        lacking = [name for name in NEEDED if not value_of(load(preset).preset, FIELDS[name])]
        what = subject(load(preset, [f"{name}=later" for name in lacking]))  # a script may leave the data to its user
    except UserError:
        return []
    return [found for rule in config.keys.RULES for found in rule(what) if found.level != "info"]


def refused(
    wrong: UserError, key: str | None = None, works: Callable[[Spec, Any], bool] = lambda _, __: True
) -> Finding:
    """The finding of a preset or setting that could not be read or launched; `works` accepts the offered values."""
    message, fix = wrong.message, Fix(wrong.hint or "remove it, or set it to an allowed value")
    spec = FIELDS.get(wrong.name) if isinstance(wrong, WrongValue) else None
    if isinstance(wrong, WrongValue) and spec is not None:
        key = key or spec.key or spec.name
        value = suggested_value(spec, wrong.value, functools.partial(works, spec), wrong.below)
        if value is not None:
            message += f"; use {spec.allowed}" if wrong.hint else ""
            fix = Fix(f"set {wrong.shown} to {hydra.quote(value)}, or remove it")
    return found("PRESET", message=message, keys=(key,) if key else (), fixes=[fix])


def refusals(draft: Draft, error: UserError) -> list[Finding]:
    """Errors in the values of a refused preset, with field and nearest name; without any, the refusal itself."""
    errors = []
    for where, wrong_value in draft.reading.errors.items():
        name, said = ".".join(where), str(wrong_value)
        near = near_name(name) if name not in FIELDS else None
        said = said if name in said else f"{name}: {said}"
        base = draft.reading.base.get(where)
        wrong = refused(WrongValue(said, "", "", name, draft.value(where), base and base.value), name)
        renamed = (Fix(changes=(Change(name, "rename", words=near),)),) if near and near in FIELDS else wrong.fixes
        errors.append(replace(wrong, fixes=renamed))
    return errors or [refused(error)]


def _run(check: Check, subject: Subject) -> Iterator[Finding]:
    """The findings of one check. A check that raises an exception becomes a finding."""
    try:
        typed = subject.loaded.in_typed_names
        for each in check(subject):
            fixes = each.fixes if each.rename else tuple(fix.filled(typed) for fix in each.fixes)
            yield replace(each, message=typed(each.message), fixes=fixes)
    except Exception as error:
        name = f"{check.__module__.rpartition('.')[2]}.{check.__name__}"
        yield found("CHECK", name=name, kind=type(error).__name__, error=error)


def _wrong_without(preset: str) -> UserError | None:
    """Errors of a preset without the settings. Raises UserError if it does not exist."""
    find(preset)
    try:
        load(preset)
    except UserError as wrong:
        return wrong
    return None


def _works(preset: str, settings: Sequence[str], static: bool, spec: Spec, value: Any) -> bool:
    """Whether no rule objects to a value of a field in this preset."""
    names = (spec.name, spec.key)
    others = [text for text in settings if hydra.split(text)[1] not in names]
    try:
        what = subject(load(preset, [*others, f"{spec.name}={hydra.quote(value)}"]), static=static)
        before = {(each.id, each.keys) for each in quick(subject(load(preset, others), static=static))}
    except UserError:
        return False
    return all(each.level == "info" or (each.id, each.keys) in before for each in quick(what))


def _wrong_setting(preset: str, settings: Sequence[str]) -> str:
    """The key of the first setting with a value that is not allowed. Raises UserError for an unknown key."""
    for count, text in enumerate(settings, 1):
        key = hydra.split(text)[1]
        try:
            load(preset, settings[:count])
        except UserError:
            if key not in FIELDS and key.partition(".")[0] not in ROOTS:
                raise
            return key
    raise AssertionError("only called for settings that cannot be loaded")

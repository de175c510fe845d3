"""All facts about a preset before its start, read in a thread."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.core.errors import UserError
from tui.kit.drawing.rows import Row, paragraph
from tui.kit.plan_rows import essentials

if TYPE_CHECKING:
    from launcher.check.finding import Finding
    from launcher.check.subject import Subject
    from launcher.estimate.memory import Estimate
    from launcher.preset.files import LoadedPreset

RUN = Path("/RUN")  # the folder of a run that there is not yet


@dataclass(frozen=True)
class LaunchPlan:
    """A preset with the settings of this launch: its plan, command, and quick errors.

    Without a `subject` the preset cannot be read or launched; `findings` has the reasons. `memory`: the estimate, None
    while the size of the model is unknown.
    """

    essentials: list[Row]
    command: str
    findings: list[Finding] = field(default_factory=list)
    subject: Subject | None = None
    memory: Estimate | None = None


def plan(preset: str | LoadedPreset, settings: Sequence[str]) -> LaunchPlan:
    """Reads, translates and checks a preset in well under a second; never raises for an invalid one."""
    from launcher.check import checks
    from launcher.check.subject import subject
    from launcher.estimate import memory
    from launcher.preset.flow import flow, rows_of
    from launcher.preset.translate import RunFolders, command_line
    from launcher.runs.act.start import Plan
    from launcher.runs.watch.pace import pace_of

    try:
        launched = Plan.of(preset, settings)
        loaded = launched.loaded
        what = subject(loaded)
        findings = checks.quick(what)
        batches = flow(what, rows_of(what.get("data.train_files")))
        needed = memory.estimate(what)
        rows = essentials(what, batches, needed, pace_of(loaded.name, loaded.snapshot()))
    except UserError as wrong:
        return LaunchPlan([], f"no command: {wrong}", _refusals(preset, settings, wrong))
    try:
        command = command_line(launched.launch(RunFolders.below(RUN)))
    except UserError as wrong:
        found = [checks.refused(wrong), *findings] if _has_verl(what) else findings  # SW-1 follows
        return LaunchPlan(rows, f"no command: {wrong}", found, what, needed)
    return LaunchPlan(rows, command, findings, what, needed)


def _refusals(preset: str | LoadedPreset, settings: Sequence[str], wrong: UserError) -> list[Finding]:
    """The errors of the preset; value by value if the launch's settings do not cause them."""
    from launcher.check import checks
    from launcher.preset.drafts import open_draft

    try:
        if isinstance(preset, str) and not settings:
            return checks.refusals(open_draft(preset), wrong)
    except UserError:  # no such preset
        pass
    return [checks.refused(wrong)]


def examine(what: Subject, progress: Callable[[str], None], cancelled: Callable[[], bool]) -> Iterator[Finding]:
    """Runs the checks that take seconds; first makes their files, if ppo-tui can."""
    from launcher.check import checks
    from launcher.data import toy

    try:
        if _has_verl(what):
            toy.ensure_for(what.loaded.preset.model.path, what.python, progress)
    except (UserError, OSError) as wrong:
        yield checks.refused(wrong if isinstance(wrong, UserError) else UserError(str(wrong)))
    yield from checks.slow(what, progress, cancelled)


def _has_verl(what: Subject) -> bool:
    from launcher.verl import env as verl_env

    preset = what.loaded.preset
    return verl_env.of(preset.python, preset.own_verl).verl is not None


def settings_with(settings: Sequence[str], change: Mapping[str, object]) -> list[str]:
    """A launch's settings and a finding's change, which replaces earlier ones of its fields."""
    from launcher.verl.hydra import quote

    return [*without(settings, change), *(f"{name}={quote(value)}" for name, value in change.items())]


def without(settings: Sequence[str], names: Container[str]) -> list[str]:
    """The settings without some fields."""
    return [setting for setting in settings if setting.partition("=")[0] not in names]


_SOURCES = {"default": "veRL's default", "derived": "follows another field", "ppo-tui": "set by ppo-tui"}


def setting_rows(finding: Finding, what: Subject | None, columns: int) -> list[Row]:
    """The values of a finding, and their places."""
    if what is None or not finding.keys:
        return []
    rows: list[Row] = [[], [(" set by", "dim")]]
    for key in finding.keys:
        place = what.loaded.place_of(key) or _SOURCES.get(what.source(key), "set by the preset")
        rows += paragraph(f"{key} = {what.get(key)}", "text", columns)
        rows += paragraph(place, "dim", columns, indent=3)
    return rows


def ready_rows(columns: int) -> list[Row]:
    """The inspector's rows without findings."""
    return paragraph("The preflight found nothing to change. S starts the run, Q adds it to the queue.", "dim", columns)

"""The ways into the editor: from a preset, from a run, from a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from launcher.core.errors import UserError
from launcher.runs.watch.reader import RunReader
from tui.kit.navigation import navigation

if TYPE_CHECKING:
    from textual.app import App

    from launcher.preset.remedy import Remedy
    from launcher.record.check import Suggestion
    from launcher.record.info import RunInfo


def edit_preset(
    app: App[Any],
    preset: str,
    field: str | None = None,
    *,
    read_only: bool = False,
    settings: Sequence[str] = (),
    rename: tuple[str, str] | None = None,
) -> bool:
    """Opens the editor on a preset, at a field or veRL key, with KEY=VALUE settings and a renamed key as first changes.

    What is in the way of it becomes a message. Returns whether it was opened.
    """
    from launcher.preset.drafts import open_draft

    try:
        draft = open_draft(preset)
        if rename is not None:
            draft.rename(*rename)
    except UserError as error:
        app.notify(str(error), title="Preset", severity="error", markup=False, timeout=20)
        return False
    navigation(app).edit(draft, field, settings, read_only=read_only)
    return True


def edit_run(
    app: App[Any], info: RunInfo, field: str | None = None, *, read_only: bool = False, settings: Sequence[str] = ()
) -> None:
    """Opens the editor on a new preset with the settings of a run, given its run.yaml; KEY=VALUE as first changes."""
    from launcher.preset.drafts import draft_of_run

    try:
        draft = draft_of_run(info)
    except UserError as error:
        app.notify(str(error), title="Edit and relaunch", severity="warning", markup=False)
    else:
        navigation(app).edit(draft, field, settings, read_only=read_only)


def follow_advice(app: App[Any], info: RunInfo, advice: Remedy | None, *, read_only: bool = False) -> None:
    """Opens a run's settings as a new preset, at what a diagnosis advises and with the value that it gives."""
    field, settings = (advice.field, advice.settings) if advice else (None, ())
    edit_run(app, info, field, read_only=read_only, settings=settings)


def field_of(fixes: Sequence[Suggestion]) -> tuple[Suggestion | None, str | None]:
    """The first of some fixes that is about a field of a preset: the fix and the field; None without one."""
    from launcher.preset.field_values import field_named

    for fix in fixes:
        try:
            return fix, field_named(fix.key or "")
        except UserError:
            continue
    return None, None


def open_entry(screen: Screen[Any], reader: RunReader, name: str, *, read_only: bool) -> None:
    """Goes to a line of the log, or to the field that a fix is about."""
    kind, _, number = name.partition(" ")
    if kind == "line":
        navigation(screen.app).show_log(reader, int(number))
    else:
        edit_entry(screen, reader, name, read_only=read_only)


def edit_entry(screen: Screen[Any], reader: RunReader, name: str, *, read_only: bool) -> None:
    """Opens the editor at what a fix changes; where none is chosen, at the first one that changes something."""
    kind, _, number = name.partition(" ")
    advice = reader.explanation.remedies if reader.explanation else ()
    helps = (each for each in advice if each is not None and not each.done)
    chosen = advice[int(number)] if kind == "fix" else next(helps, None)
    if kind == "fix" and chosen is None and reader.info.preset is not None:
        screen.notify("This fix is not a preset setting; apply it outside ppo-tui")
    else:
        follow_advice(screen.app, reader.info, chosen, read_only=read_only)

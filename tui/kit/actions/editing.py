"""The ways into the editor: from a preset, from a run, from a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from launcher.core.errors import UserError
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

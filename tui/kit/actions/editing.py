"""Opens the editor from a preset, run or check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.app import App

from launcher.core.errors import UserError
from launcher.record.info import RunInfo
from tui.kit.navigation import RunView, navigation

if TYPE_CHECKING:
    from launcher.record.fix import Offer


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

    Shows a message if that fails. Returns whether it was opened.
    """
    from launcher.preset.drafts import open_draft

    try:
        draft = open_draft(preset)
        if rename is not None:
            draft.rename(*rename)
    except UserError as error:
        app.notify(str(error), title="Preset", severity="error", markup=False)
        return False
    navigation(app).edit(draft, field, settings, read_only=read_only)
    return True


def edit_run(
    app: App[Any], info: RunInfo, field: str | None = None, *, read_only: bool = False, settings: Sequence[str] = ()
) -> None:
    """Opens the editor on a new preset with the settings in a run.yaml; KEY=VALUE as first changes."""
    from launcher.preset.drafts import draft_of_run

    try:
        draft = draft_of_run(info)
    except UserError as error:
        app.notify(str(error), title="Edit and relaunch", severity="warning", markup=False)
    else:
        navigation(app).edit(draft, field, settings, read_only=read_only)


def edit_offer(app: App[Any], run: RunView, offer: Offer | None) -> None:
    """Opens the editor on a run's settings, with a fix's settings as first changes."""
    from launcher.preset.settle import settings_of

    field, edits = (offer.field, offer.edits) if offer else (None, ())
    edit_run(app, run.reader.info, field, read_only=run.read_only, settings=settings_of(edits))


def open_entry(app: App[Any], run: RunView, name: str) -> None:
    """Goes to a line of the log, or to a fix's field."""
    kind, _, number = name.partition(" ")
    if kind == "line":
        navigation(app).show("log", run, int(number))
    else:
        edit_entry(app, run, name)


def chosen_offer(run: RunView, name: str) -> Offer | None:
    """The fix of an entry of the run's problem; without a choice, the first one with changes."""
    kind, _, number = name.partition(" ")
    problem = run.reader.problem
    offers = problem.offers if problem else ()
    return offers[int(number)] if kind == "fix" else next((offer for offer in offers if offer.field), None)


def edit_entry(app: App[Any], run: RunView, name: str) -> None:
    """Opens the editor at a fix's change; without a choice, at the first fix with changes."""
    chosen = chosen_offer(run, name)
    if chosen is not None and chosen.field is None and run.reader.info.preset is not None:
        app.notify("This fix is not a preset setting; apply it outside ppo-tui")
        return
    edit_offer(app, run, chosen)

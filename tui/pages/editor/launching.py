"""From the editor to a run: a draft that is not saved can be started all the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.preset.draft import Draft
from launcher.record.layout import RunDir
from tui.kit.actions.preset_saving import save
from tui.kit.dialogs.choose import ChooseScreen
from tui.kit.navigation import navigation

if TYPE_CHECKING:
    from textual.app import App

    from tui.kit.page import Page


async def launch_draft(page: Page[Any], draft: Draft) -> None:
    """Opens the launch of a draft, and the dashboard when a run was started; fixes can come back from it."""
    app = page.app
    try:
        loaded = draft.loaded()
        if draft.changed or (draft.is_new and draft.run):
            choice = await app.push_screen_wait(
                ChooseScreen(
                    f"{draft.name} has unsaved changes",
                    "The run records its settings either way.",
                    [("w", "save and start"), ("n", "cancel"), ("y", "start without saving")],
                )
            )
            if choice not in ("w", "y") or (choice == "w" and not await save(app, draft)):
                return
            loaded = draft.loaded()
    except UserError as error:
        app.notify(str(error), title="Not started", severity="error", markup=False, timeout=20)
        return
    earlier = RunDir(paths.runs_dir() / draft.run) if draft.run else None
    outcome = await navigation(app).launch(loaded, earlier)
    if isinstance(outcome, Path):
        navigation(app).show_run(outcome, page, read_only=False)
    else:
        apply(app, draft, outcome)


def apply(app: App[Any], draft: Draft, settings: Sequence[str]) -> None:
    """Makes settings changes of a draft; what cannot be made becomes a message."""
    try:
        draft.take(settings)
    except UserError as error:
        app.notify(str(error), severity="error", markup=False, timeout=20)

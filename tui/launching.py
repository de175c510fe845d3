"""Starting a run from a draft: its exact command first, then what stands against it, then the dashboard."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher import paths
from launcher.errors import UserError
from launcher.preset.draft import Draft
from launcher.preset.files import LoadedPreset
from launcher.run.directory import RunDir
from tui.preset_saving import save
from tui.screens.choose import ChooseScreen

if TYPE_CHECKING:
    from textual.app import App


async def launch_draft(app: App[Any], draft: Draft) -> None:
    """Asks, starts the run, and opens it. A draft that is not saved can be run all the same."""
    try:
        command = await asyncio.to_thread(_command, draft.loaded())
        answer = await app.push_screen_wait(_question(draft, command))
        if answer == "w" and not await save(app, draft):
            return
        if answer in ("y", "w"):
            await _start(app, draft)
    except UserError as error:
        app.notify(str(error), title="Not started", severity="error", markup=False, timeout=20)


def _question(draft: Draft, command: str) -> ChooseScreen:
    if draft.changed or (draft.is_new and draft.run):
        kept = "What is not saved goes into the run all the same; the file stays as it is.\n\n"
        answers = [("y", "start"), ("w", "save and start"), ("n", "no")]
    else:
        kept, answers = "", [("y", "start it"), ("n", "no")]
    return ChooseScreen(f"Start {draft.name}?", f"{kept}{command}", answers)


async def _start(app: App[Any], draft: Draft, *, force: bool = False) -> None:
    from launcher.preflight.gate import Refused
    from launcher.run.launch import start
    from tui.screens.dashboard import DashboardScreen

    app.notify(f"Starting {draft.name} …", markup=False, timeout=20)
    earlier = RunDir(paths.runs_dir() / draft.run) if draft.run else None
    tell = partial(app.call_from_thread, partial(app.notify, markup=False))
    try:
        run = await asyncio.to_thread(start, draft.loaded(), (), tell, force=force, after=earlier)
    except Refused as refused:
        found = refused.findings
        details = "\n\n".join(f"{each.level} {each.id}  {each.message}\n{each.fix}" for each in found)
        asked = ChooseScreen("It would fail", details, [("f", "start it all the same"), ("n", "no")])
        if await app.push_screen_wait(asked) == "f":
            await _start(app, draft, force=True)
        return
    app.switch_screen(DashboardScreen(run.path, read_only=False))


def _command(loaded: LoadedPreset) -> str:
    """The command as it would run; the paths of a run that does not exist yet stand below /RUN."""
    from launcher.preset.shell import command_line
    from launcher.run.launch import preview

    return command_line(preview(loaded, (), Path("/RUN")))

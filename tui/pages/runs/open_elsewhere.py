"""Opening what another machine or a cluster has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported

from launcher.core.errors import UserError
from tui.kit.actions.background import in_background, in_terminal
from tui.kit.navigation import navigation

if TYPE_CHECKING:
    from tui.kit.page import Page


_FAILED = {
    255: "ssh cannot reach {}, or has lost the connection",
    127: "{} has no ppo-tui on its PATH; set where it is in 'hosts' of config.yaml",
    2: "ppo-tui on {0} does not open it; ppo-tui --host {0} runs prints what is there",
}


async def open_elsewhere(page: Page[Any], name: str, run: str, cluster: bool, *, read_only: bool) -> None:
    """The dashboard of a run of another machine, or its list, until the user leaves it; of a cluster a job as a run.

    `run` is empty for the machine itself.
    """
    from launcher.machine.hosts import there
    from launcher.runs.act.attach_job import attach_job

    app = page.app
    try:
        if not cluster:
            command = "watch" if read_only else "attach"
            code = in_terminal(app, there(name, [command, run] if run else []))
            if code in _FAILED:  # what was printed is gone with the terminal
                app.notify(_FAILED[code].format(name), severity="error", markup=False)
        elif read_only:
            app.notify("Read-only: use `ppo-tui` to follow jobs", severity="warning")
        elif run:
            app.notify(f"Following job {run} of {name} …", timeout=3, markup=False)
            found = await in_background(partial(attach_job, name, run))
            navigation(app).show_run(found.path, page, read_only=False)
    except SuspendNotSupported:
        app.notify(f"This terminal cannot be handed over; use ppo-tui --host {name}", severity="error", markup=False)
    except (OSError, UserError) as error:
        app.notify(str(error), severity="error", markup=False)

"""Runs of other machines and jobs of Ray clusters in config.yaml, below the local runs."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import SuspendNotSupported

from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.machine.hosts import HostRuns
from launcher.record.layout import RunDir
from launcher.record.note import RunNote
from launcher.record.state import RunState
from launcher.runs.watch.steps import Scores
from launcher.settings import read_clusters, read_hosts
from tui.kit.actions.background import in_background, in_terminal
from tui.kit.drawing.rows import Row, Span
from tui.kit.navigation import navigation
from tui.kit.page import Page
from tui.pages.runs.run_list import ORDERS, RunSummary, arranged

THERE = "there "  # and the machine, and with a blank between them its run


class Elsewhere:
    """The last replies of other machines. A machine without a reply yet has neither runs nor a reason."""

    def __init__(self) -> None:
        self.clusters = read_clusters()
        self._places = {name: HostRuns(name) for name in [*read_hosts(), *self.clusters]}
        self._asked: set[str] = set()
        self._runs: dict[str, RunSummary] = {}

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def ask(self, name: str) -> None:
        """Queries one machine in a thread, which takes seconds, or a minute if it does not respond."""
        from launcher.machine.hosts import runs_of
        from launcher.runs.act.attach_job import jobs_of

        found = jobs_of(name) if name in self.clusters else runs_of(name)
        self._places[name] = found
        self._asked.add(name)
        self._runs |= {f"{THERE}{name} {run.get('run')}": _summary(name, run) for run in found.runs}

    def keys(self, words: str) -> list[str]:
        """The lines of all machines, and of their runs that match `words`."""
        keys = []
        for name, place in self._places.items():
            told = {f"{THERE}{name} {run.get('run')}" for run in place.runs}
            runs = arranged([self._runs[key] for key in self._runs if key in told], ORDERS[0], words)
            if runs or not words or words.lower() in name.lower():
                keys += [f"{THERE}{name}", *(f"{THERE}{name} {run.id}" for run in runs)]
        return keys

    def run(self, key: str) -> RunSummary | None:
        """The run of a line; None for a machine or another line."""
        return self._runs.get(key)

    def heading(self, key: str) -> Row:
        """`me@box   2 runs`, `box-2   away: No route to host`."""
        name = key.removeprefix(THERE)
        place = self._places[name]
        what = "job" if name in self.clusters else "run"
        said = (counted(len(place.runs), what) if place.runs else f"no {what}s") if name in self._asked else "asking …"
        role = "dim" if place.away is None else "warn"
        return [(f"   {name}  ", "title"), (said if place.away is None else f"away: {place.away}", role)]

    def about(self, key: str) -> list[Span]:
        """The effect of `enter` on a line."""
        name, _, run = key.removeprefix(THERE).partition(" ")
        if name in self.clusters:
            words = "enter follows this job" if run else "a Ray cluster; enter on one of its jobs follows it"
        else:
            words = f"enter opens {'this run' if run else 'ppo-tui'} on {name} through ssh"
        return [(words, "dim")]


def _summary(name: str, told: Mapping[str, Any]) -> RunSummary:
    run = RunDir(Path(f"/{name}") / str(told.get("run")).replace("/", "-"))
    state = RunState("lost")
    with suppress(ValueError):
        state = RunState.from_json(told)
    best, seconds = (
        each if isinstance(each := told.get(key), float | int) else None for key in ("best_score", "duration")
    )
    return RunSummary(run.path, state, seconds, 1, Scores.elsewhere(run, best), RunNote())


_FAILED = {
    255: "ssh cannot reach {}, or has lost the connection",
    127: "ppo-tui is not on the PATH of {}; set its path under 'hosts' in config.yaml",
    2: "Could not open it on {0}; list its runs with `ppo-tui --host {0} runs`",
}


async def open_elsewhere(page: Page[Any], name: str, run: str, cluster: bool, *, read_only: bool) -> None:
    """Shows a run of another machine or (`run` empty) its list, until the user leaves; cluster jobs become runs."""
    from launcher.machine.hosts import there
    from launcher.runs.act.attach_job import attach_job

    app = page.app
    try:
        if not cluster:
            command = "watch" if read_only else "attach"
            code = in_terminal(app, there(name, [command, run] if run else []))
            if code in _FAILED:  # its output is lost with the terminal
                app.notify(_FAILED[code].format(name), severity="error", markup=False)
        elif read_only:
            app.notify("Read-only: use `ppo-tui` to follow jobs", severity="warning")
        elif run:
            app.notify(f"Following job {run} of {name} …", timeout=3, markup=False)
            found = await in_background(partial(attach_job, name, run))
            navigation(app).show_run(found.path, page, read_only=False)
    except SuspendNotSupported:
        app.notify(f"Cannot open ssh here; quit and run `ppo-tui --host {name}`", severity="error", markup=False)
    except (OSError, UserError) as error:
        app.notify(str(error), severity="error", markup=False)

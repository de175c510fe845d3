"""The pages of a run, opened with the same keys on all its screens."""

import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textual.binding import ActiveBinding

from launcher.core.text import clean
from launcher.metrics.store import SeriesStore
from launcher.record.layout import RunDir
from launcher.runs.watch.reader import RunReader
from tui.kit.charted import ChartScreen
from tui.kit.charts.axes import plan
from tui.kit.charts.lens import Lens
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView, navigation
from tui.kit.page import Page, run_refusal

ROOMY = 110  # columns from which the footer has room for every page
LESS_USED = {f"dashboard.{page}" for page in ("compare", "samples", "machine", "time", "edit")}


class RunPages(ChartScreen):
    """Opens them for the run of `reader`, which is None until it has read the run."""

    BINDINGS = KEYS["run pages"]

    def __init__(self, directory: Path, *, read_only: bool) -> None:
        super().__init__()
        self.lens = Lens()
        self.directory = directory
        self.read_only = read_only
        self.reader: RunReader | None = None

    def charted(self) -> tuple[SeriesStore, int | None] | None:
        reader = self.reader
        return (reader.series, plan(reader.state, reader.series.last_step)) if reader is not None else None

    @property
    def roomy(self) -> bool:
        return self.size.width >= ROOMY

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """A small screen's footer omits some pages; help and palette have all."""
        found = super().active_bindings
        if not self.roomy:
            return found
        return {
            key: active._replace(binding=replace(active.binding, show=True))
            if active.binding.id in LESS_USED
            else active
            for key, active in found.items()
        }

    def pressed(self) -> None:
        if self.reader is not None and "replay_of" in self.reader.head.keys:
            with contextlib.suppress(OSError):
                self.reader.dir.waits.unlink()

    def refusal(self, action: str) -> str | None:
        if action == "tracker" and self.reader is not None and not self.reader.state.trackers:
            return "no tracker has printed an address or a folder"
        return run_refusal(action, self.reader, read_only=self.read_only)

    @property
    def view(self) -> RunView:
        """The run for its other pages; None until read."""
        assert self.reader is not None
        return RunView(self.reader, self.lens, self.read_only)

    def action_show(self, page: str) -> None:
        if self.reader is not None:
            navigation(self.app).show(page, self.view)

    def action_compare(self) -> None:
        from tui.kit.actions.run_actions import compare_with_others

        compare_with_others(self.app, self.directory)

    def action_edit(self) -> None:
        from tui.kit.actions.editing import edit_run

        if self.reader is not None:
            edit_run(self.app, self.reader.info, read_only=self.read_only)

    def action_export(self) -> None:
        from tui.kit.actions.run_actions import export_run

        self._change(export_run, "export")

    def action_report(self) -> None:
        from tui.kit.actions.run_actions import report_runs

        self._change(report_runs, "report")

    def action_bundle(self) -> None:
        from tui.kit.actions.run_actions import bundle_run

        self._change(bundle_run, "report")

    def action_note(self) -> None:
        from tui.kit.actions.run_actions import note_run

        self._change(note_run, "note")

    def action_tracker(self) -> None:
        from tui.kit.terminal import copied

        assert self.reader is not None
        first, *_ = trackers = self.reader.state.trackers
        words = "Copied: " + "\n".join(clean(each.words) for each in trackers)
        copied(self.app, "tracker", first.url or first.command or first.folder or "", words)

    def action_evaluate(self) -> None:
        from tui.kit.actions.checkpoints import evaluate_run

        self._change(evaluate_run, "start")

    def action_fork(self) -> None:
        from tui.kit.actions.checkpoints import fork_run

        self._change(fork_run, "start")

    def action_merge(self) -> None:
        from tui.kit.actions.checkpoints import merge_run

        self._change(merge_run, "merge")

    def action_resume(self) -> None:
        from tui.kit.actions.checkpoints import resume_run

        self._change(resume_run, "start")

    def action_again(self) -> None:
        from tui.kit.actions.checkpoints import start_again

        self._change(start_again, "start")

    def action_stop(self) -> None:
        from tui.kit.actions.run_actions import stop_run

        assert self.reader is not None
        self.in_worker(partial(stop_run, self.app, self.reader), "stop")

    def _change(self, act: Callable[[Page[Any], RunDir], Coroutine[Any, Any, None]], group: str) -> None:
        """Runs an action on the run in a worker."""
        if self.reader is not None:
            self.in_worker(partial(act, self, self.reader.dir), group)

    def action_runs(self) -> None:
        navigation(self.app).show_runs(self, read_only=self.read_only, current=self.directory)

    def action_neighbour(self, distance: int) -> None:
        from launcher.record.layout import all_runs

        runs = [run.path for run in all_runs()]
        at = runs.index(self.directory) + distance if self.directory in runs else 0
        if 0 <= at < len(runs):
            navigation(self.app).show_run(runs[at], self, read_only=self.read_only)
        else:
            self.notify("No newer run" if distance < 0 else "No older run")

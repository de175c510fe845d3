"""Which runs are compared: those that were marked, and the one in question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from textual.app import App

from launcher.record.layout import all_runs
from launcher.run.reading.compare import FEWEST, MOST

if TYPE_CHECKING:
    from tui.app import PpoTui


def marks(app: App[Any]) -> list[Path]:
    """The runs that are marked, in the order in which they were."""
    return cast("PpoTui", app).marks


def toggle_mark(app: App[Any], run: Path) -> None:
    """Marks a run, or takes its mark away; says so when there are enough."""
    marked = marks(app)
    if run in marked:
        marked.remove(run)
    elif len(marked) < MOST:
        marked.append(run)
    else:
        app.notify(f"At most {MOST} runs can be compared: space takes a mark away.", severity="warning")


def compare_marked(app: App[Any], chosen: Path | None) -> None:
    """Compares the marked runs; a single one with the chosen one."""
    runs = [run for run in marks(app) if run.is_dir()]
    if len(runs) < FEWEST and chosen is not None and chosen not in runs:
        runs.append(chosen)
    _open(app, runs, f"Mark {FEWEST} to {MOST} runs with space: c compares them.")


def compare_with_others(app: App[Any], run: Path) -> None:
    """Compares a run with the marked ones, or with the one before it when none is marked."""
    others = [other for other in marks(app) if other != run and other.is_dir()][: MOST - 1]
    if not others:
        known = [found.path for found in all_runs()]
        others = known[known.index(run) + 1 :][:1] if run in known else []
    _open(app, [run, *others], "There is no older run to compare with; space marks runs in the list (r).")


def _open(app: App[Any], runs: Sequence[Path], otherwise: str) -> None:
    if len(runs) < FEWEST:
        app.notify(otherwise)
        return
    from tui.screens.compare import CompareScreen

    app.push_screen(CompareScreen(runs))

"""The local runs for a list; only changed ones are reread."""

import functools
import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher.core import paths
from launcher.core.files import foreign
from launcher.record import queued
from launcher.record.info import Edit, RunInfo
from launcher.record.layout import RunDir, all_runs
from launcher.record.note import RunNote, read_note
from launcher.record.state import RunState, current
from launcher.runs.supervise.spawn import not_taken_over
from launcher.runs.watch.history import elapsed
from launcher.runs.watch.steps import Scores
from tui.kit.matching import letters
from tui.kit.run_words import verdict_word

ORDERS = ("newest first", "best score first", "longest first", "by name", "by preset", "by tag")
GROUPED = ("by preset", "by tag")
_TURN = 0.1  # seconds of reading scores between two looks at the screen


@dataclass(frozen=True)
class RunSummary:
    """A run in the list. `scores` are read later."""

    path: Path
    state: RunState
    seconds: float | None  # duration
    written: int  # change time of its folder: state.json and the note are replaced, not overwritten
    scores: Scores = field(compare=False)
    note: RunNote = field(default_factory=RunNote)

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def name(self) -> str:
        return self.id.partition("-")[2] or self.id

    @property
    def waits(self) -> bool:
        """Whether it is in the queue, without files yet."""
        return not self.written and self.state.state != "lost"


class RunList:
    """Follows the folder of runs, by a `stat` per run and a read of live ones; `queued` runs have no folder yet."""

    def __init__(self) -> None:
        self.runs: list[RunSummary] = []  # newest first
        self.queued: list[RunSummary] = []
        self.refused = ""  # the first of the files that are not used because of their owner
        self._folder = -1
        self._unread: dict[Path, Scores] = {}
        self._infos: dict[Path, RunInfo] = {}  # run.yaml of runs with compared settings

    def refresh(self) -> bool:
        """Reads the changes. Returns whether there were any."""
        before, folder = self.runs, _written(paths.runs_dir())
        waited, self.queued = self.queued, [_queued(entry) for entry in queued.entries()]
        known = {run.path: run for run in before}
        if folder != self._folder:
            self._folder = folder
            self.runs = [self._summary(run, known.get(run.path)) for run in all_runs()]
            self._unread = {run.path: run.scores for run in self.runs if run.path in self._unread}
        else:
            self.runs = [self._summary(RunDir(run.path), run) for run in before]
        lost = (not_taken_over(RunDir(run.path), run.state) for run in self.runs if run.state.driver_alive is not None)
        found = [*queued.refused(), *map(foreign, (paths.settings_file(), paths.layout_file())), *lost]
        refused = [str(each) for each in found if each is not None]
        self.refused = f"1 of {len(refused)}: {refused[0]}" if refused[1:] else "".join(refused)
        return self.runs != before or self.queued != waited

    def read_scores(self, first: Sequence[Path] = ()) -> bool:
        """Reads scores for a tenth of a second, first the scores of `first`. Returns whether some are left.

        A thousand steps take 6 ms, and ended runs are read once.
        """
        until = time.monotonic() + _TURN
        wanted = [path for path in first if path in self._unread]
        while self._unread and time.monotonic() < until:
            path = wanted.pop(0) if wanted else next(iter(self._unread))
            self._unread.pop(path).poll()
        return bool(self._unread)

    def changes(self, wanted: Collection[Path]) -> dict[Path, list[Edit]]:
        """Differing settings of some runs; reads the run.yaml of new ones."""
        from launcher.runs.watch.run_settings import changes

        runs = [run.path for run in self.runs if run.path in wanted]
        for path in runs:
            if path not in self._infos:
                self._infos[path] = RunDir(path).read_info()
        return dict(zip(runs, changes([self._infos[path] for path in runs]), strict=True))

    def _summary(self, run: RunDir, before: RunSummary | None) -> RunSummary:
        written = _written(run.path)
        if before is not None and before.written == written and not before.state.live:
            return before
        state = current(run, checks=False)
        scores = before.scores if before is not None else Scores(run)
        if before is None or before.state.step != state.step:
            self._unread[run.path] = scores
        seconds = elapsed(run, state, now=state.updated)
        return RunSummary(run.path, state, seconds, written, scores, read_note(run.note))


def _queued(entry: queued.Queued) -> RunSummary:
    state = RunState(entry.word, created=entry.added)
    return RunSummary(entry.run.path, state, None, 0, Scores(entry.run), RunNote(f"uses {entry.uses}"))


def arranged(runs: Sequence[RunSummary], order: str, query: str) -> list[RunSummary]:
    """The runs that match every word of `query`, in one of ORDERS."""
    words = query.lower().split()
    found = [run for run in runs if all(_fits(run, word) for word in words)]
    if order == "best score first":
        found.sort(key=lambda run: -math.inf if run.scores.best is None else run.scores.best, reverse=True)
    elif order == "longest first":
        found.sort(key=lambda run: run.seconds or 0.0, reverse=True)
    elif order == "by name":
        found.sort(key=lambda run: run.name)
    elif order in GROUPED:
        found.sort(key=lambda run: (not group_of(run, order), group_of(run, order)))
    return found


def group_of(run: RunSummary, order: str) -> str:
    """The preset or first tag of a run's heading; may be empty."""
    if order != "by preset":
        return next(iter(run.note.tags), "")
    return run.name if run.waits else _preset(run.path) or run.name


@functools.cache
def _preset(run: Path) -> str | None:
    return RunDir(run).read_head().of_preset


def named(names: Collection[str], query: str) -> list[str]:
    """The names that match every word of `query`."""
    return [name for name in names if all(letters(name.lower(), word) for word in query.lower().split())]


def _fits(run: RunSummary, word: str) -> bool:
    """Whether a word is in the state, verdict or note, or its letters in the name."""
    state = run.state
    words = (run.id, state.state, state.outcome, state.verdict, verdict_word(state.state, state.verdict)[1], run.note)
    return any(word in str(each).lower() for each in words) or letters(run.name.lower(), word) > 0


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0

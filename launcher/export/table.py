"""The content of an export: the steps of a source, and the metrics that were asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from launcher.core.errors import UserError
from launcher.core.text import clean, near_hint
from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
from launcher.record.layout import RunDir
from launcher.runs.watch.run_checklist import LogClock
from launcher.runs.watch.source import LogFile
from launcher.runs.watch.steps import steps

_COLUMNS = ("step", "attempt")  # of every table, before the figures


@dataclass(frozen=True)
class Table:
    """Rows of (attempt, record), in the order of the log, and the names of the figures in them.

    Steps that a resumed attempt repeats are there twice. `chosen` tells names that the user gave from all
    names that there are. A record may lack a figure, and may hold others than `keys`.
    """

    name: str
    keys: list[str]
    chosen: bool
    rows: list[tuple[int, StepRecord]]

    def joined(self) -> SeriesStore:
        """The attempts as one run: of a repeated step the newer figures."""
        store = SeriesStore()
        for attempt, record in self.rows:
            store.add(record, attempt)
        return store


def collect(source: RunDir | LogFile, keys: Sequence[str]) -> Table:
    """The table of a source: of all its figures, or of these. UserError for no steps and unknown figures."""
    rows = list(steps(source))
    if isinstance(source, LogFile):
        console, metrics = (None, source.path) if source.file_logger else (source.path, None)
        clock = LogClock(console, metrics)  # a bare log's steps carry no time
        for _, record in rows:
            record.t = clock(record)
    name = source.id if isinstance(source, RunDir) else source.path.name
    if not rows:
        raise UserError(f"'{name}' has no steps to export")
    logged = {key for _, record in rows for key in record.data}
    known = {key for key in logged if key == clean(key) and key not in _COLUMNS}
    listed = "'ppo-tui metrics SOURCE --json' shows the keys"
    for key in keys:
        if key not in known:
            raise UserError(f"--key {key}: no step of '{name}' has this key", near_hint(key, known, listed))
    return Table(name, list(dict.fromkeys(keys)) or sorted(known), bool(keys), rows)

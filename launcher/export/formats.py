"""Export formats, chosen by the file name."""

import contextlib
import csv
import io
import os
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import orjson

from launcher.core.errors import UserError, of_file, of_writing
from launcher.core.files import make_folder, write_atomic
from launcher.core.text import clean, hint_of
from launcher.export import svg
from launcher.metrics.glossary import meanings
from launcher.metrics.names import charts
from launcher.metrics.records import StepRecord, jsonable
from launcher.metrics.store import SeriesStore
from launcher.record.layout import RunDir
from launcher.runs.watch.log import Log
from launcher.runs.watch.steps import shown_steps
from launcher.search import Words, ranked

_COLUMNS = ("step", "line", "attempt")  # first columns of every table
_NEAR = 3  # metrics that a wrong key may mean


@dataclass(frozen=True)
class Table:
    """Rows of (attempt, record) in log order, and their metric names.

    Steps repeated by a resumed attempt occur twice. `chosen`: the user chose the names [default: all names]. A record
    may lack some of `keys` and have others.
    """

    name: str
    keys: list[str]
    chosen: bool
    rows: list[tuple[int, StepRecord]]
    unit: str = "step"  # what the rows count

    @property
    def column(self) -> str:
        """The name of the first column: `step`, or `line` where the steps are unknown."""
        return self.unit.rpartition(" ")[2]

    def joined(self) -> SeriesStore:
        """The attempts as one run: newer metrics win at repeated steps."""
        store = SeriesStore(self.unit)
        for attempt, record in self.rows:
            store.add(record, attempt)
        return store


Render = Callable[[Table], bytes]

EVENTS = ".tfevents"
_IN_FOLDER = "events.out.tfevents.ppo-tui"
_VERSION = "brain.Event:2"  # name of the first event in a TensorBoard file; readers refuse other versions


def csv_rows(table: Table) -> bytes:
    """One row per step with all digits; nan is `nan`, a missing metric an empty cell."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([table.column, "attempt", *table.keys])
    for attempt, record in table.rows:
        writer.writerow([record.step, attempt, *(record.data.get(key, "") for key in table.keys)])
    return text.getvalue().encode()


def json_lines(table: Table) -> bytes:
    """One object per step as in `ppo-tui metrics --json`, without missing metrics."""
    lines = []
    for attempt, record in table.rows:
        figures = jsonable({key: record.data[key] for key in table.keys if key in record.data})
        lines.append(orjson.dumps({table.column: record.step, "attempt": attempt, **figures}))
    return b"".join(line + b"\n" for line in lines)


def parquet(table: Table) -> bytes:
    """Integers `column` and `attempt`, and a double per metric, null if missing. UserError without pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError(
            "Parquet requires the package pyarrow, which veRL installs", "run `pip install pyarrow`, or export to .csv"
        ) from None
    columns = {
        table.column: pa.array([record.step for _, record in table.rows], pa.int64()),
        "attempt": pa.array([attempt for attempt, _ in table.rows], pa.int64()),
    }
    for key in table.keys:
        columns[key] = pa.array([record.data.get(key) for _, record in table.rows], pa.float64())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def picture(table: Table) -> bytes:
    """Charts of the chosen metrics, or of the main ones."""
    return svg.render(table.name, table.joined(), table.keys if table.chosen else ())


def tensorboard(table: Table) -> bytes:
    """One 32-bit scalar per metric, as in veRL's TensorBoard logger. UserError without the package."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        raise UserError(
            "TensorBoard events require the package tensorboard, which veRL installs",
            "install it in this Python with 'pip install tensorboard'",
        ) from None
    # A step stands once in an event file, so attempts are joined; TensorBoard draws repeats as a zigzag.
    store = table.joined()
    curves = {key: series for key in table.keys if (series := store.get(key)) is not None}
    content = io.BytesIO()
    writer = RecordWriter(content)
    writer.write(Event(wall_time=store.times[0], file_version=_VERSION).SerializeToString())
    for step, t in zip(store.steps, store.times, strict=True):
        values = [
            Summary.Value(tag=key, simple_value=value)
            for key, series in curves.items()
            if (value := series.at(step)) is not None
        ]
        if values:
            event = Event(wall_time=t, step=step, summary=Summary(value=values))
            writer.write(event.SerializeToString())
    return content.getvalue()


_RENDERS: dict[str, Render] = {".csv": csv_rows, ".jsonl": json_lines, ".parquet": parquet, ".svg": picture}


def export(source: RunDir | Log, to: str, keys: Sequence[str] = (), *, force: bool = False) -> Path:
    """Writes a source's metrics into the file `to`; returns that file.

    The extension sets the format; an existing folder, or a name without an extension, is a folder for TensorBoard.
    Replaces an existing file only with `force`. Raises UserError.
    """
    path, render = destination(to)
    if path.exists() and not force:
        raise UserError(f"--output {to}: {path} already exists", "replace it with --overwrite")
    if isinstance(source, Log) and path.exists() and path.samefile(source.path):
        raise UserError(f"--output {to} is the log itself", "choose another file")
    content = render(collect(source, keys))
    try:
        if path.name == _IN_FOLDER:
            make_folder(path.parent)
        write_atomic(path, content)
    except OSError as error:
        raise of_writing(path, error, f"--output {to}") from None
    return path


def destination(to: str) -> tuple[Path, Render]:
    """The file to write, and its writer. Raises UserError."""
    try:
        path = Path(to).expanduser()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
    except (OSError, RuntimeError, ValueError) as error:  # too long, forbidden, an unknown home, a NUL
        raise of_file(f"--output {to}: cannot be written", error) from None
    if to.endswith(os.sep) or path.is_dir() or not path.suffix:
        return _in_folder(path), tensorboard
    if EVENTS in path.name:  # TensorBoard finds its files by this word, anywhere in the name
        return path, tensorboard
    render = _RENDERS.get(path.suffix.lower())
    if render is None:
        raise UserError(
            f"--output {to}: '{path.suffix}' is not a supported format",
            f"use {', '.join(_RENDERS)}, or {EVENTS} or a folder for TensorBoard",
        )
    return path, render


def _in_folder(folder: Path) -> Path:
    """The event file in a separate folder, as TensorBoard draws all event files of a folder as one run."""
    if folder.is_dir() and (others := {p.name for p in folder.glob("*tfevents*")} - {_IN_FOLDER}):
        raise UserError(
            f"{folder} contains events of another run ({min(others)})", "choose another folder for this run"
        )
    return folder / _IN_FOLDER


def require_known(keys: Iterable[str], known: Set[str], name: str, source: str) -> None:
    """Raises UserError for a key missing in all steps of the run or log `name`, with the nearest ones."""
    on_screen = {key: chart.word for chart in charts() for key in chart.keys}
    for wrong in (key for key in keys if key not in known):
        words = (Words(f"{key} {on_screen.get(key, '')}", "", meaning) for key, meaning in meanings(known).items())
        near = [each.name.split()[0] for each in ranked(wrong, words, lambda each: each)[:_NEAR]]
        hint = hint_of("' or '".join(near), f"'ppo-tui metrics {source} --json' shows the keys")
        raise UserError(f"--key {wrong}: no step of '{name}' has this key", hint)


def collect(source: RunDir | Log, keys: Sequence[str]) -> Table:
    """The table of all or some metrics of a source. UserError without steps, and for unknown metrics."""
    numbering, rows = shown_steps(source)
    if isinstance(source, Log):
        source.clock()([record for _, record in rows])  # a bare log's steps carry no time
    name = source.id if isinstance(source, RunDir) else source.path.name
    if not rows:
        raise UserError(f"'{name}' has no steps to export")
    logged = {key for _, record in rows for key in record.data}
    known = {key for key in logged if key == clean(key) and key not in _COLUMNS}
    require_known(keys, known, name, "SOURCE")
    return Table(name, list(dict.fromkeys(keys)) or sorted(known), bool(keys), rows, numbering.unit)

"""Which format a file name means, and the writing of the file."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from launcher.errors import UserError
from launcher.export import csv, jsonl, parquet, svg, tensorboard
from launcher.export.table import Table, collect
from launcher.files import write_atomic
from launcher.record.layout import RunDir
from launcher.run.reading.source import LogFile

Render = Callable[[Table], bytes]

EVENTS = ".tfevents"
_RENDERS: dict[str, Render] = {
    ".csv": csv.render,
    ".jsonl": jsonl.render,
    ".parquet": parquet.render,
    ".svg": svg.render,
}
_IN_FOLDER = "events.out.tfevents.ppo-tui"


def export(source: RunDir | LogFile, to: str, keys: Sequence[str] = (), *, force: bool = False) -> Path:
    """Writes the figures of a source into the file that `to` names; returns that file.

    The ending is the format; an existing folder, or a name without ending, is a folder for TensorBoard. A
    file that is there is replaced with `force` only. Raises UserError.
    """
    path, render = destination(to)
    if path.exists() and not force:
        raise UserError(f"--to {to}: {path} exists; --force replaces it")
    if isinstance(source, LogFile) and path.exists() and path.samefile(source.path):
        raise UserError(f"--to {to}: that is the log itself; name another file")
    content = render(collect(source, keys))
    try:
        if path.name == _IN_FOLDER:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise UserError(f"--to {to}: {path} cannot be written ({error.strerror})") from None
    return path


def destination(to: str) -> tuple[Path, Render]:
    """The file that is to be written, and how."""
    path = Path(to).expanduser()
    if to.endswith(os.sep) or path.is_dir() or not path.suffix:
        return _in_folder(path), tensorboard.render
    if EVENTS in path.name:  # TensorBoard finds its files by this word, wherever it stands in the name
        return path, tensorboard.render
    render = _RENDERS.get(path.suffix.lower())
    if render is None:
        raise UserError(
            f"--to {to}: nothing is written to '{path.suffix}'; use {', '.join(_RENDERS)}, "
            f"or {EVENTS} or a folder for TensorBoard"
        )
    return path, render


def _in_folder(folder: Path) -> Path:
    """The event file in a folder of its own: TensorBoard draws all event files of a folder as one run."""
    if folder.is_dir() and (others := {p.name for p in folder.glob("*tfevents*")} - {_IN_FOLDER}):
        raise UserError(f"{folder} holds events of another run ({min(others)}): name a folder for this one")
    return folder / _IN_FOLDER

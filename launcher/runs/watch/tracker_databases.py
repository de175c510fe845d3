"""Reads runs from the SQLite databases of MLflow and Trackio, without their packages.

Checked against files of mlflow 3.17 and trackio 0.43. veRL: `verl/utils/tracking.py: _MlflowLoggingAdapter,
_compute_mlflow_params_from_objects`.
"""

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from launcher.console.config_dump import flatten
from launcher.core.errors import UserError
from launcher.core.progress import Meter
from launcher.core.text import clean
from launcher.runs.watch.log import Log

_MAGIC = b"SQLite format 3\0"
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False}
_ENDS = {"FINISHED": 0, "FAILED": 1}
_INFINITE = 1.7e308  # MLflow stores infinity as the largest number


def files(path: Path) -> list[Path]:
    """A database, or the databases in a folder, that MLflow or Trackio may have written."""
    if path.is_file():
        return [path] if path.suffix == ".db" and path.open("rb").read(len(_MAGIC)) == _MAGIC else []
    return [file for each in sorted(path.glob("*.db")) for file in files(each)] if path.is_dir() else []


def read(file: Path, meter: Meter) -> list[Log]:
    """The runs of a database, oldest first; empty for other programs' databases. Raises UserError for a damaged one."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as base:
            tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            kinds: tuple[tuple[set[str], Callable[..., Iterator[Log]]], ...] = (
                ({"runs", "metrics", "params", "experiments"}, _mlflow),
                ({"metrics", "configs"}, _trackio),
            )
            for names, reader in kinds:
                if names <= tables:
                    (rows,) = base.execute("SELECT count(*) FROM metrics").fetchone()
                    share = file.stat().st_size / max(rows, 1)
                    return list(reader(file, base, partial(meter.add, share)))
            return []
    except sqlite3.Error as error:
        hint = "copy it while no program writes to it, and import the copy"
        raise UserError(f"cannot read {file}: {error}", hint) from None
    except (TypeError, AttributeError, ValueError, RecursionError):  # from another program, or a stranger
        raise UserError(f"{file} has other values than MLflow and Trackio write", "import the console log") from None


def _mlflow(file: Path, base: sqlite3.Connection, row: Callable[[], None]) -> Iterator[Log]:
    runs = "SELECT run_uuid, name, status, start_time FROM runs WHERE lifecycle_stage = 'active' ORDER BY start_time"
    for id, name, status, start in list(base.execute(runs)):
        found = _log(file, name or id, start / 1000 if start else None)
        found.exit_code = _ENDS.get(status)
        named = base.execute("SELECT key, value FROM params WHERE run_uuid = ?", (id,))
        found.config = _listed({key.replace("/", "."): _meant(value) for key, value in named})
        metrics = "SELECT key, value, is_nan, step, timestamp FROM metrics WHERE run_uuid = ? ORDER BY timestamp"
        for key, value, nan, step, at in base.execute(metrics, (id,)):
            row()
            value = math.nan if nan else math.copysign(math.inf, value) if abs(value) > _INFINITE else value
            found.add(step, at / 1000, {key.replace("_at_", "@"): value})
        yield found


def _meant(text: str) -> Any:
    """The value of a parameter, which MLflow stores as text."""
    if text in _WORDS:
        return _WORDS[text]
    with suppress(ValueError):
        return json.loads(text)
    return text


def _listed(flat: dict[str, Any]) -> dict[str, Any]:
    """The keys with their lists, which veRL flattens to length and items: `a.list_len`, `a.0`, `a.1`."""
    lists = {key.removesuffix(".list_len"): value for key, value in flat.items() if key.endswith(".list_len")}
    plain = {key: value for key, value in flat.items() if not any(key.startswith(f"{name}.") for name in lists)}
    return plain | {name: [flat.get(f"{name}.{at}") for at in range(size)] for name, size in lists.items()}


def _trackio(file: Path, base: sqlite3.Connection, row: Callable[[], None]) -> Iterator[Log]:
    columns = {name for _, name, *_ in base.execute("PRAGMA table_info(metrics)")}
    id = "run_id" if "run_id" in columns else "run_name"  # older files have no ids
    runs: dict[str, Log] = {}
    rows = base.execute(f"SELECT {id}, run_name, step, timestamp, metrics FROM metrics ORDER BY id")
    for run, name, step, at, values in rows:
        row()
        if run not in runs:
            runs[run] = _log(file, name, _time(at))
        runs[run].add(step, _time(at), numbers(json.loads(values).items()))
    for run, name, config in base.execute(f"SELECT {id}, run_name, config FROM configs"):
        if run not in runs:
            runs[run] = _log(file, name, None)
        runs[run].config = flatten({key: each for key, each in json.loads(config).items() if key[:1] != "_"})
    yield from runs.values()


def _time(text: str) -> float | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text).timestamp()
    return None


def _log(file: Path, name: str, started: float | None) -> Log:
    return Log(file, name=clean(name), folder=file.absolute().parent, started=started)


def numbers(items: Iterable[tuple[str, Any]]) -> dict[str, float]:
    """The numeric values. Trackers write NaN and infinity as words, because JSON has neither."""
    found = {}
    for key, value in items:
        if value in ("NaN", "Infinity", "-Infinity"):
            value = float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not key.startswith("_"):
            with suppress(OverflowError):
                found[key] = float(value)
    return found

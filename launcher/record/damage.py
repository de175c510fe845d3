"""Damage to a run: unreadable fields, records of a later ppo-tui, and errors inside its supervisor (failures.json)."""

import contextlib
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from launcher.core.format import counted
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.info import RunInfo, mapping_of
from launcher.record.json import RARE, SCHEMA, Record
from launcher.record.layout import RunDir
from launcher.record.note import RunNote

_SCHEMA = re.compile(rb"^schema: (\d{1,9})\s*$", re.MULTILINE)


def damage(run: RunDir, attempt: int | None, *, settings: bool) -> tuple[str, ...]:
    """`launch.json: argv`, `run.yaml: not YAML`: damage to the small files of a run and its newest attempt, except
    state.json.

    `settings`: checks all of run.yaml, which takes 10 ms, instead of only its name.
    """
    written = _stamp(run.run_yaml)
    if written is None and not run.path.is_dir():
        return ()  # removed meanwhile
    last = run.attempt(attempt) if attempt is not None else run.last_attempt()
    of_attempt: list[tuple[Path, type[Record]]] = [(last.launch, LaunchRecord), (last.exit, Exit)] if last else []
    damaged = [each for path, kind in ((run.note, RunNote), *of_attempt) for each in _of_json(path, kind, _stamp(path))]
    return (*_of_settings(run.run_yaml, settings, written), *damaged)


def schema(run: RunDir) -> int:
    """The highest schema of a run's files; above ours, it is from a later ppo-tui."""
    numbers = [0]
    with contextlib.suppress(OSError):
        numbers += [int(each) for each in _SCHEMA.findall(run.run_yaml.read_bytes())]
    for path in (run.state, *((last.launch,) if (last := run.last_attempt()) else ())):
        with contextlib.suppress(OSError, ValueError):
            numbers.append(schema_of(orjson.loads(path.read_bytes())))
    return max(numbers)


def schema_of(value: object) -> int:
    """The number `schema` of a JSON object; 0 without one."""
    number = value.get("schema") if isinstance(value, Mapping) else None
    return number if type(number) is int else 0


def later(number: int) -> str:
    """Why a run with this schema cannot be changed."""
    return f"written by a newer ppo-tui (schema {number}, this one supports {SCHEMA})"


def _stamp(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        stat = path.stat()
        return stat.st_mtime_ns, stat.st_size
    return None


@functools.lru_cache(maxsize=4096)
def _of_json(path: Path, kind: type[Record], stamp: tuple[int, int] | None) -> tuple[str, ...]:
    """Cached by `stamp`, which changes with the file; None without a file."""
    if stamp is None:
        return ()
    try:
        fields = kind.examine(orjson.loads(path.read_bytes()))[1]
    except OSError as error:
        return (f"{path.name}: {error.strerror}",)
    except ValueError:
        return (f"{path.name}: not JSON",)
    return tuple(f"{path.name}: {field}" for field in fields)


@functools.lru_cache(maxsize=4096)
def _of_settings(path: Path, whole: bool, stamp: tuple[int, int] | None) -> tuple[str, ...]:
    value: Any = None
    if stamp is None:
        return (f"{path.name}: missing",)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = path.read_text("utf-8")
        if not whole:
            return () if re.search("^name:", text, re.MULTILINE) else (f"{path.name}: name",)
        value = mapping_of(text)
    fields = RunInfo.examine(value)[1] if value else ("not YAML",)
    return tuple(f"{path.name}: {field}" for field in fields)


@dataclass(frozen=True, slots=True)
class Failure(Record):
    """An error of ppo-tui in one part of a supervisor, its place in the code, and its count.

    Times are unix seconds. `kind`: name of the exception class. `traceback`: the first one; state.json omits it.
    """

    part: str
    error: str
    place: str
    kind: str = field(default="", metadata=RARE)
    attempt: int | None = None
    times: int = 1
    first: float | None = None
    last: float | None = None
    traceback: str = field(default="", metadata=RARE)

    def __str__(self) -> str:
        """`failures.json: steps: KeyError: 'x' (12 times)`, in the form of `record.damage`."""
        times = f" ({counted(self.times, 'time')})" if self.times > 1 else ""
        return f"failures.json: {self.part}: {self.error}{times}"


@dataclass(frozen=True, slots=True)
class Failures(Record):
    """All failures of a run, oldest first."""

    failures: tuple[Failure, ...] = ()

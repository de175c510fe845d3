"""A log from elsewhere: resolves SOURCE on the command line, reads its rows, copies it into a run."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from launcher.core.errors import NoStep, NoStepYet, UserError
from launcher.core.files import require_file
from launcher.core.format import counted
from launcher.core.progress import SILENT, Meter, Progress, unseen
from launcher.core.tail import chunks, records
from launcher.core.text import clean
from launcher.metrics.frameworks import Framework, Settings, is_ours, of_names, of_settings
from launcher.metrics.records import StepRecord, is_step, jsonable, parse_record
from launcher.metrics.timing import seconds_of
from launcher.record.layout import AttemptDir, RunDir, called, find, refuse_run
from launcher.record.numbering import STEPS, Numbering
from launcher.runs.watch.unnamed import SHOWN, Unnamed, of_lines, of_rows

if TYPE_CHECKING:
    from launcher.console.counted import Counted

_LOOKED = 10_000  # lines of which one is a record in a metrics.jsonl of veRL
_FIRST = 100  # steps of a tracker whose names identify the framework
_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
_STAMP = re.compile(rb"(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d),\d{3}")
_VERLS = re.compile(rb"ve(?:rl|RL)|step:\d{1,15} - ")
_TEXT = bytes(range(32, 256)) + b"\a\b\t\n\v\f\r\x1b"
_GIVE_NAMES = f"name its metrics in a table, {SHOWN}: 'ppo-tui health LOG --names FILE'"
_EXPECTED = "use the console log of a run, or its metrics.jsonl"


@dataclass
class Log:
    """A console, the steps of one training, or both. `path`: the named file. `framework`: its program, if not veRL.

    `table`: a file with a row per step, under the names of the framework `rows` or as veRL's file logger writes it.
    `tracked`: the steps of a tracker, whose `config` has veRL keys with paths below `folder`. `notes`: unreadable
    parts. `before`: counted lines of the logs that it continues. `known`: their numbering, or that of the original.
    """

    path: Path
    console: Path | None = None
    table: Path | None = None
    framework: Framework | None = None
    rows: Framework | None = None
    notes: list[str] = field(default_factory=list)
    name: str = ""
    folder: Path = Path()
    started: float | None = None
    config: Settings = field(default_factory=dict)
    tracked: dict[int, StepRecord] = field(default_factory=dict)
    exit_code: int | None = None
    before: int = 0
    known: Numbering | None = None

    @classmethod
    def of(cls, path: Path, kind: str, framework: Framework | None) -> "Log":
        """A log with kind and framework from a record."""
        console, table = (path if kind == "console" else None), (path if kind in ("metrics", "rows") else None)
        return cls(path, console, table, framework, framework if kind == "rows" else None)

    @property
    def title(self) -> str:
        """The framework's name; empty for veRL."""
        return self.framework.title if self.framework is not None else ""

    @property
    def kind(self) -> str:
        """See `launcher.record.attempt.Followed`."""
        if self.table is not None:
            return "rows" if self.rows else "metrics"
        return "console" if self.console == self.path else "tracker"

    @property
    def files(self) -> Sequence[Path]:
        """Its source files."""
        return (self.path,) if self.kind == "tracker" else [*filter(None, (self.console, self.table))]

    @property
    def both(self) -> bool:
        """Whether it has both a console and rows."""
        return bool(self.console and (self.table or self.tracked))

    def add(self, step: Any, t: object, data: Mapping[str, float]) -> None:
        """Adds metrics to a tracker's step, which may be written in parts."""
        if is_step(step) and data:
            t = float(t) if isinstance(t, (int, float)) and math.isfinite(t) else self.started or 0.0
            record = self.tracked.setdefault(step, StepRecord(step, t, None, {}))
            record.data |= data
            record.t = t

    def translate(self, names: Framework | None) -> None:
        """Renames another framework's tracked metrics to ours, and sets their step numbers."""
        from launcher.runs.watch.foreign import iterations, row_steps

        found = sorted(self.tracked.values(), key=lambda record: record.step)
        seen = {name for record in found[:_FIRST] for name in record.data}
        by = None if names else of_settings(self.config)
        framework = names or of_names(seen) or (by if by and by.known(seen) else None)
        if not (names.known(seen) if names else framework or any(map(is_ours, seen))) and found:
            if by is not None and len(found) < _FIRST:  # before its first step
                self.framework, self.tracked = by, {}
                return
            table = of_rows({"_step": record.step, **record.data} for record in found)
            raise Unnamed(f"{self.path} has too few names of a known framework", table or "")
        if framework is None or framework.own:
            return
        self.framework, self.tracked = framework, {}
        rows = ({"_step": record.step, "_timestamp": record.t, **record.data} for record in found)
        for step in row_steps(iterations(rows, framework) if framework.iteration else rows, framework):
            self.add(step.step, step.t, step.data)
        printed = (f"{key}={value}" for key, value in self.config.items())
        self.config = framework.named_in([self.name, *_names(self.path), *seen, *printed]) | framework.keys(self.config)

    def text(self) -> Iterator[bytes]:
        """Its console in pieces; empty without one."""
        return chunks(self.console) if self.console is not None else iter(())

    def lines(self, meter: Meter = SILENT, *, whole: bool = True) -> Iterator[bytes]:
        """Its rows as lines of a metrics.jsonl; empty for a console. `whole`: the last one is also complete."""
        if self.rows is not None:
            return (orjson.dumps({"step": each.step, "data": jsonable(each.data)}) for each in self._rows(meter, whole))
        if self.table is not None:
            return records(self.table, meter)
        ended = whole or self.exit_code is not None
        return (self.tracked[step].to_line().rstrip() for step in sorted(self.tracked)[: None if ended else -1])

    def steps(self) -> Iterator[StepRecord]:
        """Its steps, from its rows or its console; `t` is 0 if the log has no times."""
        if self.rows is not None:
            yield from (StepRecord(step.step, 0.0, None, step.data) for step in self._rows(SILENT, whole=True))
        elif self.table is not None or self.tracked:
            for found in filter(None, map(parse_record, self.lines())):
                yield StepRecord(found[0], 0.0, None, found[1])
        else:
            from launcher.console.reader import ConsoleReader, StepLine  # its patterns take longer than this module

            reader = ConsoleReader(self.framework, only_steps=True)
            for events in chain(map(reader.feed, self.text()), map(ConsoleReader.close, [reader])):
                for event in events:
                    if isinstance(event, StepLine):
                        yield StepRecord(event.step, 0.0, event.offset, event.data)

    @cached_property
    def counted(self) -> "Counted | None":
        """Its console lines, if none has a step number."""
        from launcher.console.reader import ConsoleReader, StepLine

        if self.framework is None or self.console is None or self.table is not None or self.tracked:
            return None
        reader = ConsoleReader(self.framework, only_steps=True)
        for events in chain(map(reader.feed, self.text()), map(ConsoleReader.close, [reader])):
            if reader.counted is None and any(isinstance(event, StepLine) for event in events):
                return None
        return reader.counted

    def number(self, every: int | None) -> None:
        """Sets the interval in steps between two lines without step numbers, if given."""
        if every is not None and self.framework is not None:
            self.framework = replace(self.framework, every=every)

    @property
    def numbers_note(self) -> str:
        """A note that the step numbers are unknown, if so."""
        note = f"{self.path.name} has no step numbers: set the steps per line with --every N"
        return "" if self.numbering.every else note

    @property
    def numbering(self) -> Numbering:
        """The step numbers of its lines."""
        return self.known or (STEPS if self.counted is None else self.counted.numbering)

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """The first and the last step."""
        found = [record.step for record in self.steps()]
        return (min(found), max(found)) if found else None

    def copy(self, attempt: AttemptDir) -> "Log":
        """Writes it as files of an attempt, and returns that log."""
        if self.console is not None:
            with attempt.console.open("wb") as file:
                file.writelines(self.text())
        if self.table is not None or self.tracked:
            with attempt.metrics.open("wb") as file:
                file.writelines(line + b"\n" for line in self.lines())
        return self.copied(attempt)

    def copied(self, attempt: AttemptDir) -> "Log":
        """Its copy in an attempt, with rows in the form of veRL's file logger."""
        console, table = attempt.logs()
        return replace(self, console=console, table=table, rows=None, tracked={}, known=self.numbering)

    def clock(self) -> "LogClock":
        """The times of its steps."""
        if self.tracked:
            times = {step: record.t for step, record in self.tracked.items()}
            return LogClock(self.started or min(times.values()), times)
        return LogClock.of(self.console, self.path)

    def _rows(self, meter: Meter, whole: bool) -> Iterator[Any]:
        from launcher.runs.watch import foreign

        assert self.table is not None and self.rows is not None
        return foreign.row_steps(foreign.rows(chunks(self.table, meter), self.rows.steps), self.rows, whole=whole)


@dataclass
class LogClock:
    """The times of a log's steps: a tracker's `times`, or an estimate from the step durations, because step lines have
    no time. `now`: time of the last one.
    """

    now: float
    times: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, console: Path | None, other: Path | None = None) -> "LogClock":
        """From a console's first time stamp; without one, the log ends at its last change."""
        if console is not None and (stamp := _STAMP.search(next(chunks(console), b""))):
            with suppress(ValueError):
                return cls(datetime.strptime(stamp[1].decode(), "%Y-%m-%d %H:%M:%S").timestamp())
        path = console or other
        assert path is not None
        return cls(path.stat().st_mtime)

    def __call__(self, records: Sequence[StepRecord]) -> None:
        """Sets the times of these steps."""
        for record in records:
            self.now = record.t = self.times.get(record.step, self.now + seconds_of(record.data))


def resolve(
    word: str,
    names: Framework | None = None,
    progress: Progress = unseen,
    note: Callable[[str], None] | None = None,
    *,
    text: bool = False,
) -> RunDir | Log:
    """Resolves SOURCE: an existing file or a run. `names`: a user's table for a file. `note`: as for a run.

    `text`: only reads text, of any program and without steps. Raises UserError for a word that is both.
    """
    from launcher.runs.watch.tracker_files import is_tracker

    path = Path(word).expanduser()
    if path.is_dir() and (path / "run.yaml").exists():
        return RunDir(path.absolute())
    if is_tracker(path) or path.is_file():
        refuse_run(word)
        return newest(word, names, progress, text=text)
    if path.is_dir() and "/" in word:
        raise UserError(f"'{word}' is a folder without a run", _EXPECTED)
    if "/" in word or (path.suffix in (".log", ".jsonl", ".gz", ".txt") and called(word) is None):
        require_file(path, hint="use a console log, a metrics.jsonl or a run")
    return find(word, note)


def newest(word: str, names: Framework | None = None, progress: Progress = unseen, *, text: bool = False) -> Log:
    """The newest log of `open_logs`, with a note about their number."""
    *others, log = open_logs(word, names, progress, text=text)
    if others:
        log.notes.append(f"{word} has {counted(len(others) + 1, 'run')}; this is the newest: {log.name}")
    return log


def open_logs(
    word: str, names: Framework | None = None, progress: Progress = unseen, *, text: bool = False
) -> list[Log]:
    """The log in a file, or all logs in a tracker's file or folder, oldest first. Raises UserError for other files."""
    from launcher.runs.watch import tracker_files

    path = Path(word).expanduser()
    if tracker_files.is_tracker(path):
        logs = tracker_files.read(path, names, progress, text=text)
        if text and (console := logs[-1].console) is not None:
            with suppress(UserError):
                return [recognized(console, text=True)]
        for log in logs:  # a console of a known framework counts
            console, log.console = log.console, None
            with suppress(UserError):
                log.console = recognized(console, log.framework).console if console else None
            if not (log.tracked or log.console or (text and log.framework)):
                raise no_metrics(log.path, log.notes)
        return logs
    if path.is_dir():
        raise UserError(f"'{word}' is a folder without a run of wandb or events of TensorBoard", _EXPECTED)
    require_file(path, hint=f"{_EXPECTED}, plain or .gz")
    return [recognized(path, names, text=text)]


def recognized(path: Path, names: Framework | None = None, *, text: bool = False) -> Log:
    """The file as a log. Raises UserError if no known framework wrote it or, for `text`, if it has no error."""
    log = _recognized(path, names, text)
    if log.framework is not None:
        start = next(chunks(path), b"").decode(errors="replace")
        log.config = log.framework.named_in([*_names(path), start])
    return log


def _recognized(path: Path, names: Framework | None, text: bool) -> Log:
    from launcher.console.recognize import has_errors, is_script, is_verl_output  # imports the catalog of causes
    from launcher.runs.watch import foreign

    def read() -> Iterator[bytes]:
        return chunks(path)

    start = next(read(), b"")
    if not start:
        raise NoStepYet(f"{path} is empty", _EXPECTED)
    if _is_binary(b"".join(islice(read(), 2))):
        raise UserError(f"{path} is a binary file", _EXPECTED)
    log = Log(path, name=stem(path))
    if names is None and start.lstrip().startswith(b'{"') and any(map(parse_record, islice(records(path), _LOOKED))):
        return replace(log, table=path)
    if framework := foreign.recognize_rows(path, read(), names, text=text):
        rows = foreign.rows_of_cut(read())
        notes = [] if rows is None else [f"{path.name} is truncated: {counted(rows, 'complete row')} were read"]
        return replace(log, table=path, framework=framework, rows=framework, notes=notes)
    if framework := foreign.recognize(read(), names):
        return replace(log, console=path, framework=framework)
    other = foreign.without_steps(start)
    if text and (other is not None or has_errors(read())):
        return replace(log, console=path, framework=other)
    unknown = None if names_verl(path) else of_lines(read())
    if names is None and unknown is None:
        if other is not None:
            hint = f"'ppo-tui attach {path}' waits for one; 'ppo-tui diagnose {path}' shows its errors"
            raise NoStepYet(f"{path} is a log of {other.title} without a step", hint)
        if is_verl_output(read):
            return replace(log, console=path)
    if is_script(start):
        raise UserError(f"{path} has no output of veRL", f"'ppo-tui preset import {path}' turns a script into a preset")
    if text:
        raise UserError(f"{path} has no error, and no output of veRL or another known framework", _EXPECTED)
    raise _without_metrics(path, names, unknown)


def _without_metrics(path: Path, names: Framework | None, unknown: tuple[int, str, str] | None) -> UserError:
    """The error for a text of unknown form; shows the line `unknown`, or the first one with several numbers."""
    from launcher.runs.watch.foreign import rows

    if names is None and (table := of_rows(rows(chunks(path), None))):
        return Unnamed(f"{path} is a table with too few names of a known framework", table)
    numbered = ((number, line) for number, line in enumerate(records(path), 1) if len(_NUMBER.findall(line)) > 2)
    number, line = unknown[:2] if unknown else next(numbered, (0, b""))
    shown = clean(line if isinstance(line, str) else line[:300].decode(errors="replace")).strip()[:60]
    seen = f"; line {number} has numbers: {shown}" if shown else "; no line has several numbers"
    if names is not None:
        hint = f"describe its lines in the table: [[lines]], {SHOWN}"
        return NoStep(f"{path} has no line with a name of --names{seen}", hint)
    what = f"{path} has no output of veRL or another known framework{seen}"
    return Unnamed(what, unknown[2]) if unknown else NoStep(what, _GIVE_NAMES)


def _names(path: Path) -> Sequence[str]:
    """The names that a log has by its place, such as OUTPUT/checkpoint-40/trainer_state.json."""
    return [stem(Path(part)) for part in path.absolute().parts[-3:]]


def stem(path: Path) -> str:
    """The file name of a log without extensions."""
    name = path.name.removesuffix(".gz")
    for suffix in (".log", ".jsonl", ".txt", ".json", ".csv"):
        name = name.removesuffix(suffix)
    return name


def no_metrics(path: Path, notes: Sequence[str]) -> UserError:
    """The error for files without a step, with the reason."""
    why = f" ({'; '.join(notes)})" if notes else ""
    return NoStepYet(f"{path} has no metrics{why}", "use another run, or the console log of this one")


def names_verl(path: Path) -> bool:
    """Whether a log mentions veRL. Ray's lines alone may come from another framework."""
    return any(map(_VERLS.search, chunks(path)))


def _is_binary(begin: bytes) -> bool:
    """Whether a file with this beginning is binary; a truncated log may begin with zero bytes."""
    text = begin.lstrip(b"\0")
    return not text or (b"\0" in begin and len(text.translate(None, _TEXT)) > 0.05 * len(text))

"""SOURCE on the command line: a run, a console log, or a metrics.jsonl; gz allowed for files."""

import codecs
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from launcher.core import gap
from launcher.core.errors import NoStep, NoStepYet, UserError, of_file
from launcher.core.files import require_file
from launcher.core.format import counted
from launcher.core.progress import SILENT, Meter, Progress, unseen
from launcher.core.tail import lines_of
from launcher.core.text import clean
from launcher.metrics.frameworks import Framework
from launcher.metrics.records import parse_record
from launcher.record.layout import RunDir, called, find, refuse_run

if TYPE_CHECKING:
    from launcher.runs.watch.tracker_run import TrackerFiles

_CHUNK = 1 << 18
_LOOKED = 10_000  # lines of which one is a record in a metrics.jsonl of veRL
_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
_VERLS = re.compile(rb"ve(?:rl|RL)|step:\d{1,15} - ")
_TEXT = bytes(range(32, 256)) + b"\a\b\t\n\v\f\r\x1b"
_EXPECTED = "use the console log of a run, or its metrics.jsonl"


@dataclass(frozen=True)
class LogFile:
    """A file from elsewhere. `file_logger`: it has a row per step and is not a console. `framework`: not veRL's.

    `tracked` is its content where a tracker has written it; `notes`: what of it could not be read.
    """

    path: Path
    file_logger: bool
    framework: Framework | None = None
    tracked: "TrackerFiles | None" = None
    notes: tuple[str, ...] = ()

    @property
    def console(self) -> Path | None:
        return self.tracked.console if self.tracked else None if self.file_logger else self.path

    def lines(self, meter: Meter = SILENT) -> Iterator[bytes]:
        """Its rows as lines of a metrics.jsonl; none of a console."""
        if self.tracked is not None:
            return (self.tracked.steps[step].to_line() for step in sorted(self.tracked.steps))
        return records(self.path, self.framework, meter) if self.file_logger else iter(())


def resolve(
    word: str,
    names: Framework | None = None,
    progress: Progress = unseen,
    note: Callable[[str], None] | None = None,
    *,
    text: bool = False,
) -> RunDir | LogFile:
    """Finds the SOURCE: an existing file, or else a run. `names` is the user's table for a file, `note` as for a run.

    `text`: only the text of a file is read, so that it needs no steps and any program may have written it. Raises
    UserError for a word that is both.
    """
    from launcher.runs.watch.tracker_files import is_tracker, newest

    path = Path(word).expanduser()
    if path.is_dir() and (path / "run.yaml").exists():
        return RunDir(path.absolute())
    if (tracker := is_tracker(path)) or path.is_file():
        refuse_run(word)
    if tracker:
        tracked = newest(path, names, progress)
        if text and tracked.console is not None:
            return _recognized(tracked.console, None, text=True)
        return of_tracker(tracked)
    if path.is_file():
        return _recognized(path, names, text=text)
    if path.is_dir() and "/" in word:
        raise UserError(f"'{word}' is a folder without a run", _EXPECTED)
    if "/" in word or (path.suffix in (".log", ".jsonl", ".gz", ".txt") and called(word) is None):
        require_file(path, hint="use a console log, a metrics.jsonl or a run")
    return find(word, note)


def of_tracker(tracked: "TrackerFiles") -> LogFile:
    """A tracker's run as a log; its console counts if a known framework printed it."""
    from launcher.runs.watch.tracker_run import no_metrics

    console, tracked.console = tracked.console, None
    with suppress(UserError):
        tracked.console = _recognized(console, tracked.framework).path if console else None
    if not (tracked.steps or tracked.console):
        raise no_metrics(tracked.path, tracked.notes)
    return LogFile(tracked.path, True, tracked.framework, tracked, (*tracked.notes,))


def log_file(word: str, names: Framework | None = None) -> LogFile:
    """A file from elsewhere, for `import` and `demo`."""
    path = Path(word).expanduser()
    if path.is_dir():
        raise UserError(f"'{word}' is a folder without a run of wandb or events of TensorBoard", _EXPECTED)
    require_file(path, hint=f"{_EXPECTED}, plain or .gz")
    return _recognized(path, names)


def _recognized(path: Path, names: Framework | None, *, text: bool = False) -> LogFile:
    """The file as a log. Raises UserError for one that neither veRL nor another known framework has written, or, where
    its `text` is enough, for one without an error.
    """
    from launcher.console.recognize import has_errors, is_script, is_verl_output  # with the catalogue of causes
    from launcher.runs.watch import foreign

    start = next(chunks(path), b"")
    if not start:
        raise NoStepYet(f"{path} is empty", _EXPECTED)
    if _is_binary(b"".join(islice(chunks(path), 2))):
        raise UserError(f"{path} is a binary file", _EXPECTED)
    if names is None and start.lstrip().startswith(b'{"') and any(map(parse_record, islice(records(path), _LOOKED))):
        return LogFile(path, file_logger=True)
    if framework := foreign.recognize_rows(path, chunks(path), names):
        rows = foreign.rows_of_cut(chunks(path))
        notes = () if rows is None else (f"{path.name} is cut: {counted(rows, 'complete row')} were read",)
        return LogFile(path, file_logger=True, framework=framework, notes=notes)
    if framework := foreign.recognize(chunks(path), names):
        return LogFile(path, file_logger=False, framework=framework)
    other = foreign.without_steps(start)
    if text and (other is not None or has_errors(chunks(path))):
        return LogFile(path, file_logger=False, framework=other)
    unknown = None if names_verl(path) else foreign.unknown_metrics(chunks(path))
    if names is None and unknown is None:
        if other is not None:
            hint = f"'ppo-tui attach {path}' waits for one; 'ppo-tui diagnose {path}' shows its errors"
            raise NoStepYet(f"{path} is a log of {other.title} without a step", hint)
        if is_verl_output(lambda: chunks(path)):
            return LogFile(path, file_logger=False)
    if is_script(start):
        raise UserError(f"{path} has no output of veRL", f"'ppo-tui preset import {path}' turns a script into a preset")
    if names is not None:
        hint = "describe its lines in the table: [[lines]], as docs/howto/frameworks.md shows"
        raise NoStep(f"{path} has no line with a name of --names{_numbers_of(path, unknown)}", hint)
    seen, kind = _numbers_of(path, unknown), NoStep if unknown is None else UserError
    raise kind(f"{path} has no output of veRL or another known framework{seen}", foreign.GIVE_NAMES)


def _is_binary(begin: bytes) -> bool:
    """Whether a file with this beginning is not text. A log emptied while a program wrote it begins with a hole."""
    text = begin.lstrip(b"\0")
    return not text or (b"\0" in begin and len(text.translate(None, _TEXT)) > 0.05 * len(text))


def names_verl(path: Path) -> bool:
    """Whether a log names veRL. Lines of Ray alone may be of another framework."""
    return any(map(_VERLS.search, chunks(path)))


def _numbers_of(path: Path, found: tuple[int, bytes] | None) -> str:
    """What a file of unknown form looks like: the line that was found, or its first one with several numbers."""
    numbered = ((number, line) for number, line in enumerate(records(path), 1) if len(_NUMBER.findall(line)) > 2)
    number, line = found or next(numbered, (0, b""))
    shown = clean(line[:300].decode(errors="replace")).strip()[:60]
    return f"; line {number} has numbers: {shown}" if shown else "; no line has several numbers"


def open_log(path: Path) -> "IO[bytes] | gzip.GzipFile":
    """Opens a log for reading; the first bytes, not the name, tell whether it is gzip."""
    file = path.open("rb")
    if not file.peek(2).startswith(b"\x1f\x8b"):
        return file
    file.close()
    return gzip.open(path, "rb")


def chunks(path: Path, meter: Meter = SILENT) -> Iterator[bytes]:
    """The bytes of a log in pieces, as UTF-8 without a byte order mark; a missing file is empty, a gap left out.

    PowerShell's `>` and Tee-Object write UTF-16.
    """
    try:
        with open_log(path) as file:
            first = file.read(_CHUNK)
            if encoding := utf16(first):
                decoder = codecs.getincrementaldecoder(encoding)("replace")
                while first:
                    yield decoder.decode(first).encode()
                    first = file.read(_CHUNK)
                return
            yield first.removeprefix(codecs.BOM_UTF8)
            meter.add(len(first))
            missing = range(0) if isinstance(file, gzip.GzipFile) else gap.find(file.fileno())
            while chunk := file.read(_CHUNK):
                yield chunk
                meter.add(len(chunk))
                if file.tell() in missing:
                    file.seek(missing.stop)
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error) as error:
        raise of_file(f"cannot read {path}", error) from None


def utf16(first: bytes) -> str | None:
    """The encoding of a log with this beginning, if it is UTF-16: by its mark, or by every other byte of Latin text."""
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = first[:200]
    if b"\0" in sample:
        for encoding, low in (("utf-16-le", 1), ("utf-16-be", 0)):
            if sample[low::2].count(0) > 0.4 * len(sample) and not sample[1 - low :: 2].count(0):
                return encoding
    return None


def records(path: Path, framework: Framework | None = None, meter: Meter = SILENT) -> Iterator[bytes]:
    """The raw lines of a metrics.jsonl; those that stand for the rows of another framework's file."""
    if framework is not None:
        from launcher.runs.watch.foreign import file_lines

        return file_lines(chunks(path, meter), framework)
    return lines_of(chunks(path, meter))

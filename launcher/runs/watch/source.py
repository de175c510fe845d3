"""SOURCE on the command line: a run, a console log, or a metrics.jsonl; gz allowed for files."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from launcher.core import gap
from launcher.core.errors import UserError, of_file
from launcher.core.files import beside
from launcher.core.text import near_hint
from launcher.metrics.records import parse_record
from launcher.record.layout import RunDir, find

_CHUNK = 1 << 18
_EXPECTED = "use the console log of a run, or its metrics.jsonl"


@dataclass(frozen=True)
class LogFile:
    """A file from elsewhere. `file_logger` tells a metrics.jsonl from a console log."""

    path: Path
    file_logger: bool


def resolve(word: str) -> RunDir | LogFile:
    """Finds the SOURCE: an existing file, or else a run."""
    path = Path(word).expanduser()
    if path.is_file():
        return _of_verl(path)
    if path.is_dir() and (path / "run.yaml").exists():
        return RunDir(path.absolute())
    if path.is_dir() and "/" in word:
        raise UserError(f"'{word}' is a folder without a run", _EXPECTED)
    if "/" in word or path.suffix in (".log", ".jsonl", ".gz", ".txt"):
        sources = "use a console log, a metrics.jsonl or a run"
        raise UserError(f"no file named '{word}'", near_hint(path.name, beside(path), sources))
    return find(word)


def log_file(word: str) -> LogFile:
    """A file from elsewhere, for `import` and `replay`."""
    path = Path(word).expanduser()
    if path.is_dir():
        raise UserError(f"'{word}' is a folder without a run of wandb or events of TensorBoard", _EXPECTED)
    if not path.is_file():
        raise UserError(f"no file named '{word}'", near_hint(path.name, beside(path), f"{_EXPECTED}, plain or .gz"))
    return _of_verl(path)


def _of_verl(path: Path) -> LogFile:
    """The file as a log. Raises UserError for one that veRL has not written."""
    from launcher.console.recognize import is_script, is_verl_output  # with the catalogue of causes

    start = next(chunks(path), b"")
    if not start:
        raise UserError(f"{path} is empty", _EXPECTED)
    if start.lstrip().startswith(b'{"') and any(map(parse_record, records(path))):
        return LogFile(path, file_logger=True)
    if not is_verl_output(lambda: chunks(path)):
        script = f"'ppo-tui preset import {path}' makes a preset of a script" if is_script(start) else ""
        raise UserError(f"{path} has no output of veRL", script or _EXPECTED)
    return LogFile(path, file_logger=False)


def open_log(path: Path) -> "IO[bytes] | gzip.GzipFile":
    """Opens a log for reading; the first bytes, not the name, tell whether it is gzip."""
    file = path.open("rb")
    if not file.peek(2).startswith(b"\x1f\x8b"):
        return file
    file.close()
    return gzip.open(path, "rb")


def chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a log in pieces, as UTF-8 without a byte order mark; a missing file is empty, a gap left out.

    PowerShell's `>` and Tee-Object write UTF-16.
    """
    try:
        with open_log(path) as file:
            first = file.read(_CHUNK)
            if encoding := _utf16(first):
                decoder = codecs.getincrementaldecoder(encoding)("replace")
                while first:
                    yield decoder.decode(first).encode()
                    first = file.read(_CHUNK)
                return
            yield first.removeprefix(codecs.BOM_UTF8)
            missing = range(0) if isinstance(file, gzip.GzipFile) else gap.find(file.fileno())
            while chunk := file.read(_CHUNK):
                yield chunk
                if file.tell() in missing:
                    file.seek(missing.stop)
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error) as error:
        raise of_file(f"cannot read {path}", error) from None


def _utf16(first: bytes) -> str | None:
    """The encoding of a log with this beginning, if it is UTF-16: by its mark, or by every other byte of Latin text."""
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = first[:200]
    if b"\0" in sample:
        for encoding, low in (("utf-16-le", 1), ("utf-16-be", 0)):
            if sample[low::2].count(0) > 0.4 * len(sample) and not sample[1 - low :: 2].count(0):
                return encoding
    return None


def records(path: Path) -> Iterator[bytes]:
    """The raw lines of a metrics.jsonl."""
    rest = b""
    for chunk in chunks(path):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest

"""Writing so that a kill at any instant leaves a readable file."""

import contextlib
import os
from pathlib import Path
from typing import Any

import orjson


def write_atomic(path: Path, content: bytes) -> None:
    """Replaces a file: a temporary one, fsync, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_json(path: Path, value: Any) -> None:
    """Replaces a JSON file atomically."""
    write_atomic(path, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty when the file is missing or no object."""
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def append_lines(path: Path, lines: list[bytes]) -> None:
    """Adds complete lines in one write. A half line that an earlier kill left is ended first."""
    if not lines:
        return
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(b"".join(lines))

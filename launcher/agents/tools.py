"""The commands of ppo-tui as tools for an agent: the command line of a call, and a page of its output."""

import json
import os
import re
import reprlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

from launcher.core.errors import UserError
from launcher.core.files import READ_ONLY
from launcher.core.format import duration
from launcher.core.paths import own_command
from launcher.core.tables import read_tables, record

_FILE = Path(__file__).with_name("tools.toml")
PAGE = 12_000  # characters of one answer
TIME_LIMIT = 300.0  # seconds; a check that loads a model takes one or two minutes
_LAST_WORDS = 5.0  # seconds for an interrupted command to end its processes
_LINES = 10  # progress lines of a job
_SETTING = re.compile(r"\+{0,2}[A-Za-z_][\w.@/-]*=.*", re.DOTALL)
_PARTS = {"settings": _SETTING}
_LONGEST = 20_000  # characters of an argument
_TOO_LARGE = 2**63
_NO_TEXT = re.compile("[\0\ufffd\ud800-\udfff]")  # the library puts U+FFFD for bytes that are not UTF-8


@dataclass(frozen=True)
class Tool:
    """One row of tools.toml."""

    about: str
    effect: Literal["reads", "runs", "changes"]
    """Whether it only reads, also runs code named by the caller or a preset, or changes runs."""
    words: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    long: bool = False
    """Whether it may take minutes or hours: the answer is then a job, which outlives the client."""
    json: bool = True
    end: bool = False
    drop: tuple[str, ...] = ()
    """JSON fields omitted because another tool has them."""

    @property
    def free(self) -> bool:
        """Whether it is offered without `--write`: it only reads, and does not need jobs."""
        return self.effect == "reads" and bool(self.words)

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        known = _arguments()
        names = [*self.places, *self.options, *(["offset"] if self.effect != "changes" else [])]
        properties = {name: _property(known[name]) for name in names}
        required = [name for name in self.places if name != "settings"]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def command(self, arguments: Mapping[str, Any]) -> list[str]:
        """The words after `ppo-tui`. Raises UserError for a missing or invalid argument."""
        given = self.given(arguments)
        words = [*self.words, *(["--json"] if self.json else [])]
        words += [f"{option}={value}" for name, option in self.options.items() for value in given[name]]
        return [*words, *(value for name in self.places for value in given[name])]

    def given(self, arguments: Mapping[str, Any]) -> dict[str, list[str]]:
        """The values of each argument. Raises UserError for a missing or invalid one."""
        schema = self.schema()
        for name in arguments:
            if name not in schema["properties"]:
                known = f"use {', '.join(schema['properties'])}" if schema["properties"] else "use none"
                raise UserError(f"{name[:40]}: there is no such argument", known)
        given = {name: _values(name, arguments.get(name)) for name in schema["properties"]}
        for name in schema["required"]:
            if not given[name]:
                raise UserError(f"{name} is missing", f"give {schema['properties'][name]['description']}")
        return given


@cache
def tools() -> dict[str, Tool]:
    """All tools by name."""
    return {name: record(Tool, row) for name, row in read_tables(_FILE)["tool"].items()}


@cache
def _arguments() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = read_tables(_FILE)["argument"]
    return found


class Job:
    """A running or ended command of a tool, in a separate process."""

    def __init__(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Raises UserError for invalid arguments."""
        command = own_command("launcher.cli.main", *tool.command(arguments))
        env = {**os.environ, READ_ONLY: "1"} if tool.effect == "reads" else None
        self._tool, self._begun = tool, time.monotonic()
        self._seen: float | None = None  # the time at which its end was seen
        self._out, self._said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 (as long as the job)
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._said, start_new_session=True, env=env
        )

    def ended(self, seconds: float) -> bool:
        """Waits at most `seconds` for its end; returns whether it ended."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._seen = self._seen or time.monotonic()
        return True

    @property
    def age(self) -> float | None:
        """Seconds since its end was noticed; None while it runs."""
        return time.monotonic() - self._seen if self.ended(0) and self._seen else None

    def stop(self) -> None:
        """Ends it with its children; a supervisor that it started has its own session and stays."""
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGINT)  # a check then ends the reward function that it tries
        self.ended(_LAST_WORDS)
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Removes the file with the command's output."""
        self._out.close()
        self._said.close()

    @property
    def progress(self) -> str:
        """Its duration so far, and its newest output lines."""
        lines = [f"running for {duration(time.monotonic() - self._begun)}", *_text(self._said).splitlines()[-_LINES:]]
        return "\n".join(lines)

    def answer(self, offset: int | None = None) -> tuple[str, bool]:
        """A page of the ended command's output from a character on, and whether it succeeded."""
        text = _without(_text(self._out), self._tool.drop) or _text(self._said) or "done"
        return page(text, offset, end=self._tool.end), self.process.returncode == 0


def run(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    """A page of a tool's output, and whether it succeeded. Raises UserError for invalid arguments or the time limit."""
    job = Job(tool, arguments)
    if not job.ended(TIME_LIMIT):
        job.stop()
        raise UserError(f"no answer within {TIME_LIMIT:.0f} s", "run the command in a terminal")
    return job.answer(arguments.get("offset"))


def _text(file: IO[bytes]) -> str:
    """The content of a process's output file so far; its write position stays."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace").strip()


def _without(text: str, names: tuple[str, ...]) -> str:
    """JSON lines without these fields."""
    if not names:
        return text
    objects = map(json.loads, text.splitlines())
    return "\n".join(json.dumps({key: value for key, value in each.items() if key not in names}) for each in objects)


def page(text: str, offset: int | None, *, end: bool = False) -> str:
    """At most `PAGE` characters from `offset` on, whole lines if possible; `end` without `offset`: the last ones."""
    if len(text) <= PAGE and not offset:
        return text
    if offset is None and end:
        offset = len(text) - PAGE
        offset = text.find("\n", offset) + 1 or offset
    begin = min(offset or 0, len(text))
    stop = min(begin + PAGE, len(text))
    if stop < len(text) and (cut := text.rfind("\n", begin, stop)) > begin:
        stop = cut + 1
    notes = []
    if begin:
        notes.append(f"earlier: offset={max(begin - PAGE, 0)}")
    if stop < len(text):
        notes.append(f"later: offset={stop}")
    return f"{text[begin:stop].rstrip()}\n[characters {begin} to {stop} of {len(text)}; {'; '.join(notes)}]"


def _property(row: Mapping[str, str]) -> Mapping[str, object]:
    more: Mapping[str, Mapping[str, object]] = {"array": {"items": {"type": "string"}}, "integer": {"minimum": 0}}
    return {"type": row["type"], "description": row["about"], **more.get(row["type"], {})}


def _values(name: str, value: Any) -> list[str]:
    """The words of an argument. Raises UserError for a wrong type, an impossible value, or an option's form."""
    if value is None:
        return []
    wanted, about = (_arguments()[name][each] for each in ("type", "about"))
    listed = value if wanted == "array" and isinstance(value, list) else [value]
    words = []
    for each in listed:
        if (wanted == "integer" and type(each) is not int) or (wanted != "integer" and not isinstance(each, str)):
            raise UserError(f"{name} is {reprlib.repr(each)}, but must be of the type {wanted}")
        if type(each) is int and abs(each) >= _TOO_LARGE:
            raise UserError(f"{name} is too large", about)
        if _NO_TEXT.search(word := str(each)):
            raise UserError(f"{name}: {reprlib.repr(word)} has NUL or is not Unicode", about)
        if word.startswith("-") or (name in _PARTS and not _PARTS[name].fullmatch(word)):
            raise UserError(f"{name}: {reprlib.repr(word)} is not allowed", about)
        words.append(word)
    if (length := len(words) + sum(map(len, words))) > _LONGEST:
        raise UserError(f"{name} has {length:,} characters", f"use at most {_LONGEST:,}")
    return words

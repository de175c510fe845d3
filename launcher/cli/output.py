"""Output of commands: data on stdout, narration on stderr."""

import json as plain_json
import os
import select
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import orjson
import typer

from launcher.core.errors import NoStepYet, UserError
from launcher.core.progress import Progress, narrated, unseen
from launcher.core.secrets import redact, redact_tree
from launcher.core.text import clean, escaped
from launcher.record import layout
from launcher.record.layout import RunDir
from launcher.record.problem import Problem

if TYPE_CHECKING:
    from launcher.runs.watch.log import Log

_NUMBERS = frozenset((int, float))
_LEAST = 24  # columns in which a sentence can be read; with less it goes below its row

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Preset = Annotated[str, typer.Argument(metavar="PRESET", help="A shipped preset, one of your own, or a file.")]


def _each_once(settings: list[str] | None) -> list[str] | None:
    """The settings. Raises UserError for a key with two values."""
    keys = [each.partition("=")[0] for each in settings or ()]
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise UserError(f"'{key}' is set twice", f"use one {key}=VALUE")
    return settings


Settings = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Preset fields or veRL keys to set.", callback=_each_once),
]
Keys = Annotated[list[str] | None, typer.Option("--key", metavar="KEY", help="Use only this key; repeatable.")]
Names = Annotated[str | None, typer.Option("--names", metavar="FILE", help="TOML file that maps a log's metric names.")]
Every = Annotated[
    int | None,
    typer.Option("--every", metavar="N", min=1, help="Steps per logged line, for a log without step numbers."),
]
Detach = Annotated[bool, typer.Option("--detach", help="Print the run's id and return.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Force = Annotated[bool, typer.Option("--force", help="Start even if the preflight finds errors.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="An id or the start of one, a name, or 'last'.")]
Source = Annotated[str, typer.Argument(metavar="SOURCE", help="A run, a log or tracker files.")]
Checkpoint = Annotated[
    int | None, typer.Option("--checkpoint", metavar="STEP", help="Step of the checkpoint [default: the newest].")
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Keep updating until the run ends.")]
Plain = Annotated[bool, typer.Option("--plain", help="Print a line per step and flag instead of opening the screen.")]


def say(text: str) -> None:
    """Prints one line of narration, without terminal escapes of presets and paths."""
    print(clean(text), file=sys.stderr, flush=True)


def shown_progress() -> Progress:
    """Prints the progress of long work on a terminal."""
    return narrated(say) if sys.stderr.isatty() else unseen


def fail(message: str, hint: str = "") -> None:
    """Prints an error and its hint."""
    say(f"error: {message}")
    if hint:
        say(f"hint: {hint}")


def put(text: str) -> None:
    """Prints one line of data, without terminal escapes of logs and presets."""
    print(clean(text), flush=True)


def put_text(text: str) -> None:
    """Prints paragraphs and items, wrapped to the terminal and at most 100 columns; items have a hanging indent."""
    columns = min(shutil.get_terminal_size().columns, 100)
    for line in text.splitlines():
        indent = "  " if line.startswith("* ") else ""
        put(textwrap.fill(line, columns, subsequent_indent=indent, break_on_hyphens=False))


def put_problems(problems: Iterable[Problem], indent: int = 0, *, meaning: bool = False) -> None:
    """Prints problems in the common form; with `meaning`, also their explanations."""
    for line in problem_lines(problems, indent, meaning=meaning):
        put(line)


def problem_lines(
    problems: Iterable[Problem], indent: int = 0, *, meaning: bool = False, out: TextIO | None = None
) -> Iterator[str]:
    """Level and fault, then evidence and fixes; wrapped to the terminal `out` (None: stdout) if it is one."""
    columns = shutil.get_terminal_size().columns if (out or sys.stdout).isatty() else 10_000
    for problem in problems:
        texts = [problem.head, *([problem.meaning] if meaning and problem.meaning else []), *problem.lines()]
        for index, text in enumerate(texts):
            first = " " * (indent + 2 * (index > 0))
            yield from textwrap.wrap(
                clean(text), columns, initial_indent=first, subsequent_indent=f"{first}  ", break_on_hyphens=False
            )


def put_result(text: str, value: Any, json: bool) -> None:
    """Prints a command's only result; with `json` as an object."""
    if json:
        put_json(value)
    else:
        put(text)


def pasted_text(size: int) -> str:
    """The text on stdin, at most one character more than `size`."""
    if sys.stdin.isatty():
        say("paste the text, then press ctrl-d")
    return sys.stdin.buffer.read(4 * size + 4).decode(errors="replace")[: size + 1]


def left_within(seconds: float) -> bool:
    """Waits; returns whether the user pressed q in the terminal."""
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return False
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        return bool(select.select([sys.stdin], [], [], seconds)[0]) and os.read(sys.stdin.fileno(), 1) == b"q"
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def find(word: str) -> RunDir:
    """The run that a word means, with a note if several have the name. Raises UserError."""
    return layout.find(word, say)


def put_run(run: RunDir, json: bool) -> None:
    """Prints the id of a new run, or as JSON its id and folder."""
    put_result(run.id, {"run": run.id, "dir": str(run.path)}, json)


def confirm(question: str, yes: bool, what: str, hint: str = "add --yes") -> None:
    """Asks before an irreversible action. Raises UserError without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(f"no terminal to confirm {what}", hint)
    typer.confirm(question, abort=True, err=True)


def put_json(value: Any, *, flush: bool = True) -> None:
    r"""Prints one JSON object. Control characters become `\uXXXX`, secrets `***`. `flush=False`: another follows."""
    stream = sys.stdout
    harmless = type(value) is dict and _NUMBERS.issuperset(map(type, value.values())) and _harmless(tuple(value))
    if harmless:
        stream = getattr(stream, "stream", stream)  # the outer stream searches each line for secrets
    else:
        value = redact_tree(value)
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # halves of surrogate pairs (a file name that is not UTF-8), numbers of more than 64 bits
        text = plain_json.dumps(value)
    stream.write((text if harmless else escaped(text)) + "\n")
    if flush:
        stream.flush()


@lru_cache(maxsize=64)
def _harmless(names: tuple[Any, ...]) -> bool:
    """Whether an object with numbers under these names has no secrets or control characters."""
    text = plain_json.dumps(dict.fromkeys(names, 0), ensure_ascii=False)
    return escaped(text) == redact(text) == text


def put_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints columns as wide as their widest cell; the last one is wrapped on a terminal, and complete elsewhere."""
    if not rows:
        return
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        head = "  ".join(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False))
        print(_row(f"{head}  ", row[-1]))
    sys.stdout.flush()  # reports an ended reader (`| head`) here, not at the interpreter's end


def _row(head: str, last: str) -> str:
    """A row of a table, with several lines on a terminal if needed."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if not len(head.rstrip()) < columns < len(head) + len(last):
        return f"{head}{last}".rstrip()
    if columns - len(head) >= _LEAST:
        return textwrap.fill(last, columns, initial_indent=head, subsequent_indent=" " * len(head))
    below = textwrap.fill(last, columns, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return f"{head.rstrip()}\n{below}"


def resolved(source: str, names: str | None = None, *, text: bool = False, every: int | None = None) -> "RunDir | Log":
    """Resolves SOURCE; a run that lost its supervisor gets a new one, which reads the remaining log.

    A folder elsewhere is only read: its files name programs, such as the alert command. `names`: a user's file, for a
    log.
    """
    from launcher.core import paths
    from launcher.metrics.frameworks import described, user_table
    from launcher.runs.supervise.spawn import ended
    from launcher.runs.watch.log import resolve

    table = described(user_table(Path(names).expanduser())) if names else None
    try:
        origin = resolve(source, table, shown_progress(), say, text=text)
    except NoStepYet:
        origin = resolve(source, text=True)
    if not isinstance(origin, RunDir):
        origin.number(every)
        for note in filter(None, (*origin.notes, origin.numbers_note)):
            say(f"note: {note}")
    if isinstance(origin, RunDir) and origin.path.parent == paths.runs_dir():
        ended(origin)
    return origin

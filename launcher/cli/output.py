"""How commands speak: stdout is data, stderr is narration."""

import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Annotated, Any

import orjson
import typer

from launcher.core.secrets import redact_tree
from launcher.core.text import clean, escaped

_LEAST = 24  # columns in which a sentence can be read; with less it goes below its row

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Preset = Annotated[str, typer.Argument(metavar="PRESET", help="A shipped preset, one of your own, or a file.")]
Settings = Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Preset fields or veRL keys to set.")]
Keys = Annotated[list[str] | None, typer.Option("--key", metavar="KEY", help="Use only this key; can be repeated.")]
Detach = Annotated[bool, typer.Option("--detach", help="Print the run's id and return.")]
Plain = Annotated[
    bool, typer.Option("--plain", help="Print lines instead of opening the screen: one per step and flag.")
]


def say(text: str) -> None:
    """One line of narration. Text from presets and paths loses its terminal escapes."""
    print(clean(text), file=sys.stderr, flush=True)


def fail(message: str, hint: str = "") -> None:
    """What is wrong, and one action below it, as every command prints errors."""
    say(f"error: {message}")
    if hint:
        say(f"hint: {hint}")


def put(text: str) -> None:
    """One line of data. Text from logs and presets loses its terminal escapes."""
    print(clean(text), flush=True)


def put_json(value: Any) -> None:
    r"""One JSON object. What a terminal would act on is written as `\uXXXX`, secrets as `***`."""
    value = redact_tree(value)
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # halves of surrogate pairs (a file name that is not UTF-8), numbers of more than 64 bits
        text = json.dumps(value)
    sys.stdout.write(escaped(text) + "\n")
    sys.stdout.flush()


def put_table(rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one is folded in a terminal, and runs free elsewhere."""
    if not rows:
        return
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        head = "  ".join(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False))
        print(_row(f"{head}  ", row[-1]))
    sys.stdout.flush()  # a reader that has gone (`| head`) is told of here, not when the interpreter ends


def _row(head: str, last: str) -> str:
    """A row of a table, in a terminal in as many lines as it needs."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if not len(head.rstrip()) < columns < len(head) + len(last):
        return f"{head}{last}".rstrip()
    if columns - len(head) >= _LEAST:
        return textwrap.fill(last, columns, initial_indent=head, subsequent_indent=" " * len(head))
    below = textwrap.fill(last, columns, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return f"{head.rstrip()}\n{below}"

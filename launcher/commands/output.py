"""How commands speak: stdout is data, stderr is narration."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import orjson
import typer

from launcher.text import clean

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Preset = Annotated[str, typer.Argument(metavar="PRESET", help="A shipped preset, one of yours, or a file.")]
Settings = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Preset fields or veRL keys.")
]
Keys = Annotated[
    list[str] | None, typer.Option("--key", metavar="KEY", help="Only this key; may be repeated.")
]
Detach = Annotated[bool, typer.Option("--detach", help="Print the id and return.")]
Plain = Annotated[bool, typer.Option("--plain", help="No screen: one line a step, one for each flag.")]


def say(text: str) -> None:
    """One line of narration. Text from presets and paths loses its terminal escapes."""
    print(clean(text), file=sys.stderr, flush=True)


def put(text: str) -> None:
    """One line of data. Text from logs and presets loses its terminal escapes."""
    print(clean(text), flush=True)


def put_json(value: Any) -> None:
    """One JSON object."""
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


def put_table(rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one runs free."""
    if not rows:
        return
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        head = "  ".join(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False))
        print(f"{head}  {row[-1]}".rstrip())

"""Every command that reads runs or presets, called in this process as from a shell."""

import functools
import io
import sys
from collections.abc import Sequence
from unittest.mock import patch

import typer
from valid_json import validate

from launcher.cli.main import main
from tui import entry

typer.main.get_command = functools.cache(typer.main.get_command)  # it reads the functions of all commands
RUN, OTHER = "7f3a1c", "0ld111"
OF_RUNS = [
    ["list"],
    ["list", "--json"],
    ["status", RUN],
    ["status", RUN, "--json"],
    ["metrics", RUN],
    ["metrics", RUN, "--json"],
    ["health", RUN],
    ["health", RUN, "--json"],
    ["diagnose", RUN],
    ["diagnose", RUN, "--json"],
    ["compare", RUN, OTHER, "--plain"],
    ["compare", RUN, OTHER, "--json"],
    ["attach", RUN, "--plain"],
    ["status", "--note", RUN],
    ["try", "--list"],
    ["try", "--list", RUN, "--json"],
    ["export", RUN, "--output", "out.csv", "--overwrite"],
    ["export", RUN, "--output", "out.svg", "--overwrite"],
    ["stop", RUN],
    ["resume", RUN],
    ["eval", RUN],
    ["export", "--model", RUN],
]
OF_PRESETS = [["preset", "list"], ["preset", "list", "--json"], ["config", "keys"], ["config", "keys", "--json"]]


def call(words: Sequence[str], *, plain: bool = True) -> tuple[bytes, bytes, object]:
    """The bytes that a command writes to stdout and stderr, and its exit code. Raises the errors that a user would see.

    Its JSON must match its schema if the runs' files are `plain`.
    """
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", errors="surrogateescape") for _ in range(2)]
    code: object = None
    with patch.multiple(sys, stdout=streams[0], stderr=streams[1], argv=["ppo-tui", *words]):
        try:
            main(entry.open_screen, entry.list_keys, entry.check_theme, entry.serve)
        except SystemExit as ended:
            code = ended.code
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue() for stream in streams)  # type: ignore[attr-defined]
    if plain:
        validate(words, out.decode(errors="surrogateescape"))
    return out, err, code

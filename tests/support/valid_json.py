"""Checks that commands print with --json exactly what their schemas define."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import jsonschema

from launcher.cli.schemas import printed, schema_of


def validate(words: Sequence[str], output: str) -> None:
    """Compares a command's lines with its schema, if called with --json. An unknown field is an error."""
    if "--json" in words and (command := command_of(words)):
        for line in output.splitlines():
            _validator(command).validate(json.loads(line))


def command_of(words: Sequence[str]) -> str:
    """The command called by the words; empty for one without a schema, or on another host."""
    found = ""
    for name in printed():
        path = [word for word in name.split() if not word.startswith("-")]
        if list(words[: len(path)]) == path and {*name.split()} <= {*words} and len(name) > len(found):
            found = name
    return found


@cache
def _validator(command: str) -> Any:
    return jsonschema.Draft202012Validator(schema_of(command, closed=True))

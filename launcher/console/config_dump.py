"""Reads the resolved configuration, which veRL's task runner pretty-prints before its start."""

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from launcher.core.secrets import redacted

_MOST_BYTES = 1 << 18  # a configuration has 50 kB
_MOST_TRIES = 10
# The start of a line of Python data, or all of it; Ray breaks lines anywhere outside of strings.
_DATA = (
    rb" *(?=['\"{}\],:]|\[(?:['\"\[\]{0-9-]|None|True|False|-?inf|nan|\Z)"
    rb"|(?:None|True|False|nan|-?inf|-?[0-9.e+-]+)[\]},: ]*(?:\Z|(?<=[\]},: ])['\"\[{0-9NTF-]))"
)
_JSON = {b"None": b"null", b"True": b"true", b"False": b"false", b"nan": b"NaN", b"inf": b"Infinity"}


class ConfigCollector:
    """Assembles the dump from its writer's lines.

    Warnings of the process come between them, and Ray breaks a line where the process paused. So lines that do not
    start like Python data are skipped, and the others are joined without line ends.
    """

    def __init__(self, prefix: bytes) -> None:
        self._data = re.compile(re.escape(prefix) + _DATA)
        self._lines: list[bytes] = []
        self._room = _MOST_BYTES
        self._tries = _MOST_TRIES

    def add(self, raw: bytes) -> bool:
        """Keeps a line of the dump; returns whether it is one."""
        match = self._data.match(raw)
        if match is None or self._room < 0:
            return False
        self._lines.append(raw[match.end() :])
        self._room -= len(raw)
        return True

    @property
    def failed(self) -> bool:
        """Whether it too often ended in a bracket without being complete."""
        return self._tries <= 0

    def read(self) -> dict[str, Any] | None:
        """The configuration by veRL key; None while the dump is incomplete."""
        self._tries -= 1
        value = _literal(b"".join(self._lines))
        return flatten(value) if isinstance(value, dict) else None


def _literal(text: bytes) -> Any:
    """The value of a `pprint` text; None if truncated or invalid. JSON is far faster than Python's parser."""
    parts = text.split(b"'")  # code, string, code, ...: if it has no other quotes and escapes
    if b'"' not in text and b"\\" not in text and b"" not in parts[::2]:  # b"": a string in two parts
        code = b"'".join(parts[::2])
        for python, javascript in _JSON.items():
            code = code.replace(python, javascript)
        parts[::2] = code.split(b"'")
        text_as_json = b'"'.join(parts)
        for loads in (orjson.loads, json.loads):  # the first is quicker, the second reads NaN
            with suppress(ValueError, RecursionError):
                return loads(text_as_json)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(_Numbers().visit(ast.parse(text.decode(), mode="eval")))
    return None


class _Numbers(ast.NodeTransformer):
    """Turns the names `nan` and `inf` into numbers, which `ast.literal_eval` refuses."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves by dotted veRL key; lists and empty mappings are leaves. Secret values are `***`."""
    flat: dict[str, Any] = {}
    branches: list[tuple[str, Mapping[str, Any]]] = [("", tree)]
    while branches:
        prefix, branch = branches.pop()
        for key, value in branch.items():
            if isinstance(value, dict) and value:
                branches.append((f"{prefix}{key}.", value))
            else:
                flat[f"{prefix}{key}"] = redacted(f"{prefix}{key}", value)
    return flat

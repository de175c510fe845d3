"""`--ascii`: every sign that the program writes has a twin."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui.kit.drawing.glyphs import to_ascii

ROOT = Path(__file__).parents[2]
_READ = {*"\xa0‘’‚‛“”„‟•✗➜✨\N{RUNNER}", *"парольñ密码口令", *"\ud800\udfff\ufffd"}
"""Looked for in what people paste, in words for passwords and in bytes that are no text; never drawn."""


def strings(file: Path) -> Iterator[str]:
    """The string literals of a module, without its docstrings; a data file as a whole."""
    if file.suffix == ".toml":
        yield file.read_text(encoding="utf-8")
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


@pytest.mark.slow
def test_every_sign_that_is_written_has_a_twin() -> None:
    without = {
        (file.name, sign)
        for folder in ("tui", "launcher")
        for file in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.toml")]
        for text in strings(file)
        for sign in text
        if not sign.isascii() and sign not in _READ and "?" in to_ascii(sign)
    }
    assert without == set()

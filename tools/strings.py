"""`make strings`: prints every sentence for users, file by file.

Sentences of the code (strings with a blank between letters, without docstrings and regular expressions) and of its data
files, then comments of the shipped presets. {} is an inserted value.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from launcher.core.tables import read_tables

ROOT = Path(__file__).parents[1]
SENTENCE = re.compile(r"[A-Za-z{}'),:%] ?[ ][A-Za-z{('\"`]")
PATTERN = re.compile(r"\(\?|\\[swdbS]|\[\^|\.\*|\]\{|\$\)")
UNREAD = ("samples", "patterns", "raised", "line", "where", "explains", "cause_in")  # of the catalogue of causes
SCRIPTS = ("plugin",)  # what these say goes to veRL's log


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each string that is not a docstring."""
    nodes = _nodes(path)
    docs = {id(node) for node in _docstrings(nodes)}
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part != node}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs | inside:
            text = node.value
        else:
            continue
        if SENTENCE.search(text) and not PATTERN.search(text):
            yield node.lineno, " ".join(text.split())


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, including fields'."""
    for node in _docstrings(_nodes(path)):
        yield node.lineno, " ".join(str(node.value).split())


def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


def _docstrings(nodes: list[ast.AST]) -> Iterator[ast.Constant]:
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of the comments and descriptions of a preset."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if found := re.search(r"(?:^|\s)#\s*(.+)|^description: (.+)", line):
            yield number, found[1] or found[2]


def entries(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of the sentences of a data file."""
    source = path.read_text("utf-8")
    for text in _texts(read_tables(path)):
        if SENTENCE.search(text):
            yield source.count("\n", 0, source.find(text[:40])) + 1, " ".join(text.split())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (text for part in value for text in _texts(part))
    elif isinstance(value, dict):
        yield from (text for name, part in value.items() if name not in UNREAD for text in _texts(part))


def everything() -> Iterator[tuple[str, int, str]]:
    """File, line and text of all sentences."""
    for package in ("launcher", "tui"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if not set(SCRIPTS) & set(path.parts):
                yield from ((str(path.relative_to(ROOT)), line, text) for line, text in sorted(sentences(path)))
        for path in sorted((ROOT / package).rglob("*.toml")):
            yield from ((str(path.relative_to(ROOT)), line, text) for line, text in entries(path))
    for path in sorted((ROOT / "presets").glob("*.yaml")):
        yield from ((str(path.relative_to(ROOT)), line, text) for line, text in comments(path))


def main() -> None:
    file = ""
    for name, line, text in everything():
        if name != file:
            print(f"\n{name}")
            file = name
        print(f"{line:5}  {text}")


if __name__ == "__main__":
    main()

"""Lists the metrics that a checkout of another framework logs and its table lacks, and the sources that are gone.

    make watch FRAMEWORK=trl SOURCE=DIR         DIR: a checkout, or the folder that has the package

The functions that the table names as sources are read, nothing is imported: names are what they set, append to or
record. Some may be no metrics.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from launcher.metrics.frameworks import Framework, frameworks

_RECORDS = ("record", "add_scalar", "log_metric", "update", "log")
_NAME = re.compile(r"[A-Za-z][\w./@()-]{1,80}")


def names_in(file: Path, symbols: set[str]) -> dict[str, set[str]]:
    """The names in functions of a file, by function; of a function that is gone nothing."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name in symbols:
            found.setdefault(node.name, set()).update(_keys(node))
    if "__main__" in symbols:  # a script
        found["__main__"] = set(_keys(ast.parse(file.read_text("utf-8"))))
    return found


def _keys(node: ast.AST) -> Iterator[str]:
    """What is set or appended to, and the first argument of calls that record: a name, or a dict with names."""
    for each in ast.walk(node):
        keys: list[ast.expr | None] = []
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            keys = [each.slice]
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            of, given = each.func.value, each.args[0] if each.args else None
            if each.func.attr == "append" and isinstance(of, ast.Subscript):
                keys = [of.slice]
            elif each.func.attr in _RECORDS:
                keys = [*given.keys] if isinstance(given, ast.Dict) else [given]
        for key in keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _NAME.fullmatch(key.value):
                yield key.value


def unknown(table: Framework, source: Path) -> Iterator[str]:
    """A line per name or source."""
    wanted: dict[str, set[str]] = {}
    for row in table.metrics:
        for each in row.source.split("; "):
            file, _, symbol = each.rpartition(": ")
            file = file.rpartition(": ")[2]
            wanted.setdefault(file, set()).update(re.split(r"[,. ]+", symbol))
    for name, symbols in sorted(wanted.items()):
        file = next((path for path in (source / name, *sorted(source.rglob(Path(name).name))) if path.is_file()), None)
        found = names_in(file, symbols) if file and file.suffix == ".py" else {}
        for symbol in sorted(symbols - found.keys()):
            yield f"gone  {name}: {symbol}"
        for symbol, names in sorted(found.items()):
            yield from (f"new   {each}  ({name}: {symbol})" for each in sorted(names) if not table.known([each]))


def main(name: str, source: str) -> None:
    lines = list(unknown(frameworks()[name], Path(source)))
    print("\n".join(lines) or f"nothing that {name}.toml lacks")


if __name__ == "__main__":
    main(*sys.argv[1:3])

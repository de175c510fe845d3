"""Finds the configuration of a program that starts veRL, as text: without importing its code.

Hydra: `hydra/main.py: main`, `hydra/_internal/utils.py: compute_search_path_dir`.
"""

import ast
import functools
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DEEPEST = 3  # wrappers around the program with the configuration; folders of choices below a configuration
_PACKAGE = "pkg://"
_FIND = """
import importlib.util as u, sys
found = u.find_spec(sys.argv[1])
print((list(found.submodule_search_locations or ()) or [found.origin])[0] if found else "")
"""


@dataclass(frozen=True)
class Found:
    """A Hydra configuration: its folder and name, and the additional search folders.

    `main`: the Python file that names it. `newest` changes with each of the files.
    """

    folder: Path
    name: str
    search: tuple[Path, ...]
    main: Path
    newest: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Asked:
    """A program and its Hydra options: its module or file, working folder, and search path for modules: `path` first,
    then the packages of the interpreter `python`.
    """

    entry: str
    folder: Path | None
    path: tuple[Path, ...]
    python: str
    config_name: str | None = None
    config_path: str | None = None
    config_dir: str | None = None
    searchpath: Any = None


def find(asked: Asked) -> Found | None:
    """The configuration that the program starts from; None if its source or files are not here."""
    here = asked.folder or Path("/")
    file = here / asked.entry if asked.entry.endswith(".py") else _module(asked, asked.entry)
    declared = _declared(asked, file) if file else None
    if declared is None:
        return None
    main, path, name = declared
    name = (asked.config_name or name or "").removesuffix(".yaml")
    folder = _folder(asked, asked.config_path or path, main, main.parent)
    more = [here / asked.config_dir] if asked.config_dir else []
    more += _searched(asked, asked.searchpath, main)
    folder = folder or next(iter(more), None)
    if folder is None or not name:
        return None
    primary = next((each / f"{name}.yaml" for each in (folder, *more) if (each / f"{name}.yaml").is_file()), None)
    if primary is None:
        return None
    more += [] if asked.searchpath else _searched(asked, _searchpath(primary), main)
    # the time of the last change in nanoseconds, and the number of files, in one number
    depths = ["*/" * depth + "*.yaml" for depth in range(_DEEPEST + 1)]
    changed = [file.stat().st_mtime_ns for each in (folder, *more) for depth in depths for file in each.glob(depth)]
    return Found(folder, name, tuple(dict.fromkeys(more)), main, max(changed, default=0) + len(changed))


def _declared(asked: Asked, file: Path, depth: int = 0) -> tuple[Path, str | None, str | None] | None:
    """The file with `@hydra.main`, and its folder and name; a program without one may start another."""
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "hydra.main":
            given = dict(zip(("config_path", "config_name"), call.args, strict=False))
            given |= {str(each.arg): each.value for each in call.keywords}
            path, name = (_text(given.get(key)) for key in ("config_path", "config_name"))
            return file, path, name
    for module in _started(tree) if depth < _DEEPEST else ():
        other = _module(asked, module, file.parents)
        if other is not None and (found := _declared(asked, other, depth + 1)):
            return found
    return None


def _started(tree: ast.AST) -> Iterator[str]:
    """Modules that a program may run instead of its own main function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "runpy.run_module" and node.args:
            yield from filter(None, [_text(node.args[0])])
        elif isinstance(node, ast.ImportFrom) and node.module and any(each.name == "main" for each in node.names):
            yield node.module


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _module(asked: Asked, name: str, more: Iterable[Path] = ()) -> Path | None:
    """The source of a module; `more` as for `_places`."""
    for base in _places(asked, name, more):
        for file in (base.with_name(f"{base.name}.py"), base / "__main__.py"):
            if file.is_file():
                return file
    return None


def _places(asked: Asked, name: str, more: Iterable[Path]) -> Iterator[Path]:
    """Possible places of a module or package, without a suffix: on the path, installed, then in `more` folders."""
    top, *below = name.split(".")
    for folder in asked.path:
        yield folder.joinpath(top, *below)
    if (installed := _installed(asked.python, top)) is not None:
        yield installed.joinpath(*below)
    for folder in more:
        yield folder.joinpath(top, *below)


@functools.cache
def _installed(python: str, top: str) -> Path | None:
    """The folder of an installed package, without importing it; None without one."""
    if not top.isidentifier():
        return None
    try:
        done = subprocess.run(
            [python, "-c", _FIND, top], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd="/"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return Path(done.stdout.strip()) if done.returncode == 0 and done.stdout.strip() else None


def _folder(asked: Asked, path: str | None, main: Path, start: Path) -> Path | None:
    """The folder that Hydra calls `path`; relative ones start at `start`. Searches above the program, as in a clone,
    for a package that is neither on the path nor installed.
    """
    if path is None or "${" in path:
        return None
    if path.startswith(_PACKAGE):
        places = _places(asked, path.removeprefix(_PACKAGE), main.parents)
    else:
        places = iter([start / path.removeprefix("file://")])
    return next((each for each in places if each.is_dir()), None)


def _searched(asked: Asked, given: Any, main: Path) -> list[Path]:
    """The existing folders of `hydra.searchpath`; relative ones start at the program's working folder."""
    listed = given if isinstance(given, list) else []
    found = (_folder(asked, str(each), main, asked.folder or Path("/")) for each in listed)
    return [each for each in found if each is not None]


def _searchpath(file: Path) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        read = YAML(typ="safe", pure=True).load(file.read_text("utf-8"))
        return read["hydra"]["searchpath"]
    except (OSError, ValueError, YAMLError, KeyError, TypeError):
        return None

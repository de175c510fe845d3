"""Searches the sources of veRL and its packages for the places that raise the messages of the catalog.

.venv/bin/python campaigns/unique_messages.py

Reads the Python files and shared libraries of the installed packages, of Python, of our plugin and of the wheels in
unique_messages.toml, which pip downloads once and nothing installs; then it writes tests/data/failures/raised.tsv.
An entry is raised at `one` place, at `several` (one text in different functions), anywhere but below the `where` that
the entry demands, or `nowhere` here. Copies of a function under its name are one place, and so is a library with the
Python of its package. The first run takes ten minutes, later ones three.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

from launcher.console.causes import Cause, Level, catalogue
from launcher.core.tables import read_tables

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests/data/failures/raised.tsv"
GIVEN = read_tables(Path(__file__).with_suffix(".toml"))
CACHE = Path("~/.cache/ppo-tui-tests/message-wheels").expanduser()
VERDICTS = ("nowhere", "one", "where", "several")

_FIELD = re.compile(r"%[-\d.]*[a-z]|\{[^{}\s]*\}")
_TEXTS = re.compile(rb"[\x20-\x7e]{12,}")
_LONG = 16  # characters of a fixed part that identifies a message whose fields do not fit the pattern
_READ = re.compile(r"\.py$|\.so(?:\.\d+)*$")
_SKIPPED = re.compile(r"/(?:tests?|testing|docs|examples|idlelib|site-packages)/|/socket\.py|flash_attn|libtriton")
_HARMLESS = re.compile(r"debug|info|warn|deprecate|add_argument|[Ff]ield")

Packages = Iterable[tuple[str, Iterable[tuple[str, bytes]]]]
"""Names with their version; paths and content of their files."""
Places = dict[str, list[tuple[str, str, str]]]
"""Text -> package with its version, path and function of each place."""


class Strings(ast.NodeVisitor):
    """The texts of a module that may reach a console, with their functions; fields are `1`."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._names: list[str] = []

    def _scope(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._names.append(node.name)
        for each in node.body[ast.get_docstring(node, clean=False) is not None :]:
            self.visit(each)
        self._names.pop()

    visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _scope

    def visit_Raise(self, node: ast.Raise) -> None:
        call = node.exc if isinstance(node.exc, ast.Call) else None
        if kind := call.func if call else node.exc:
            said = " ".join(_text(each) or "1" for each in (call.args if call else ()))
            self._add(f"{ast.unparse(kind).rpartition('.')[2]}: {said}".removesuffix(": "))

    def visit_Assert(self, node: ast.Assert) -> None:
        self._add(f"AssertionError: {_text(node.msg) or '1'}" if node.msg else "AssertionError")

    def visit_Compare(self, node: ast.Compare) -> None:
        """Ignores comparisons: a compared text is not raised here."""

    def visit_Call(self, node: ast.Call) -> None:
        if not _HARMLESS.search(str(getattr(node.func, "attr", getattr(node.func, "id", "")))):
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        text = _text(node)
        if text is None:
            super().generic_visit(node)
        elif " " in text.strip():  # not a name
            self._add(text)

    def _add(self, text: str) -> None:
        self.found.append((" ".join(text.split()), ".".join(self._names)))


def _text(node: ast.AST) -> str | None:
    """The text that an expression makes; None if it is not a text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(each) or "1" for each in values)
        case ast.BinOp(left=left, op=ast.Mod()) | ast.Call(func=ast.Attribute(value=left, attr="format")):
            return _text(left)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = _text(left), _text(right)
            return None if parts == (None, None) else "".join(part or "1" for part in parts)
    return None


def _texts_of(path: str, data: bytes) -> list[tuple[str, str]]:
    if not path.endswith(".py"):
        return [(each.decode(), "") for each in sorted({*_TEXTS.findall(data)}) if b" " in each]
    strings = Strings()
    try:
        strings.visit(ast.parse(data))
    except (SyntaxError, ValueError, RecursionError):
        return []
    return strings.found


def _packages() -> Packages:
    library = Path(sysconfig.get_path("stdlib"))
    yield (
        f"python {sys.version.split()[0]}",
        _files(library.parent, [*library.rglob("*"), *library.parent.glob("libpython*")]),
    )
    yield "ppo-tui", _files(ROOT, ROOT.glob("launcher/inside/ppo_tui_inside/plugin/**/*"))
    pinned = {*re.findall(r"^[\w.-]+(?===)", (ROOT / "launcher/verl/requirements-cpu.txt").read_text("utf-8"), re.M)}
    for package in sorted(metadata.distributions(), key=lambda each: each.name):
        if re.sub(r"[-_.]+", "-", package.name).lower() in pinned:
            root = Path(str(package.locate_file("")))
            yield f"{package.name} {package.version}", _files(root, (root / each for each in package.files or ()))
    for wheel in GIVEN["wheels"]:
        name, version = wheel.split("==")
        kept = f"{name.replace('-', '_')}-{version}-*.whl"
        if not [*CACHE.glob(kept)]:
            words = ["download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(CACHE), wheel]
            subprocess.run([sys.executable, "-m", "pip", *words], check=True)
        with zipfile.ZipFile(next(CACHE.glob(kept))) as archive:
            yield f"{name} {version}", ((each, archive.read(each)) for each in filter(_wanted, archive.namelist()))


def _wanted(path: str) -> bool:
    return _READ.search(path) is not None and _SKIPPED.search(f"/{path}") is None


def _files(root: Path, paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    names = ((str(each).removeprefix(f"{root}/"), each) for each in paths)
    return ((name, path.read_bytes()) for name, path in names if _wanted(name) and path.is_file())


def literals(pattern: str) -> set[tuple[str, ...]]:
    """The fixed parts of each alternative, from four characters on and without digits, in lower case."""
    from re import _parser  # type: ignore[attr-defined]  # since Python 3.11

    return {tuple(run for run in text.split("\0") if len(run) > 3) for text in _runs(_parser.parse(pattern))}


def _runs(items: Iterable[Any]) -> list[str]:
    """Each alternative as a text, with NUL between its fixed parts."""
    parts: list[list[str]] = []
    for kind, given in items:
        match str(kind), given:
            case "LITERAL", code:
                parts.append(["\0" if chr(code).isdigit() else chr(code).lower()])
            case "BRANCH", (_, branches):
                parts.append([text for branch in branches for text in _runs(branch)])
            case "SUBPATTERN", (*_, inner):
                parts.append(_runs(inner))
            case "MAX_REPEAT", (0, 1, inner):
                parts.append(["", *_runs(inner)])
            case (("AT" | "ASSERT" | "ASSERT_NOT"), _):
                pass
            case _:
                parts.append(["\0"])
    return ["".join(each) for each in product(*parts)]


class Sources:
    """All texts with their places; those of a package are cached in a folder."""

    def __init__(self, packages: Packages, folder: Path) -> None:
        self._places: Places = {}
        self._packages: list[str] = []
        for package, files in packages:
            self._packages.append(package)
            kept = folder / f"{package}.json"
            if not kept.exists():
                rows = [(text, path, function) for path, data in files for text, function in _texts_of(path, data)]
                kept.write_text(json.dumps(rows), "utf-8")
            for text, path, function in json.loads(kept.read_text("utf-8")):
                self._places.setdefault(_FIELD.sub("1", text), []).append((package, path, function))
        self._lower = [(text, text.lower()) for text in self._places]

    def search(self, cause: Cause) -> Places:
        """The places of each text that an entry matches, by matching part."""
        found: Places = {}
        for pattern, runs in ((each, runs) for each in (cause.raised, cause.line) for runs in literals(each)):
            longest = max(runs, key=len, default="")
            texts = [text for text, lower in self._lower if longest in lower] if longest else []
            hits = [(text, match[0]) for text in texts if (match := re.search(pattern, text))]
            if not hits and len(longest) >= _LONG and "(?!" not in pattern:
                loose = re.compile(".*".join(map(re.escape, runs)), re.IGNORECASE)
                hits = [(text, match[0]) for text in texts if (match := loose.search(text))]
            for text, part in hits:
                found.setdefault(part, []).extend(self._places[text])
        return {part: sorted({*places}, key=self._rank) for part, places in found.items()}

    def _rank(self, place: tuple[str, str, str]) -> tuple[int, str, str]:
        return self._packages.index(place[0]), *place[1:]


NEUTRAL = """from TaskRunnerV1 stepping in library code
verl/single_controller/ray/base.py:func
verl/trainer/ppo/ray_trainer.py:fit
verl/trainer/main_ppo.py:run"""
"""The context of an exception of any run."""


def narrows(cause: Cause) -> bool:
    """Whether the entry requires a place that not every run reaches."""
    return bool(cause.where) and re.search(cause.where, NEUTRAL) is None


def digest(cause: Cause) -> str:
    """A digest of an entry's patterns."""
    return sha256(f"{cause.raised}\n{cause.line}\n{cause.where}".encode()).hexdigest()[:8]


def row(cause: Cause, sources: Sources) -> tuple[str, ...]:
    """The row of an entry: id, digest, verdict, number of functions, and the first places or the reason."""
    best = 0, list[str]()
    for text, places in sources.search(cause).items():
        newest = dict(reversed([(each[0].split()[0], each[0]) for each in places]))
        python = {package for package, path, _ in places if path.endswith(".py")}
        first = [each for each in places if each[0] in newest.values()]
        first = [each for each in first if each[1].endswith(".py") or each[0] not in python]
        frames = [(each, f"{text}\n{each[1]}:{each[2].split('.')[-1]}") for each in first if narrows(cause)]
        inside = [each for each, frame in frames if re.search(cause.where, frame)]
        functions = {_function(*each): f"{each[0]} {each[1]}:{each[2]}" for each in (inside or first)[::-1]}
        verdict = 2 if narrows(cause) and not inside else 1 if len(functions) == 1 else 3
        best = max(best, (verdict, [*functions.values()][::-1]), key=lambda found: (found[0], len(found[1])))
    words = f"{cause.raised} {cause.line}"
    reason = next(each["reason"] for each in GIVEN["missing"] if re.search(each["pattern"], words))
    return cause.id, digest(cause), VERDICTS[best[0]], str(len(best[1])), ", ".join(best[1][:3]) or reason


def _function(package: str, path: str, function: str) -> str:
    """The common name of a function's copies; for a library the package."""
    name = function.rpartition(".")[2]
    return ".".join(function.split(".")[-2:]) if name.startswith("__") else name.lstrip("_") or package


def main() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    sources = Sources(_packages(), CACHE)
    causes = sorted((each for each in catalogue() if each.level is Level.ROOT), key=lambda each: each.id)
    rows = [("entry", "patterns", "raised", "functions", "places"), *(row(each, sources) for each in causes)]
    TABLE.write_text("".join("\t".join(each) + "\n" for each in rows), "utf-8")


if __name__ == "__main__":
    main()

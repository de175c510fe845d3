"""The program decides by the type or the code of an error, never by the words of its message."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tables import tabled

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("launcher", "tui") for path in (ROOT / folder).rglob("*.py"))
MESSAGES = {"why", "reason", "wrong", "refused"}  # what messages are called where they are passed on
TEXTS = {"message", "hint", "args"}  # attributes of errors
TESTS = {"startswith", "endswith", "find", "index", "count", "partition", "rpartition", "split", "rsplit"}
TESTS |= {"removeprefix", "removesuffix", "replace"}
SEARCHES = {"search", "match", "fullmatch", "findall"}

ALLOWED = {
    "run_actions.py:_without_option": "leaves out the option of the command line",
    "checkpoints.py:fork_run": "leaves out the option of the command line",
    "marks.py:unknown": "writes blanks in another way, so that a mark is one word",
}
"""Function -> why it may look into a message."""


class _Search(ast.NodeVisitor):
    """Finds tests of error messages in a file, by the function that they stand in."""

    def __init__(self) -> None:
        self.scopes: list[str] = []
        self.errors: list[set[str]] = [set()]
        self.found: list[tuple[str, int]] = []

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, errors: set[str]) -> None:
        self.scopes.append(node.name)
        self.errors.append(self.errors[-1] | errors)
        self.generic_visit(node)
        self.errors.pop()
        self.scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._enter(node, set())

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._enter(node, {arg.arg for arg in [*node.args.args, *node.args.kwonlyargs] if _is_error(arg.annotation)})

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.errors[-1] |= {node.name} if node.name else set()
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        words = any(isinstance(side, ast.Constant) and isinstance(side.value, str) and side.value for side in sides)
        if words and any(self._is_message(side) for side in sides):
            self._report(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and not _takes_lines(node):
            looks = node.func.attr in TESTS and self._is_message(node.func.value)
            if looks or (node.func.attr in SEARCHES and any(map(self._is_message, node.args))):
                self._report(node)
        self.generic_visit(node)

    def _is_message(self, node: ast.AST) -> bool:
        """`str(error)`, `error.message`, `why`; also with lower(), strip() or an index behind it."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"str", "repr"}:
            return any(isinstance(arg, ast.Name) and arg.id in self.errors[-1] for arg in node.args)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self._is_message(node.func.value)
        if isinstance(node, ast.Subscript):
            return self._is_message(node.value)
        if isinstance(node, ast.Attribute):
            return node.attr in TEXTS and isinstance(node.value, ast.Name) and node.value.id in self.errors[-1]
        return isinstance(node, ast.Name) and node.id in MESSAGES

    def _report(self, node: ast.expr) -> None:
        self.found.append((".".join(self.scopes), node.lineno))


def _is_error(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).strip("'\"").endswith(("Error", "Exception", "Refused"))


def _takes_lines(node: ast.Call) -> bool:
    """Whether it splits a text at white space or lines, as to show it in one line."""
    return not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value == "\n")


def places(path: Path) -> Iterator[tuple[str, int]]:
    """Functions of a file that look into a message, with the lines."""
    search = _Search()
    search.visit(ast.parse(path.read_text("utf-8")))
    return ((f"{path.name}:{scope}", line) for scope, line in search.found)


def test_nothing_is_decided_by_the_words_of_a_message() -> None:
    found = {place: line for path in FILES for place, line in places(path)}
    assert {place: line for place, line in found.items() if place not in ALLOWED} == {}
    assert set(ALLOWED) == set(found), "an entry that is no longer needed"


@tabled
def test_the_search_finds(code: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code)
    assert [place for place, _ in places(tmp_path / "a.py")] == ["a.py:f"]


def test_the_search_leaves_other_texts_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(name, error: UserError):\n    return 'x' in name or show(error.message)")
    assert not list(places(tmp_path / "a.py"))

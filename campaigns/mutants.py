"""Seeded mutants of the product, and the tests that notice them.

    python campaigns/mutants.py draw > mutants.json        one change each: a comparison, constant, branch or call
    python campaigns/mutants.py mark mutants.json TREE     each mutated function of this checkout notes who runs it
    (run the tests of TREE with MUTANT_HITS=FOLDER)
    python campaigns/mutants.py run mutants.json TREE FOLDER    the tests of each function, until one fails

A mutant whose tests take longer than 120 s without the change is left out; draw more than you need.
"""

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ROOMS = ("check", "console", "data", "health", "metrics", "preset", "record", "runs", "timing")
LIMIT = 120  # seconds for the tests of one mutant
# some tests clear the environment: the last test of this process, and the folder of the start, are kept
MARK = """
import os
seen, hits, last = set(), os.environ.get("MUTANT_HITS"), [""]
def hit(number):
    last[0] = test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0] or last[0]
    if hits and test and (number, test) not in seen:
        seen.add((number, test))
        with open(f"{hits}/{number}", "a") as file:
            file.write(test + "\\n")
"""


@dataclass(frozen=True)
class Mutant:
    """One change: the text from `start` to `end` (bytes of the file) becomes `new`."""

    file: str
    function: str
    kind: str
    old: str
    new: str
    start: int
    end: int
    first: int
    """Line of the first statement of the function, below its docstring."""


_SWAPPED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip


def mutants(path: Path, name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Mutant]:
    """All changes of a function."""
    source = path.read_bytes()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body

    def change(kind: str, node: ast.expr | ast.stmt, new: str) -> Mutant:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        old = source[start:end].decode()
        return Mutant(str(path.relative_to(ROOT)), name, kind, old, new, start, end, body[0].lineno)

    nodes = [each for statement in body for each in ast.walk(statement)]
    # Python 3.11 has wrong places for what is inside an f-string
    quoted = {id(each) for node in nodes if isinstance(node, ast.JoinedStr) for each in ast.walk(node)}
    for node in nodes:
        match node if id(node) not in quoted else None:
            case ast.Compare(left, [operator], [right]):
                new = f"{ast.unparse(left)} {_SWAPPED[type(operator)]} {ast.unparse(right)}"
                yield change("comparison", node, f"({new})")
            case ast.Constant(bool(value)):
                yield change("constant", node, str(not value))
            case ast.Constant(int(value)):
                yield change("constant", node, str(value + 1))
            case ast.If(test) | ast.IfExp(test):
                yield change("branch", test, f"(not ({ast.unparse(test)}))")
            case ast.Expr(ast.Call()):
                yield change("dropped call", node, "pass")


def draw(seed: int, count: int) -> list[Mutant]:
    """One mutant for each of `count` functions."""
    places = [*(ROOT / "tui").rglob("*.py")]
    for room in ROOMS:
        places += (ROOT / "launcher" / room).rglob("*.py")
    functions: list[list[Mutant]] = []
    for path in sorted(places):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (all_ := [*mutants(path, node.name, node)]):
                functions.append(all_)
    chance = random.Random(seed)
    return [chance.choice(each) for each in chance.sample(functions, count)]


def mark(drawn: list[dict[str, Any]], tree: Path) -> None:
    """Makes each mutated function of a checkout record the test that runs it."""
    (tree / "launcher/mutant_mark.py").write_text(MARK)
    for file in {each["file"] for each in drawn}:
        lines = (tree / file).read_text("utf-8").splitlines(keepends=True)
        here = [(each["first"], number) for number, each in enumerate(drawn) if each["file"] == file]
        for line, number in sorted(here, reverse=True):
            indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
            lines.insert(line - 1, f"{indent}from launcher.mutant_mark import hit; hit({number})\n")
        (tree / file).write_text("".join(lines), "utf-8")


def run(drawn: list[dict[str, Any]], tree: Path, hits: Path, *, only: set[int]) -> None:
    """Prints for each mutant whether a test detected it."""
    for number, each in enumerate(drawn):
        if only and number not in only:
            continue
        file = hits / str(number)
        tests = sorted({_plain(line) for line in file.read_text().splitlines()} - {""}) if file.exists() else []
        path = tree / each["file"]
        source = path.read_bytes()
        began = time.monotonic()
        try:
            path.write_bytes(source[: each["start"]] + each["new"].encode() + source[each["end"] :])
            verdict = _noticed(tree, tests) if tests else "survived: no test runs it"
        finally:
            path.write_bytes(source)
        print(json.dumps({"mutant": number, "verdict": verdict, "tests": len(tests),
                          "seconds": round(time.monotonic() - began), **each}), flush=True)  # fmt: skip


def _plain(test: str) -> str:
    """The name of a test without its xdist group."""
    return re.sub(r"@[^\]@]*$", "", test)


def _noticed(tree: Path, tests: list[str]) -> str:
    command = [str(tree / ".venv/bin/python"), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header"]
    names = tree / ".mutant-tests"
    names.write_text("\n".join(tests))
    try:
        done = subprocess.run([*command, f"@{names}"], cwd=tree, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "too long"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"killed: {failed[0][:160] if failed else done.returncode}" if done.returncode else "survived"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["draw", "mark", "run"])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=65)
    parser.add_argument("--count", type=int, default=90)
    parser.add_argument("--only", type=int, nargs="*", default=[])
    asked = parser.parse_args()
    if asked.what == "draw":
        json.dump([asdict(each) for each in draw(asked.seed, asked.count)], sys.stdout, indent=1)
        return
    drawn = json.loads(asked.paths[0].read_text())
    if asked.what == "mark":
        mark(drawn, asked.paths[1])
    else:
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        run(drawn, asked.paths[1], asked.paths[2], only=set(asked.only))


if __name__ == "__main__":
    main()

"""`make lint`: checks the numbers in [tool.ppo-tui.budget] of pyproject.toml.

Fails if a number is exceeded, or was raised since the branch point without a line `Budget: REASON` in a commit message.
In both cases it prints lines, tokens and bytes of string literals per room, with the change of the lines.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRODUCT, OTHER = ("launcher", "tui"), ("tests", "bench", "campaigns", "tools")
LONG = 40  # lines of a function that is not too long
LOOSE = "dict[str, Any]"
REASON = "\nBudget: "

Sources = Mapping[Path, str]


def lines(sources: Iterable[str]) -> int:
    return sum(text.count("\n") for text in sources)


def long_functions(sources: Sources) -> list[str]:
    """`PATH:LINE NAME` of functions over 40 lines."""
    return [
        f"{path}:{node.lineno} {node.name}"
        for path, text in sources.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= LONG
    ]


_LAYOUT = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
)


def tokens(text: str) -> list[tokenize.TokenInfo]:
    """The tokens of a module without comments, layout and docstrings."""
    documents = {
        (node.lineno, node.col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return [each for each in found if each.type not in _LAYOUT and each.start not in documents]


def _strings(found: Iterable[tokenize.TokenInfo]) -> int:
    """Bytes of string literals."""
    return sum(len(each.string.encode()) for each in found if each.type == tokenize.STRING)


def _loose(sources: Sources) -> int:
    return sum(text.count(LOOSE) for path, text in sources.items() if path.parts[:2] != ("launcher", "record"))


MEASURES: dict[str, tuple[tuple[str, ...], Callable[[Sources], int]]] = {
    "product_tokens": (PRODUCT, lambda sources: sum(map(len, map(tokens, sources.values())))),
    "product_lines": (PRODUCT, lambda sources: lines(sources.values())),
    "other_lines": (OTHER, lambda sources: lines(sources.values())),
    "long_functions": (PRODUCT, lambda sources: len(long_functions(sources))),
    "loose_dicts": (PRODUCT, _loose),
}


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True).stdout


def read(root: Path, folders: Iterable[str], kind: str = "py") -> dict[Path, str]:
    """The current files of a kind in these folders."""
    names = git(root, "ls-files", "-co", "--exclude-standard", "--", *(f"{each}/*.{kind}" for each in folders))
    paths = sorted(Path(name) for name in names.splitlines())
    return {path: (root / path).read_text() for path in paths if (root / path).is_file()}


def limits_at(root: Path, revision: str | None) -> dict[str, int]:
    """The table of pyproject.toml at a revision, or now; empty without one."""
    text = git(root, "show", f"{revision}:pyproject.toml") if revision else (root / "pyproject.toml").read_text()
    return dict(tomllib.loads(text).get("tool", {}).get("ppo-tui", {}).get("budget", {}))


def base_of(root: Path) -> str:
    """The branch point with origin/main; on main, or without such a remote, the commit before the last one."""
    base = git(root, "merge-base", "origin/main", "HEAD").strip()
    return base if base and base != git(root, "rev-parse", "HEAD").strip() else "HEAD~1"


def raised(old: Mapping[str, int], new: Mapping[str, int]) -> list[str]:
    return [name for name, limit in new.items() if limit > old.get(name, limit)]


def room_of(path: Path) -> str:
    return "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]


def per_room(root: Path, since: str) -> list[str]:
    """`launcher/check  8,012  +40  60,512  30,001  211`: lines of each room and their change since a commit; tokens,
    bytes of string literals, lines of TOML."""
    now, more = Counter[str](), {kind: Counter[str]() for kind in ("tokens", "strings", "TOML")}
    for path, text in read(root, (*PRODUCT, *OTHER)).items():
        room, found = room_of(path), tokens(text)
        now[room] += text.count("\n")
        more["tokens"][room] += len(found)
        more["strings"][room] += _strings(found)
    for path, text in read(root, (*PRODUCT, *OTHER), "toml").items():
        more["TOML"][room_of(path)] += text.count("\n")
    before = Counter[str]()
    for line in git(root, "grep", "-c", "", since, "--", *(f"{each}/*.py" for each in (*PRODUCT, *OTHER))).splitlines():
        name, _, count = line.partition(":")[2].rpartition(":")
        before[room_of(Path(name))] += int(count)
    rooms = sorted(now | before | more["TOML"])
    head = f"{'':28}{'lines':>8}{'change':>8}" + "".join(f"{kind:>10}" for kind in more)
    rows = [(room, f"{room:28}{now[room]:>8,}{now[room] - before[room]:>+8,}") for room in rooms]
    return [head, *(row + "".join(f"{counted[room]:>10,}" for counted in more.values()) for room, row in rows)]


def main(root: Path) -> int:
    limits, base = limits_at(root, None), base_of(root)
    folders: tuple[tuple[str, ...], ...] = (PRODUCT, OTHER)
    sources = {each: read(root, each) for each in folders}
    counts = {name: measure(sources[where]) for name, (where, measure) in MEASURES.items()}
    toml = lines(read(root, PRODUCT, "toml").values())
    print(f"budget: {', '.join(f'{name} {counts[name]:,} of {limits[name]:,}' for name in counts)}; {toml:,} of TOML")
    exceeded = [name for name in counts if counts[name] > limits[name]]
    for name in exceeded:
        print(f"error: {name} is {counts[name]:,}, and pyproject.toml allows {limits[name]:,}")
        print("hint: take as much away, or raise it in a commit with a line 'Budget: REASON'")
    higher = raised(limits_at(root, base), limits)
    unexplained = higher and REASON not in git(root, "log", "--format=%B", f"{base}..HEAD")
    if unexplained:
        print(f"error: {', '.join(higher)} rose: the commit needs a line 'Budget: REASON' in its message")
    if exceeded or higher:
        print("\n".join(per_room(root, base)))
    return int(bool(exceeded or unexplained))


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1]))

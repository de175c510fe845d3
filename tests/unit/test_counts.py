"""A number and its noun agree: 1 step, 2 steps. `counted` writes both, so that no message says `1 alerts`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tables import tabled

from launcher.core.format import counted

ROOT = Path(__file__).parents[2]
SKIPPED = ("launcher/inside/",)  # runs alone, for veRL's log
SOURCES = [
    path
    for folder in ("launcher", "tui")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not str(path.relative_to(ROOT)).startswith(SKIPPED)
]

NOT_NUMBERS = {"kind", "name", "folder", "number(longer)", "rollout.total"}
"""Values in front of a plural that are words or factors; and a total behind a slash."""


def _nouns() -> set[str]:
    """The plurals of all nouns that are counted anywhere."""
    found: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "counted":
                noun = node.args[1]
                if isinstance(noun, ast.Constant):
                    found.add(counted(2, str(noun.value).split()[-1]).split()[-1])
    return found


def _plurals(path: Path, nouns: str) -> Iterator[tuple[int, str, str]]:
    """Line, number and words of each number that a plural follows. `3 of 7 rows` is a plural for any 3."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        before = ""
        for value, after in zip(node.values, [*node.values[1:], None], strict=True):
            words = str(after.value) if isinstance(after, ast.Constant) else ""
            if isinstance(value, ast.FormattedValue) and not re.search(r"(?:\bof|/|–|\bto) $", before):
                name = ast.unparse(value.value)
                if found := re.match(rf" (?:(?!in |of |for )[a-z-]+ )?(?:{nouns})\b", words):
                    yield node.lineno, name, found[0].strip()
            before = str(value.value) if isinstance(value, ast.Constant) else ""


def test_a_number_before_a_plural_may_not_be_one() -> None:
    nouns = "|".join(sorted(_nouns()))
    found = [(path.name, *each) for path in SOURCES for each in _plurals(path, nouns)]
    constants = {name for _, _, name, _ in found if name.rpartition(".")[2].isupper()}
    assert [each for each in found if each[2] not in NOT_NUMBERS | constants] == []
    assert {each[2] for each in found} >= NOT_NUMBERS


@pytest.mark.parametrize("page", sorted((ROOT / "launcher").rglob("*.html")), ids=lambda path: path.name)
def test_pages_count_with_the_same_function(page: Path) -> None:
    nouns = "|".join(sorted(_nouns()))
    assert re.findall(rf"\}}\}} (?:[a-z-]+ )?(?:{nouns})\b", page.read_text("utf-8")) == []


@tabled
def test_the_noun_follows_its_number(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words

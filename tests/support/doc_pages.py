"""Documentation pages for tests: links, anchors, code blocks, and their commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
README = ROOT / "README.md"
ALL = [*PAGES, README, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"))]
_FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"(?:^ *<!-- .* -->\n+)+\Z", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")
_SAVED = re.compile(r"as `([\w./-]+)`:\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its lines without indentation, the text before it, its place in the page."""

    language: str
    text: str
    before: str
    marks: dict[str, str]  # of `<!-- show: 3 -->` before it: show, 3
    indent: str
    end: int

    @property
    def saved_as(self) -> str | None:
        """The file that the reader should write it to."""
        found = _SAVED.search(self.before)
        return found[1] if found else None


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    for found in _FENCE.finditer(text):
        before = text[: found.start()].rstrip(" ")
        comments = _MARKS.search(before)
        marks = re.findall(r"<!-- ([a-z]+)(?:: (.*))? -->", comments[0]) if comments else []
        prose = (before[: comments.start()] if comments else before).rstrip().rpartition("\n")[2]
        lines = [line.removeprefix(found[1]) for line in found[3].splitlines()]
        yield Block(found[2], "\n".join(lines), prose.strip(), dict(marks), found[1], found.end())


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def links(page: Path) -> Iterator[str]:
    """The targets of links and pictures except addresses."""
    for found in _LINK.finditer(prose(page)):
        target = found[1] or found[2]
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, in the form of GitHub and the site."""
    found: set[str] = set()
    for line in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).lower()).strip().replace(" ", "-")
        found.add(words)
    return found


def commands(page: Path) -> Iterator[list[str]]:
    """Every call of ppo-tui in a block or in code, as words without the program's name."""
    shells = [each.text.replace("\\\n", " ") for each in blocks(page) if each.language == "sh"]
    lines = [line for text in shells for line in text.splitlines()]
    for line in (*lines, *re.findall(r"`([^`\n]+)`", prose(page))):
        if line.startswith("ppo-tui ") and "..." not in line:
            yield shlex.split(line.replace("'ppo-tui[", "").partition(" | ")[0].strip(), comments=True)[1:]

"""`make lint`: words and turns of phrase that readers stumble over, by the rules in words.toml.

    python tools/words.py [--hints] [RULE ...]

Prints `path:line: rule: 'hit' -> say instead` per error, and per hint with --hints. Exits 1 if there is an error.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from strings import comments, docstrings, entries, sentences

from launcher.core.tables import read_tables, record

ROOT = Path(__file__).parents[1]
READERS = {"strings": sentences, "docstrings": docstrings, "data": entries, "comments": comments, "code": comments}
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
SPAN = re.compile(r"`[^`\n]*`")
WRAPPED = re.compile(r"(?<=[^\n|])\n(?=[^\n|#*\-0-9 ])")  # a line that continues its paragraph


@dataclass(frozen=True)
class Rule:
    """A turn of phrase; the last two fields are sentences with it and their corrections."""

    name: str
    pattern: str
    say: str
    bad: tuple[str, ...]
    good: tuple[str, ...]
    hint: bool = False
    """Whether it is a hint everywhere."""
    hint_in: tuple[str, ...] = ()
    """The kinds of text in which it is only a hint."""
    code: bool = False  # whether it also applies to comments of code

    def hits(self, text: str) -> Iterator[re.Match[str]]:
        yield from _compiled(self.pattern).finditer(text)


@dataclass(frozen=True)
class Source:
    """Files of one kind of text: README.md, launcher/**/*.py."""

    kind: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """One text: a page, a string, a docstring."""

    kind: str
    path: str
    line: int
    text: str
    """The text with blanks for line breaks inside paragraphs; positions stay, so that each has its line."""
    breaks: str = ""
    """The text of a page with its line breaks."""


@dataclass(frozen=True)
class Excuse:
    """Words with a permitted hit."""

    rule: str
    path: str
    text: str
    reason: str

    def covers(self, rule: Rule, text: Text, hit: re.Match[str]) -> bool:
        """Whether a hit is inside the excused words."""
        if self.rule != rule.name or not fnmatch(text.path, self.path):
            return False
        return text.text.find(self.text, max(0, hit.end() - len(self.text)), hit.start() + len(self.text)) >= 0


@dataclass(frozen=True)
class Hit:
    """A hit of a rule."""

    path: str
    line: int
    rule: Rule
    words: str
    hint: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule.name}: '{self.words}' -> {self.rule.say}"


@dataclass(frozen=True)
class Words:
    """The rules and where they apply: words.toml."""

    rules: tuple[Rule, ...]
    sources: tuple[Source, ...]
    excuses: tuple[Excuse, ...]

    def hits(self, text: Text) -> Iterator[Hit]:
        """The hits in a text, without permitted ones."""
        for rule in self.rules:
            for match in rule.hits(text.text) if rule.code or text.kind != "code" else ():
                if not any(excuse.covers(rule, text, match) for excuse in self.excuses):
                    line = text.line + text.breaks.count("\n", 0, match.start())
                    hint = rule.hint or text.kind in rule.hint_in
                    yield Hit(text.path, line, rule, match[0].strip(), hint)

    def unused(self, texts: list[Text]) -> Iterator[Excuse]:
        """Excuses without a hit."""
        rules = {rule.name: rule for rule in self.rules}
        for excuse in self.excuses:
            rule = rules[excuse.rule]
            if not any(excuse.covers(rule, text, match) for text in texts for match in rule.hits(text.text)):
                yield excuse


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.M | re.I)


def load_words() -> Words:
    """Reads words.toml."""
    tables = read_tables(Path(__file__).with_suffix(".toml"))
    return Words(
        tuple(record(Rule, row) for row in tables["rule"]),
        tuple(record(Source, row) for row in tables["source"]),
        tuple(record(Excuse, row) for row in tables.get("excuse", ())),
    )


def read_page(path: str, source: str) -> Text:
    """The prose of a Markdown page, without code."""
    prose = SPAN.sub("`x`", FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), source))
    return Text("docs", path, 1, WRAPPED.sub(" ", prose), prose)


def read_texts(sources: tuple[Source, ...]) -> Iterator[Text]:
    """All texts of the tree."""
    for source in sources:
        for path in sorted(path for glob in source.paths for path in ROOT.glob(glob)):
            name = str(path.relative_to(ROOT))
            if source.kind == "docs":
                yield read_page(name, path.read_text("utf-8"))
            else:
                for line, text in READERS[source.kind](path):
                    yield Text(source.kind, name, line, SPAN.sub("`x`", text))


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the words of code, data and documentation.")
    parser.add_argument("--hints", action="store_true", help="print hints as well")
    parser.add_argument("rules", nargs="*", metavar="RULE", help="print these rules only")
    asked = parser.parse_args()
    words = load_words()
    texts = list(read_texts(words.sources))
    hits = [hit for text in texts for hit in words.hits(text)]
    for hit in hits:
        if (asked.hints or not hit.hint) and (not asked.rules or hit.rule.name in asked.rules):
            print(hit)
    unused = list(words.unused(texts))
    for excuse in unused:
        print(f"tools/words.toml: no text needs the excuse '{excuse.text}' from {excuse.rule}: remove it")
    count = Counter(hit.hint for hit in hits)
    print(f"words: {count[False]} errors, {count[True]} hints (--hints prints them)")
    return 1 if count[False] or unused else 0


if __name__ == "__main__":
    sys.exit(main())

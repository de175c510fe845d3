"""Two responses word by word: removed words are marked [-so-], new ones {+so+}, in addition to colors."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from rich.cells import cell_len

from tui.kit.drawing.rows import Row, Span, broken, width

_WORDS = re.compile(r"\n|[^\s]+")
_MOST = 4000  # words of a response that are compared
_MARKS = {"critical": ("[-", "-]"), "ok": ("{+", "+}")}


class WordDiff(NamedTuple):
    """Words and line ends with their roles (kept, removed, new), and the number of each kind."""

    words: list[Span]
    kept: int
    gone: int
    new: int
    cut: bool


def compare(older: str, newer: str) -> WordDiff:
    """The changes from one response to another; compares at most 4000 words of each."""
    before, after = _WORDS.findall(older), _WORDS.findall(newer)
    cut = max(len(before), len(after)) > _MOST
    before, after = before[:_MOST], after[:_MOST]
    words: list[Span] = []
    counts = {"text": 0, "critical": 0, "ok": 0}
    for kind, first, last, begin, end in SequenceMatcher(None, before, after).get_opcodes():
        parts = [("text", after[begin:end])] if kind == "equal" else []
        if kind != "equal":
            parts = [("critical", before[first:last]), ("ok", after[begin:end])]
        for role, part in parts:
            counts[role] += sum(word != "\n" for word in part)
            words += [(word, role) for word in _marked(part, role)]
    return WordDiff(words, counts["text"], counts["critical"], counts["ok"], cut)


def plain(text: str) -> list[Span]:
    """A text as words for `flow`."""
    return [(word, "text") for word in _WORDS.findall(text)]


def flow(words: Sequence[Span], columns: int, indent: int = 3) -> list[Row]:
    """Words in lines of at most `columns` cells; breaks longer ones."""
    rows: list[Row] = [[(" " * indent, "text")]]
    room = max(columns - indent, 1)
    for word, role in words:
        if word == "\n":
            rows.append([(" " * indent, "text")])
            continue
        for part in broken(word, room):
            used = width(rows[-1])
            if used > indent and used + 1 + cell_len(part) > columns:
                rows.append([(" " * indent, "text")])
            elif used > indent:
                rows[-1].append((" ", role if rows[-1][-1][1] == role else "text"))
            rows[-1].append((part, role))
    return rows


def _marked(words: list[str], role: str) -> list[str]:
    """A changed part between its marks, which every line of it repeats."""
    if role not in _MARKS or not words:
        return words
    before, behind = _MARKS[role]
    found = list(words)
    for at, word in enumerate(words):
        if word == "\n":
            continue
        begins = at == 0 or words[at - 1] == "\n"
        ends = at + 1 == len(words) or words[at + 1] == "\n"
        found[at] = f"{before if begins else ''}{word}{behind if ends else ''}"
    return [word for word in found if word != "\n" or role == "ok"]

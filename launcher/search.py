"""The common ranking of names and meanings: `ppo-tui help WORD`, the command palette, the editor's fields.

All words of a query must match. A whole word counts more than a beginning, that more than another part, and that more
than a similar word; a name counts more than the title, and that more than the meaning.
"""

import difflib
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar

Entry = TypeVar("Entry")
_WORD = re.compile(r"[^\W_]+")
_NAME, _TITLE, _MEANING = (1.0, 0.9, 0.45), (0.7, 0.65, 0.4), (0.6, 0.5, 0.3)  # equal, begins with it, contains it
_WORTHS = (_NAME, _TITLE, _MEANING)
_SIMILAR = 0.2
_LAST = 0.04  # for a word that is the last part of a dotted name: `steps` of trainer.steps
_PHRASE = 0.15  # for a query whose words are consecutive in a name or title
_SHARE = 0.05  # for a query that is the whole name or title; less for a part of it
_PART = 3  # letters of a word that may be in the middle of another; shorter ones are in most
_LIKE = 0.75  # how similar a misspelled word must be


class Words(NamedTuple):
    """The searched texts of an entry; `weight` is added for a match."""

    name: str
    title: str = ""
    meaning: str = ""
    weight: float = 0


def ranked(query: str, entries: Iterable[Entry], words: Callable[[Entry], Words]) -> list[Entry]:
    """Entries with more than half of the best score, best first, equal ones in their order."""
    scores = [(score(query, words(each)), each) for each in entries]
    least = max((fit for fit, _ in scores), default=0) / 2
    return [each for _, each in sorted((row for row in scores if row[0] > least), key=lambda row: -row[0])]


def occurs(query: str, entry: Words) -> bool:
    """Whether an entry has each word of a query, not only similar ones."""
    return all(any(map(partial(_fit, word), map(_words, entry[:3]), _WORTHS)) for word in _words(query))


def score(query: str, entry: Words) -> float:
    """The score of a query; 0 if one of its words matches nowhere."""
    wanted, texts = _words(query), [_words(text) for text in entry[:3]]
    fits = [max(map(partial(_fit, word), texts, _WORTHS)) or _similar(word, texts[:2]) for word in wanted]
    if not fits or not all(fits):
        return 0
    whole = f" {' '.join(wanted)} "
    with_whole = [text for text in texts[:2] if whole in f" {' '.join(text)} "]
    last = len(wanted) == 1 and re.split(r"[./ ]", entry.name.lower())[-1] == query.lower()
    follows = len(wanted) > 1 and bool(with_whole)
    share = max((len(wanted) / len(text) for text in with_whole), default=0)
    return sum(fits) / len(fits) + _LAST * last + _PHRASE * follows + _SHARE * share + entry.weight


@lru_cache(maxsize=8192)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def _fit(word: str, text: tuple[str, ...], worth: tuple[float, float, float]) -> float:
    equal, begins, contains = worth
    if word in text:
        return equal
    if any(each.startswith(word) for each in text):
        return begins
    return contains if len(word) >= _PART and any(word in each for each in text) else 0


def _similar(word: str, texts: list[tuple[str, ...]]) -> float:
    known = {each for text in texts for each in text}
    return _SIMILAR if len(word) > _PART and difflib.get_close_matches(word, known, n=1, cutoff=_LIKE) else 0

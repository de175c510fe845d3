"""Finds a metric by a few letters of its name, unit or meaning."""

import re
from collections.abc import Iterable

from launcher.metrics.glossary import describe

_SEPARATORS = re.compile(r"[^a-z0-9]+")
_NAME, _UNIT, _MEANING = 100, 60, 40  # how good a whole word in each of them is


def ranked(keys: Iterable[str], query: str) -> list[str]:
    """Keys that match every word of the query, best first; without a query, all in order."""
    words = query.lower().split()
    if not words:
        return list(keys)
    scores = {key: _score(key, words) for key in keys}
    return sorted((key for key, score in scores.items() if score), key=lambda key: (-scores[key], key))


def _score(key: str, words: list[str]) -> int:
    found = [_fit(key, word) for word in words]
    return sum(found) if all(found) else 0


def _fit(key: str, word: str) -> int:
    """The score of one word; 0 without a match. Prose must contain the whole word, as its letters occur everywhere."""
    metric = describe(key)
    meaning = metric.meaning.lower()
    best = letters(key.lower(), word)
    if word == metric.unit.lower():
        best = max(best, _UNIT)
    at = meaning.find(word) if len(word) > 1 else -1
    if at >= 0:
        best = max(best, _MEANING if at == 0 or not meaning[at - 1].isalnum() else _MEANING // 2)
    return best


def letters(name: str, word: str) -> int:
    """The score of `word` as a name for `name`, 0 to 100.

    A match in one piece is best, then of first letters (`agn` for actor/grad_norm), then of single letters in a range
    of at most three times their number.
    """
    at = name.find(word)
    if at >= 0:
        begins = at == 0 or not name[at - 1].isalnum()
        ends = at + len(word) == len(name) or not name[at + len(word)].isalnum()
        return _NAME - 20 + 10 * begins + 10 * ends
    if word in "".join(part[0] for part in _SEPARATORS.split(name) if part):
        return 50
    span = _shortest(name, word)
    return max(1, 30 * len(word) // span) if span and span <= 3 * len(word) else 0


def _shortest(name: str, word: str) -> int:
    """Length of the shortest range of `name` with the letters of `word` in order; 0 without one."""
    best = 0
    start = name.find(word[0])
    while start >= 0:
        at = start
        for letter in word[1:]:
            at = name.find(letter, at + 1)
            if at < 0:
                return best
        if not best or at + 1 - start < best:
            best = at + 1 - start
        start = name.find(word[0], start + 1)
    return best

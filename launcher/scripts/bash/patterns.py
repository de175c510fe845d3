"""Bash's patterns (`*.sh`, `[0-9]?`) in time proportional to text times pattern, for any pattern."""

from collections.abc import Iterable

from launcher.scripts.bash.marks import Budget

_STAR, _ANY = "*", "?"
Pattern = tuple[tuple[str, str], ...]
"""Its parts: ("*", ""), ("?", ""), ("=", letter), ("[", letters), ("!", excluded letters)."""


def compiled(pieces: Iterable[tuple[str, bool]]) -> Pattern:
    """A pattern from its pieces; a quoted piece matches its characters literally."""
    parts: list[tuple[str, str]] = []
    for text, quoted in pieces:
        at = 0
        while at < len(text):
            letter = text[at]
            at += 1
            if quoted:
                parts.append(("=", letter))
            elif letter == "\\" and at < len(text):
                parts.append(("=", text[at]))
                at += 1
            elif letter == _STAR:
                if not parts or parts[-1][0] != _STAR:
                    parts.append((_STAR, ""))
            elif letter == _ANY:
                parts.append((_ANY, ""))
            elif letter == "[" and (end := text.find("]", at + 2 if text[at : at + 1] in "!^" else at + 1)) > 0:
                no = text[at] in "!^"
                parts.append(("!" if no else "[", _letters(text[at + no : end])))
                at = end + 1
            else:
                parts.append(("=", letter))
    return tuple(parts)


def _letters(text: str) -> str:
    for name, letters in (("[:digit:]", "0123456789"), ("[:space:]", " \t\n"), ("[:alnum:]", "0-9A-Za-z")):
        text = text.replace(name, letters)
    found, at = "", 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            first, last = ord(text[at]), min(ord(text[at + 2]), ord(text[at]) + 255)
            found += "".join(map(chr, range(first, last + 1)))
            at += 3
        else:
            found += text[at]
            at += 1
    return found


def _fits(part: tuple[str, str], letter: str) -> bool:
    kind, letters = part
    return kind == _ANY or (letter not in letters if kind == "!" else letter in letters)


def ends(pattern: Pattern, text: str, start: int, budget: Budget) -> list[int]:
    """The possible ends of a match that begins at `start`, in order."""
    budget.step(len(pattern) * (len(text) - start + 1))
    places = {start}
    for part in pattern:
        if not places:
            break
        if part[0] == _STAR:
            places = set(range(min(places), len(text) + 1))
        else:
            places = {at + 1 for at in places if at < len(text) and _fits(part, text[at])}
    return sorted(places)


def matches(pattern: Pattern, text: str, budget: Budget) -> bool:
    """Whether the pattern matches the whole text."""
    return len(text) in ends(pattern, text, 0, budget)


def cut(text: str, operator: str, pattern: Pattern, budget: Budget) -> str:
    """The text without the beginning (`#`) or end (`%`) that matches; doubled: the longest match."""
    if operator[0] == "#":
        found = ends(pattern, text, 0, budget)
        return text[found[-1] if len(operator) > 1 else found[0] :] if found else text
    starts: Iterable[int] = range(len(text) + 1) if len(operator) > 1 else range(len(text), -1, -1)
    for start in starts:
        if len(text) in ends(pattern, text, start, budget):
            return text[:start]
    return text


def replaced(text: str, operator: str, pattern: Pattern, new: str, budget: Budget) -> str:
    """The text with the longest match replaced; `//`: all of them, `/#` and `/%`: only at the beginning or end."""
    found, at = "", 0
    while at <= len(text):
        stops = [end for end in ends(pattern, text, at, budget) if end > at]
        if operator == "/%":
            stops = [end for end in stops if end == len(text)]
        if stops:
            found, at = budget.made(found + new), stops[-1]
            if operator != "//":
                break
        else:
            found += text[at : at + 1]
            at += 1
        if operator == "/#":
            break
    return found + text[at:]

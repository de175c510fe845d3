"""Finds the end of a word of a script, past quotes, `${...}`, `$(...)` and backslashes; and expands braces."""

import re
from itertools import islice, pairwise

BLANK = " \t\u00a0"
"""Blanks between words; the no-break space of web pages counts as one, although a shell disagrees."""

TORN = re.compile(rf"\\[{BLANK}]+(?:#[^\n]*)?\n")
"""A backslash followed by blanks, which does not continue the line, so that a shell ends the command."""

_ENDS = f"{BLANK}\n;&|()<>"
_RANGE = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})(?:\.\.(-?\d{1,4}))?|([A-Za-z])\.\.([A-Za-z])")
_MOST = 10_000  # words


def end_of_word(text: str, at: int, ends: str = _ENDS) -> int:
    """The place after the word that begins at `at`."""
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            if TORN.match(text, at):
                break
            at += 2
        elif letter in "'\"`$":
            at = end_of_part(text, at)
        elif text.startswith(("<(", ">("), at) and letter in ends:
            at = past(text, at + 2, "(")
        elif letter in ends:
            break
        else:
            at += 1
    return min(at, len(text))


def end_of_part(text: str, at: int) -> int:
    """The place after the quote or expansion that begins at `at`."""
    if text.startswith("$'", at):
        return _past_ansi(text, at + 2)
    if text.startswith("$(", at):
        return past(text, at + 2, "(")
    if text.startswith("${", at):
        return past(text, at + 2, "{")
    letter = text[at]
    if letter in "'`":
        end = text.find(letter, at + 1)
        while letter == "`" and end > 0 and text[end - 1] == "\\":
            end = text.find(letter, end + 1)
        return end + 1 or len(text)
    return past_double(text, at + 1) if letter == '"' else at + 1


def past_double(text: str, at: int) -> int:
    """The place after the closing double quote of the text that begins at `at`."""
    return _past(text, at, '"')


def past(text: str, at: int, opening: str) -> int:
    """The place after the bracket that closes the bracket before `at`."""
    return _past(text, at, opening)


def _past(text: str, at: int, first: str) -> int:
    """Iterative, so that deep nesting needs no stack; `open_`: the open brackets and quotes."""
    open_ = [first]
    while at < len(text):
        letter, inner = text[at], open_[-1]
        if letter == "\\":
            at += 1
        elif letter == '"':
            if inner == '"':
                open_.pop()
            else:
                open_.append('"')
        elif letter == "'" and inner != '"' and not (inner == "{" and '"' in open_):
            at = text.find("'", at + 1)
            if at < 0:
                return len(text)
        elif text.startswith(("$(", "${"), at):
            open_.append(text[at + 1])
            at += 1
        elif inner == "(" and letter == "(":
            open_.append("(")
        elif (inner, letter) in (("(", ")"), ("{", "}")):
            open_.pop()
        elif inner == "(" and letter == "#" and text[at - 1] in f"{BLANK}\n":
            at = text.find("\n", at)
            if at < 0:
                return len(text)
        at += 1
        if not open_:
            return min(at, len(text))
    return len(text)


def _past_ansi(text: str, at: int) -> int:
    while at < len(text) and text[at] != "'":
        at += 2 if text[at] == "\\" else 1
    return min(at + 1, len(text))


def words_of(raw: str) -> list[str]:
    """`{a,b}` and `{1..3}` outside of quotes, as separate words."""
    at, start = 0, -1
    depth = 0
    commas: list[int] = []
    while at < len(raw):
        letter = raw[at]
        if letter == "\\":
            at += 2
            continue
        if letter in "'\"`$":
            at = end_of_part(raw, at)
            continue
        if letter == "{":
            depth += 1
            if depth == 1:
                start, commas = at, []
        elif letter == "," and depth == 1:
            commas.append(at)
        elif letter == "}" and depth:
            depth -= 1
            if depth == 0 and (parts := _brace_parts(raw, start, at, commas)):
                before, after = raw[:start], raw[at + 1 :]
                rests = words_of(after)
                inner = [each for part in parts for each in words_of(part)]
                return list(islice((before + part + rest for part in inner for rest in rests), _MOST))
        at += 1
    return [raw]


def _brace_parts(raw: str, start: int, end: int, commas: list[int]) -> list[str]:
    if commas:
        edges = [start, *commas, end]
        return [raw[one + 1 : other] for one, other in pairwise(edges)]
    if found := _RANGE.fullmatch(raw[start + 1 : end]):
        letters = found[4] is not None
        first, last = (ord(found[4]), ord(found[5])) if letters else (int(found[1]), int(found[2]))
        step = abs(int(found[3] or 1)) or 1
        numbers = (range(first, last + 1, step) if first <= last else range(first, last - 1, -step))[:_MOST]
        return [chr(each) if letters else str(each) for each in numbers]
    return []

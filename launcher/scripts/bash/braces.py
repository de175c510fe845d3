"""`{a,b}` and `{1..3}`: one word of a script that stands for several."""

import re
from itertools import islice, pairwise

from launcher.scripts.bash.scanning import end_of_part

_RANGE = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})(?:\.\.(-?\d{1,4}))?|([A-Za-z])\.\.([A-Za-z])")
_MOST = 10_000  # words


def words_of(raw: str) -> list[str]:
    """`{a,b}` and `{1..3}` outside of quotes, each as a word of its own."""
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
            if depth == 0 and (parts := _parts(raw, start, at, commas)):
                before, after = raw[:start], raw[at + 1 :]
                rests = words_of(after)
                inner = [each for part in parts for each in words_of(part)]
                return list(islice((before + part + rest for part in inner for rest in rests), _MOST))
        at += 1
    return [raw]


def _parts(raw: str, start: int, end: int, commas: list[int]) -> list[str]:
    if commas:
        edges = [start, *commas, end]
        return [raw[one + 1 : other] for one, other in pairwise(edges)]
    if found := _RANGE.fullmatch(raw[start + 1 : end]):
        letters = found[4] is not None
        first, last = (ord(found[4]), ord(found[5])) if letters else (int(found[1]), int(found[2]))
        step = abs(int(found[3] or 1)) or 1
        numbers = list(range(first, last + 1, step) if first <= last else range(first, last - 1, -step))[:_MOST]
        return [chr(each) if letters else str(each) for each in numbers]
    return []

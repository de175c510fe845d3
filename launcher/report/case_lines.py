"""Lines of a console for a reader: decisive ones with their context, and each error once."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from launcher.console.pager import LogEntry, RawLine, shown
from launcher.console.search import is_trouble

_BEFORE, _NEAR, _AFTER, _LAST = 400, 4, 6, 12  # lines before a decisive one, next to it, after it, at the end
_LED = 4500  # characters of the lines of one process that lead to the first decisive one
_KINDS = 60  # maximum kinds of lines that report errors
_HEAD = re.compile(r"^[A-Z]+ \d\d-\d\d [\d:]{8} \[[^\]]{1,80}\] ")
_VARYING = re.compile(r"0x[0-9a-f]+|\d+")
LONGEST = 400  # characters of one line


class Excerpt(NamedTuple):
    """The lines around the decisive ones and the last ones; and others that report errors."""

    decisive: Sequence[str]
    trouble: Sequence[str]


def excerpt(lines: Iterable[str], decisive: Sequence[int]) -> Excerpt:
    """Reads a console once; `decisive`: numbers of lines, the most decisive first."""
    kept, recent, until = dict[int, str](), deque[tuple[int, str]](maxlen=_BEFORE), 0
    trouble = dict[str, tuple[int, str, int]]()
    for number, line in enumerate(lines, 1):
        recent.append((number, line))
        if number in decisive:
            kept |= dict([*recent][-_NEAR:]) | (dict(_led([*recent])) if number == decisive[0] else {})
            until = number + _AFTER
        elif number <= until:
            kept[number] = line
        elif is_trouble(line.encode()):
            kind = _VARYING.sub("", _entry(line).text)[:80]
            first, text, count = trouble.get(kind, (number, line, 0))
            if count or len(trouble) < _KINDS:
                trouble[kind] = first, text, count + 1
    kept |= dict([*recent][-_LAST:])
    found = ((f"{'>' if at in decisive else ' '}{at:>6}  ", _entry(kept[at]).shown) for at in sorted(kept))
    others = (each for each in trouble.values() if each[0] not in kept)
    rows = [f"{at:>7}  {_entry(line).shown[:LONGEST]}{f' ({count}×)' * (count > 1)}" for at, line, count in others]
    return Excerpt([*folded(found)], rows[::-1])


def folded(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Heads with texts; repeated texts, such as frames of other ranks, are only counted."""
    seen, again, indent = {""}, 0, ""
    for head, text in (*lines, (">", "")):
        if (key := _HEAD.sub("", text).strip(" ^~")) in seen and not head.startswith(">"):
            again += bool(key)
            continue
        if again > 1:
            yield f"{indent}… {again} equal to lines above"
        seen.add(key)
        again, indent = 0, " " * len(head)
        if text:
            yield f"{head}{text[:LONGEST]}"


def _led(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines of one process before its last one, as far as they fit."""
    writer, room = _entry(lines[-1][1]).source, _LED
    for number, line in reversed(lines):
        if (entry := _entry(line)).source == writer:
            room -= min(len(entry.text), LONGEST)
            if room < 0:
                return
            yield number, line


def _entry(line: str) -> LogEntry:
    return shown(RawLine(0, 0, line.encode()))

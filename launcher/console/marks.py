"""Recognizes console lines by the phrases in marks.toml.

Used by the reader of a live run, the diagnosis, the replay and the search. The causes of failures are in
`launcher.console.causes`. Lines are matched as bytes, because most need no decoding.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.console.lines import BEFORE, BEHIND_BARS, PREFIX
from launcher.core.tables import record, tables_of


@dataclass(frozen=True)
class Mark:
    """A kind of line: a row of marks.toml, which describes its fields."""

    name: str
    phrases: tuple[str, ...]
    phase: str = ""
    tracker: str = ""
    show: str = ""
    hints: tuple[bytes, ...] = ()

    @property
    def trouble(self) -> bool:
        """Whether the line reports an error."""
        return bool(self.hints)


PLAIN = Mark("", ("",))
"""The mark of a line without one."""


def _read(kind: str, tables: Mapping[str, Any]) -> tuple[Mark, ...]:
    return tuple(record(Mark, row, hints=tuple(map(str.encode, row.get("hints", ())))) for row in tables[kind])


_TABLES = tables_of(__file__)
MARKS, MARKS_INSIDE = _read("start", _TABLES), _read("inside", _TABLES)

STEP_HINT = b"step:"  # in a step line after text of another process
SAMPLE_LINES = 400  # maximum lines of a printed sample (prompt and response)
TROUBLE_HINTS = tuple({hint: None for mark in (*MARKS, *MARKS_INSIDE) for hint in mark.hints})
"""Every line accepted by `reports_trouble` contains one of these."""


def _table(marks: Iterable[Mark], before: bytes = b"") -> tuple[re.Pattern[bytes], dict[int | None, Mark]]:
    """One regular expression for several marks, and each match's mark by the number of its last group."""
    phrases = [(mark, phrase) for mark in marks for phrase in mark.phrases]
    every = "|".join(f"{phrase}(?P<_{number}>)" for number, (_, phrase) in enumerate(phrases))
    pattern = re.compile(before + b"(?:%b)" % every.encode())
    return pattern, {pattern.groupindex[f"_{number}"]: mark for number, (mark, _) in enumerate(phrases)}


_LOG_HEAD = (
    rb"[A-Z]+:[0-9-]{10} [0-9:,]{12}:|[0-9-]{10} [0-9:,]{12}\t[A-Z]+ \S{1,80} -- "
    rb"|[A-Z]+ (?P<stamp>[0-9-]{5} [0-9:]{8}) \[[^\]\n]{1,80}\] |\[[0-9-]{10} [0-9:]{8}(?: [A-Z]+[0-9]+){0,4}\] "
)
# Ray's prefix, the head of a log record of veRL, Ray, vLLM or SGLang, torchrun's rank, then the text.
_START, _AT_START = _table(
    (*MARKS, PLAIN), rb"(?P<prefix>%b)(?:%b)?(?:\[rank[0-9]+\]: )?(?P<text>) *" % (PREFIX.pattern, _LOG_HEAD)
)
_INSIDE, _IS_INSIDE = _table(MARKS_INSIDE)
_WARNING = re.compile(
    rb"(?:\[rank[0-9]+\]: ?)?(?:%b)" % "|".join(each for row in _TABLES["warning"] for each in row["phrases"]).encode()
)
_INSIDE_HINTS = tuple(hint for mark in MARKS_INSIDE for hint in mark.hints)

# The same marks at the starts of lines, found among many lines. It also finds some lines that have none.
_RANK = BEFORE + rb"(?:\[(?:[\w.@-]+,[0-9]+\]<std(?:out|err)>|(?:default|rank|trainer|worker)[0-9]+\]): ?){0,2}"
_WRITER = rb"\((?:[^()=\n]*(?:rank=[0-9]+ )?pid=[0-9]|raylet|autoscaler)[^()\n]*\)"
_PHRASES = "|".join(phrase for mark in MARKS if mark.name != "printed_data" for phrase in mark.phrases)
_HEAD, _ANY = (re.sub(rb"\(\?P<\w+>", b"(?:", pattern) for pattern in (_LOG_HEAD, _PHRASES.encode()))
_STARTS = re.compile(
    rb"\n(?=(%b(?:\x1b?\[[0-9;]*m ?|%b ?)*(?:%b)?(?:\[rank[0-9]+\]: )? *))\1"
    rb"(?=%b)" % (_RANK, _WRITER, _HEAD, _ANY),
    re.MULTILINE,
)
_LITERALS = (STEP_HINT, *_INSIDE_HINTS)


def marked_places(data: bytes) -> list[int]:
    """Ascending byte offsets in complete lines: at least one per line with a mark or a possible step."""
    places = [match.start() for match in _STARTS.finditer(b"\n" + data.replace(b"\r", b"\n"))]
    behind = (match.end() for bar in BEHIND_BARS for match in bar.finditer(data))
    return sorted({*places, *behind, *_found(data, _LITERALS)})


def step_places(data: bytes) -> list[int]:
    """Places of lines with a possible step."""
    return sorted(_found(data, (STEP_HINT, b"[Step ")))


def places_of(
    words: Sequence[bytes], others: Callable[[bytes], list[int]] | None = None
) -> Callable[[bytes], list[int]]:
    """A function that finds lines with one of these words, and the lines found by `others`."""
    return lambda data: sorted({*_found(data, words), *(others(data) if others else ())})


def _found(data: bytes, words: Iterable[bytes]) -> Iterator[int]:
    for word in words:
        place = data.find(word)
        while place >= 0:
            yield place
            place = data.find(word, place + len(word))


def mark_at_start(raw: bytes) -> tuple[Mark, re.Match[bytes]]:
    """The mark at the start of a line's text, and the match with its phrase's groups.

    Further groups: Ray's `prefix`, vLLM's date and time `stamp`, and an empty `text` where the text starts.
    """
    match = _START.match(raw)
    assert match is not None  # the pattern also matches empty text
    return _AT_START[match.lastindex], match


def marks_inside(lines: Sequence[bytes]) -> list[Mark]:
    """The marks inside lines without one at their start. Searching many lines at once is faster."""
    together = b"\n".join(lines)
    hints = [hint for hint in _INSIDE_HINTS if hint in together]
    if not hints:
        return [PLAIN] * len(lines)
    matches = (_INSIDE.search(raw) if any(map(raw.__contains__, hints)) else None for raw in lines)
    return [_IS_INSIDE[match.lastindex] if match else PLAIN for match in matches]


def is_warning(line: re.Match[bytes]) -> bool:
    """Whether a line matched by `mark_at_start` begins as a warning."""
    return _WARNING.match(line.string, line.end("prefix")) is not None


def reports_trouble(raw: bytes) -> bool:
    """Whether a line reports an error."""
    mark, _ = mark_at_start(raw)
    return (mark if mark.name else marks_inside([raw])[0]).trouble

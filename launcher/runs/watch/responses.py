"""The model's responses: veRL's dumps, one file per step, and metrics computed from them."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from launcher.core.errors import UserError
from launcher.core.tail import records
from launcher.core.text import clean
from launcher.metrics.host import PREFIX as OF_MACHINE
from launcher.metrics.records import StepRecord, float_of, is_step, parse_object
from launcher.metrics.responses import PREFIX, ResponseFigures
from launcher.metrics.scores import ScoreCounts
from launcher.record.layout import AttemptDir, RunDir

LARGEST = 1 << 25  # bytes read of one file
_LONGEST = 1 << 16  # characters kept of one text
_PROMPT = re.compile(rb'"input": ?"(?:[^"\\]|\\.)*"')  # the raw JSON of a prompt
_KNOWN = {"input", "output", "gts", "score", "step", "uid", "reward"}


class Dump(NamedTuple):
    """The file of one step. `kind` is "rollout" or "validation"."""

    kind: str
    step: int
    path: Path


class Sample(NamedTuple):
    """One response, clean text. `score`: the summed reward, nan if unknown. `truth`: "" if unknown.

    `parts`: other results of the reward function (accuracy, format, prediction), as `name value`.
    """

    prompt: str
    response: str
    truth: str
    score: float
    parts: tuple[str, ...]


def dumps(run: RunDir) -> list[Dump]:
    """All dumps of a run, by kind and then by step."""
    files = []
    for kind, folder in (("rollout", run.rollouts), ("validation", run.validations)):
        with contextlib.suppress(OSError):
            files += [
                Dump(kind, int(path.stem), path)
                for path in folder.iterdir()
                if path.suffix == ".jsonl" and path.stem.isdecimal() and is_step(int(path.stem))
            ]
    return sorted(files)


def stamp(run: RunDir) -> tuple[int, ...]:
    """A stamp that changes with each new dump; listing thousands of dumps is slow."""
    return tuple(folder.stat().st_mtime_ns if folder.is_dir() else 0 for folder in (run.rollouts, run.validations))


def read(dump: Dump) -> tuple[list[Sample], bool]:
    """The responses of a step in file order, and whether some were omitted. Raises OSError."""
    lines, cut = _lines(dump)
    return [_sample(row) for _, row in _rows(lines)], cut


def prompt_of(dump: Dump, place: int) -> bytes | None:
    """The prompt bytes of the sample at this place, for `responses_to`. Raises OSError."""
    for at, (line, _) in enumerate(_rows(_lines(dump)[0])):
        if at == place:
            prompt = _PROMPT.search(line)
            return prompt[0] if prompt else None
    return None


def responses_to(prompt: bytes, dump: Dump) -> list[Sample]:
    """A dump's responses to one prompt. Parses only their lines. Raises OSError."""
    with dump.path.open("rb") as file:
        data = file.read(LARGEST)
    lines, at = [], data.find(prompt)
    while at >= 0:
        end = data.find(b"\n", at)
        end = end if end >= 0 else len(data)
        lines.append(data[data.rfind(b"\n", 0, at) + 1 : end])
        at = data.find(prompt, end)
    return [_sample(row) for _, row in _rows(lines)]


def rows(dump: Dump, most: int) -> list[Mapping[str, Any]]:
    """The samples in the first `most` bytes of a dump, as veRL wrote them. Raises OSError."""
    return [row for _, row in _rows(_lines(dump, most)[0])]


def _lines(dump: Dump, most: int = LARGEST) -> tuple[list[bytes], bool]:
    with dump.path.open("rb") as file:
        data = file.read(most + 1)
    cut = len(data) > most
    return data[: data.rfind(b"\n") + 1 if cut else None].splitlines(), cut


def _rows(lines: list[bytes]) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """Sample lines with their parsed content."""
    for line in lines:
        row = parse_object(line)
        if row is not None and "output" in row:
            yield line, row


def _sample(row: Mapping[str, Any]) -> Sample:
    return Sample(
        _text(row.get("input")),
        _text(row.get("output")),
        _text(row.get("gts")),
        _score(row),
        tuple(f"{_text(key)} {_text(value)}" for key, value in row.items() if key not in _KNOWN),
    )


def _score(row: Mapping[str, Any]) -> float:
    score = row.get("score")
    return float_of(score) if isinstance(score, (int, float)) else float("nan")


def _text(value: Any) -> str:
    """Clean text; for a long one, its beginning and its length."""
    if value is None:
        return ""
    text = str(value)
    rest = f" … ({len(text):,} characters in total)" if len(text) > _LONGEST else ""
    return clean(text[:_LONGEST]).strip() + rest


Guard = Callable[[Literal["responses"]], AbstractContextManager[None]]

_OWN = (PREFIX, OF_MACHINE)
_MOST = 1 << 23  # bytes read of one dump
_SHARE = 0.01  # share of one core
_AHEAD = 2.0  # seconds of it that may be spent in advance: steps may come in a burst


def counted_scores(dump: Dump) -> ScoreCounts | None:
    """The scores of a dump, counted as `ToldByResponses` counts them; None without any, or if it cannot be read."""
    with contextlib.suppress(OSError):
        return ScoreCounts.of(map(_score, rows(dump, _MOST)))
    return None


class ToldByResponses:
    """Adds `responses/...` and `scores` to the steps of an attempt, in order, within 1 % of one core.

    Metrics already in the attempt's steps.jsonl are reused. A step has none if its dump is unreadable or the time is
    used up; an incomplete dump counts with its complete lines.
    """

    def __init__(self, run: RunDir, attempt: AttemptDir, guard: Guard | None = None) -> None:
        """Computes inside a block of `guard`; without it, no dump is read."""
        self._run, self._attempt, self._guard = run, attempt, guard
        self._figures = ResponseFigures()
        self._since, self._spent = time.monotonic(), 0.0

    def add(self, record: StepRecord) -> None:
        """Adds the metrics and scores of one step."""
        if (known := self._recorded.get(record.step)) is not None:
            record.data |= known
        elif self._guard is not None and self._spent <= _SHARE * (time.monotonic() - self._since) + _AHEAD:
            before = time.thread_time()
            dump = Dump("rollout", record.step, self._run.rollouts / f"{record.step}.jsonl")
            with self._guard("responses"), contextlib.suppress(OSError):
                if dump.path.is_file():
                    found = rows(dump, _MOST)
                    record.scores = ScoreCounts.of(map(_score, found))
                    record.data |= self._figures.of(found)
            self._spent += time.thread_time() - before

    @cached_property
    def _recorded(self) -> dict[int, dict[str, float]]:
        """The recorded metrics, which a supervisor that takes over need not compute again."""
        figures: dict[int, dict[str, float]] = {}
        with contextlib.suppress(UserError):  # a file that cannot be read
            for line in records(self._attempt.steps):
                if any(own.encode() in line for own in _OWN) and (record := StepRecord.from_line(line)) is not None:
                    figures[record.step] = {key: value for key, value in record.data.items() if key.startswith(_OWN)}
        return figures

"""What the model answered: veRL's dumps, one file a step, rewritten whole by veRL when the step is."""

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

from launcher.metrics.records import is_step, parse_object
from launcher.run.directory import RunDir
from launcher.text import clean

LARGEST = 1 << 25  # bytes read of one file
_LONGEST = 1 << 16  # characters kept of one text
_KNOWN = {"input", "output", "gts", "score", "step", "uid", "reward"}


class Dump(NamedTuple):
    """The file of one step. `kind` is "rollout" or "validation"."""

    kind: str
    step: int
    path: Path


class Sample(NamedTuple):
    """One answer, clean text. `score` is the summed reward, nan when unknown; `truth` is "" when unknown.

    `parts` are what else the reward function returned (accuracy, format, prediction), as `name value`.
    """

    prompt: str
    answer: str
    truth: str
    score: float
    parts: tuple[str, ...]


def dumps(run: RunDir) -> list[Dump]:
    """All dumps of a run, by kind and then by step."""
    found = []
    for kind, folder in (("rollout", run.rollouts), ("validation", run.validations)):
        with contextlib.suppress(OSError):
            found += [
                Dump(kind, int(path.stem), path)
                for path in folder.iterdir()
                if path.suffix == ".jsonl" and path.stem.isdecimal() and is_step(int(path.stem))
            ]
    return sorted(found)


def read(dump: Dump) -> tuple[list[Sample], bool]:
    """The answers of a step in the order of the file, and whether some were too many to read.

    Lines that are no sample are left out. Raises OSError.
    """
    with dump.path.open("rb") as file:
        data = file.read(LARGEST + 1)
    cut = len(data) > LARGEST
    lines = data[: data.rfind(b"\n") + 1 if cut else None].splitlines()
    rows = (parse_object(line) for line in lines)
    return [_sample(row) for row in rows if row is not None and "output" in row], cut


def _sample(row: dict[str, Any]) -> Sample:
    score = row.get("score")
    return Sample(
        _text(row.get("input")),
        _text(row.get("output")),
        _text(row.get("gts")),
        float(score) if isinstance(score, (int, float)) else float("nan"),
        tuple(f"{_text(key)} {_text(value)}" for key, value in row.items() if key not in _KNOWN),
    )


def _text(value: Any) -> str:
    return "" if value is None else clean(str(value)[:_LONGEST]).strip()

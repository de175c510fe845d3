"""The user's own rows: a table of questions and answers as .jsonl or .csv into veRL's schema."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.core.errors import UserError
from launcher.core.files import require_file
from launcher.core.text import near_hint
from launcher.data import gsm8k, math, schema, source
from launcher.data.source import Item

REWARDS = ("gsm8k", "math")


@dataclass(frozen=True)
class Form:
    """The columns to read, and the form and judge of answers.

    `reward`: one of veRL's own: its instruction is added to each question, and an answer in its original form (`...
    #### 72`) is reduced to the result. None leaves both unchanged, for a custom reward function, which gets `name` as
    the data source.
    """

    prompt: str
    answer: str
    name: str
    reward: str | None = None


def write(path: Path, target: Path, form: Form, test_share: float) -> dict[str, int]:
    """Writes `train.parquet` and `test.parquet` into the folder `target`; returns the rows per split.

    `test_share` of the rows, evenly spread, become the test set. Raises UserError for a missing file or column, an
    empty question or answer, or an empty set.
    """
    if form.reward not in (None, *REWARDS):
        raise UserError(f"--reward {form.reward!r} is not one of veRL's own", f"use {' or '.join(REWARDS)}")
    if not 0 < test_share < 1:
        raise UserError(f"--test-share {test_share} is not allowed", "use a number above 0 and below 1")
    parts = _divided([*rows(_items(path), form)], test_share)
    for split, part in parts.items():
        if not part:
            raise UserError(f"no rows left for the {split} set", "add rows, or change --test-share", str(path))
    return {split: schema.write(target / f"{split}.parquet", part) for split, part in parts.items()}


def rows(items: Iterable[Item], form: Form) -> Iterator[schema.Row]:
    """veRL's rows from places and rows of the table."""
    task = {"gsm8k": gsm8k, "math": math}.get(form.reward or "")
    for index, (place, item) in enumerate(items):
        question, answer = (_text(place, item, column) for column in (form.prompt, form.answer))
        yield schema.row(
            task.DATA_SOURCE if task else form.name,
            question=question,
            instruction=task.INSTRUCTION if task else "",
            answer=answer,
            ground_truth=(task.ground_truth(answer) if task else None) or answer,
            split="train",
            index=index,
        )


def _text(place: str, item: Mapping[str, object], column: str) -> str:
    if column not in item:
        columns = ", ".join(map(str, item))
        raise UserError(f"{place}: no column {column!r}", near_hint(column, item, f"its columns are {columns}"))
    value = item[column]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UserError(f"{column} is {type(value).__name__}", "use text or a number", place)
    if not str(value).strip():
        raise UserError(f"{column} is empty", "fill it, or leave the row out", place)
    return str(value).strip()


def _items(path: Path) -> Iterator[Item]:
    name = path.name.removesuffix(".gz")
    require_file(path)
    if name.endswith((".jsonl", ".json")):
        return source.json_lines(path)
    if name.endswith(".csv") and name == path.name:
        return _csv(path)
    raise UserError(f"{path}: unsupported file type", "use .jsonl, .jsonl.gz or .csv")


def _csv(path: Path) -> Iterator[Item]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for item in reader:
                filled = {key: value for key, value in item.items() if key is not None and value is not None}
                yield f"{path}, line {reader.line_num}", filled
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"not valid CSV: {error}", "save the table as CSV in UTF-8", str(path)) from None


def _divided(table: list[schema.Row], share: float) -> dict[str, list[schema.Row]]:
    """Spreads the test rows evenly, so that both sets of a sorted table are similar."""
    parts: dict[str, list[schema.Row]] = {"train": [], "test": []}
    for index, row in enumerate(table):
        split = "test" if int((index + 1) * share) > int(index * share) else "train"
        row["extra_info"]["split"] = split
        parts[split].append(row)
    return parts

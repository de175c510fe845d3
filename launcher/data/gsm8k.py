"""GSM8K as veRL's built-in reward reads it: grade-school word problems, the answer a number after `####`."""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from launcher.data import schema
from launcher.errors import UserError

DATA_SOURCE = "openai/gsm8k"  # veRL chooses its scorer by this name
INSTRUCTION = 'Let\'s think step by step and output the final answer after "####".'
SPLITS = ("train", "test")

_FINAL = re.compile(r"#### (-?[0-9.,]+)")


def write(source: Path | None, target: Path) -> dict[str, int]:
    """Writes `train.parquet` and `test.parquet` into the folder `target`; returns the rows of each split.

    `source` is a folder with the original `train.jsonl` and `test.jsonl` (each may end in `.gz`); without it
    the set is downloaded from the Hugging Face hub. Raises UserError when neither is to be had, and for a
    line that is not of this form.
    """
    found = {split: _find(source, split) for split in SPLITS} if source else None
    counts = {}
    for split in SPLITS:
        items = _read(found[split]) if found else _download(split)
        counts[split] = schema.write(target / f"{split}.parquet", rows(items, split))
    return counts


def rows(items: Iterable[tuple[str, dict[str, Any]]], split: str) -> Iterator[schema.Row]:
    """veRL's rows from pairs of (where it stands, for error messages; {"question", "answer"})."""
    for index, (place, item) in enumerate(items):
        question, answer = item.get("question"), item.get("answer")
        if not isinstance(question, str) or not isinstance(answer, str):
            raise UserError(f"{place}: a line of GSM8K holds the texts 'question' and 'answer'.")
        truth = ground_truth(answer)
        if truth is None:
            raise UserError(f"{place}: an answer of GSM8K ends with '#### ' and a number, this one does not.")
        yield schema.row(
            DATA_SOURCE,
            question=question,
            instruction=INSTRUCTION,
            answer=answer,
            ground_truth=truth,
            split=split,
            index=index,
        )


def ground_truth(answer: str) -> str | None:
    """The number after `#### ` as veRL's scorer compares it, without thousands separators."""
    match = _FINAL.search(answer)
    return match.group(1).replace(",", "") if match else None


def _find(source: Path, split: str) -> Path:
    for name in (f"{split}.jsonl", f"{split}.jsonl.gz"):
        if (source / name).is_file():
            return source / name
    raise UserError(f"{source} has neither {split}.jsonl nor {split}.jsonl.gz.")


def _read(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                item = json.loads(line)
                if not isinstance(item, dict):
                    raise ValueError("not an object")
                yield f"{path}, line {number}", item
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UserError(f"{path} is not a file of JSON lines, see line {max(number, 1)}: {error}.") from None


def _download(split: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        import datasets
    except ImportError:
        raise UserError(
            "Downloading GSM8K needs the package datasets, which comes with veRL: install ppo-tui[cpu] or "
            "ppo-tui[gpu], or give a folder with train.jsonl and test.jsonl."
        ) from None
    try:
        items = datasets.load_dataset(DATA_SOURCE, "main", split=split)
    except Exception as error:  # the hub's client has many ways to say that it cannot be reached
        raise UserError(
            f"GSM8K could not be downloaded from the Hugging Face hub ({type(error).__name__}): "
            "get train.jsonl and test.jsonl in another way and give their folder."
        ) from None
    for index, item in enumerate(items):
        yield f"{DATA_SOURCE} {split}, row {index}", item

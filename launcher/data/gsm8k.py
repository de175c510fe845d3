"""GSM8K for veRL's built-in reward: grade-school word problems with a number after `####` as the answer."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from launcher.core.errors import UserError
from launcher.data import schema, source
from launcher.data.source import Item

DATA_SOURCE = "openai/gsm8k"  # veRL chooses its scorer by this name
INSTRUCTION = 'Let\'s think step by step and output the final answer after "####".'
SPLITS = ("train", "test")

_FINAL = re.compile(r"#### (-?[0-9.,]+)")
_INSTEAD = "download train.jsonl and test.jsonl yourself and set --from to their folder"


def write(folder: Path | None, target: Path) -> dict[str, int]:
    """Writes `train.parquet` and `test.parquet` into the folder `target`; returns the rows per split.

    `folder` has the original `train.jsonl` and `test.jsonl` (or `.gz`); without it the set is downloaded from the
    Hugging Face hub. Raises UserError if neither is available, and for an invalid line.
    """
    found = {split: source.split_file(folder, split) for split in SPLITS} if folder else None
    counts = {}
    for split in SPLITS:
        if found:
            items = source.json_lines(found[split])
        else:
            items = source.from_hub("GSM8K", DATA_SOURCE, "main", split, _INSTEAD)
        counts[split] = schema.write(target / f"{split}.parquet", rows(items, split))
    return counts


def rows(items: Iterable[Item], split: str) -> Iterator[schema.Row]:
    """veRL's rows from places and {"question", "answer"}."""
    for index, (place, item) in enumerate(items):
        question, answer = item.get("question"), item.get("answer")
        if not isinstance(question, str) or not isinstance(answer, str):
            raise UserError("not a row of GSM8K", "a row needs the strings 'question' and 'answer'", place)
        truth = ground_truth(answer)
        if truth is None:
            raise UserError(f"no result in the answer {answer[-20:]!r}", "end it with '#### ' and a number", place)
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
    """The number after `#### ` in the form of veRL's scorer, without thousands separators."""
    match = _FINAL.search(answer)
    return match.group(1).replace(",", "") if match else None

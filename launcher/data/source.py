"""Reads rows from JSON lines, plain or compressed, and from data sets on the Hugging Face hub."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from launcher.core.errors import UserError

Item = tuple[str, dict[str, object]]
"""The place of a row, for error messages, and the row."""


def split_file(folder: Path, split: str) -> Path:
    """`train.jsonl` or `train.jsonl.gz` in a folder. Raises UserError."""
    for name in (f"{split}.jsonl", f"{split}.jsonl.gz"):
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"{folder} has neither {split}.jsonl nor {split}.jsonl.gz", "use a folder with both splits")


def json_lines(path: Path) -> Iterator[Item]:
    """The objects of a file, one per line; empty lines are skipped. Raises UserError with the line."""
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                item = json.loads(line)
                if not isinstance(item, dict):
                    raise ValueError("not an object")
                yield f"{path}, line {number}", item
    except (OSError, EOFError, ValueError, zlib.error) as error:
        place = f"{path}, line {max(number, 1)}"
        raise UserError(
            f"not valid JSON lines: {error}", "write one object per line, or copy the file again", place
        ) from None


def from_hub(title: str, name: str, config: str | None, split: str, instead: str) -> Iterator[Item]:
    """The rows of a split on the Hugging Face hub. Raises UserError with `instead` as its hint."""
    try:
        import datasets
    except ImportError:
        raise UserError(
            f"downloading {title} requires the package datasets, which comes with veRL",
            f"run `pip install datasets`, or {instead}",
        ) from None
    try:
        items = datasets.load_dataset(name, config, split=split)
    except Exception as error:  # the hub's client raises many types when it cannot connect
        raise UserError(
            f"{title} could not be downloaded from the Hugging Face hub as {name} ({type(error).__name__})", instead
        ) from None
    for index, item in enumerate(items):
        yield f"{name} {split}, row {index}", item

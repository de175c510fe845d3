r"""MATH for veRL's built-in reward: competition problems with the answer in the last `\boxed{}`."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from launcher.core.errors import UserError
from launcher.data import schema, source
from launcher.data.source import Item

HUB = "DigitalLearningGmbH/MATH-lighteval"
DATA_SOURCE = HUB  # veRL chooses its scorer by this name
INSTRUCTION = r"Let's think step by step and output the final answer within \boxed{}."
SPLITS = ("train", "test")

_INSTEAD = "download MATH yourself and set --from to its folder"
_MARKS = ("\\boxed", "\\fbox")


def write(where: str | None, target: Path) -> dict[str, int]:
    """Writes `train.parquet` and `test.parquet` into the folder `target`; returns the rows per split.

    `where`: a folder, or a data set on the Hugging Face hub (None: the usual one). A folder has `train.jsonl` and
    `test.jsonl` (or `.gz`), or the original `train/` and `test/` with one JSON file per problem. Raises UserError
    without files, and for a problem without a boxed answer.
    """
    folder = Path(where).expanduser() if where else None
    local = folder is not None and (folder.is_dir() or (where or "").startswith((".", "/", "~")))
    if local and folder is not None:
        readers = {split: _local(folder, split) for split in SPLITS}
    else:
        readers = {split: source.from_hub("MATH", where or HUB, None, split, _INSTEAD) for split in SPLITS}
    return {split: schema.write(target / f"{split}.parquet", rows(items, split)) for split, items in readers.items()}


def rows(items: Iterable[Item], split: str) -> Iterator[schema.Row]:
    """veRL's rows from places and {"problem", "solution"}."""
    for index, (place, item) in enumerate(items):
        problem, solution = item.get("problem"), item.get("solution")
        if not isinstance(problem, str) or not isinstance(solution, str):
            raise UserError("not a problem of MATH", "a problem needs the strings 'problem' and 'solution'", place)
        truth = ground_truth(solution)
        if truth is None:
            raise UserError("no answer in the solution", "write it in \\boxed{}", place)
        yield schema.row(
            DATA_SOURCE,
            question=problem,
            instruction=INSTRUCTION,
            answer=solution,
            ground_truth=truth,
            split=split,
            index=index,
        )


def ground_truth(solution: str) -> str | None:
    r"""The content of the last box: `\boxed{\frac{1}{2}}` with its inner braces, `\boxed 5` up to the `$`."""
    start, mark = max((solution.rfind(mark), mark) for mark in _MARKS)
    if start < 0:
        return None
    rest = solution[start + len(mark) :].lstrip()
    if not rest.startswith("{"):
        return rest.partition("$")[0].strip() or None
    depth = 0
    for place, letter in enumerate(rest):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return rest[1:place]
    return None


def _local(folder: Path, split: str) -> Iterator[Item]:
    if not (folder / split).is_dir():
        yield from source.json_lines(source.split_file(folder, split))
        return
    files = sorted((folder / split).rglob("*.json"), key=_natural)
    if not files:
        raise UserError(f"{folder / split} has no .json files", "the original MATH has one file per problem")
    for path in files:
        try:
            item = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"not valid JSON: {error}", "correct the file, or copy it again", str(path)) from None
        yield str(path), item if isinstance(item, dict) else {}


def _natural(path: Path) -> tuple[str, int, str]:
    """The sort key of problems: algebra/2.json before algebra/10.json."""
    return str(path.parent), int(path.stem) if path.stem.isdigit() else 0, path.stem

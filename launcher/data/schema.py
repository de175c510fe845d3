"""The rows that veRL reads: one parquet file per split, one row per prompt.

Columns as in veRL's own preprocessing scripts: `data_source` selects veRL's built-in reward function, `prompt` is a
chat, and the reward function compares with `reward_model.ground_truth`.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

from launcher.core.errors import UserError
from launcher.core.files import make_folder


class Message(TypedDict):
    role: str
    content: str


class RewardModel(TypedDict):
    style: str
    ground_truth: str


class ExtraInfo(TypedDict):
    split: str
    index: int
    answer: str
    question: str


class Row(TypedDict):
    data_source: str
    prompt: list[Message]
    ability: str
    reward_model: RewardModel
    extra_info: ExtraInfo


def row(
    data_source: str, *, question: str, instruction: str, answer: str, ground_truth: str, split: str, index: int
) -> Row:
    """One row of a task with a rule-based reward.

    The prompt is `question` plus `instruction` (may be empty), which sets the answer's form. `answer`: the worked
    solution, for people.
    """
    return {
        "data_source": data_source,
        "prompt": [{"role": "user", "content": f"{question} {instruction}".rstrip()}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": ground_truth},
        "extra_info": {"split": split, "index": index, "answer": answer, "question": question},
    }


def write(path: Path, rows: Iterable[Row]) -> int:
    """Writes `rows` as parquet, whole or not at all; returns their number.

    Raises UserError without pyarrow, which comes with veRL, not with ppo-tui.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(
            "writing parquet requires pyarrow, which comes with veRL", "run `pip install pyarrow`"
        ) from None
    table = pyarrow.Table.from_pylist(list(rows), schema=_arrow_schema(pyarrow))
    make_folder(path.parent)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pyarrow.parquet.write_table(table, unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return int(table.num_rows)


def _arrow_schema(pa: Any) -> Any:
    """The columns with types; fixed, so that an unusual first row cannot change them."""
    text, number = pa.string(), pa.int64()
    return pa.schema(
        {
            "data_source": text,
            "prompt": pa.list_(pa.struct({"role": text, "content": text})),
            "ability": text,
            "reward_model": pa.struct({"style": text, "ground_truth": text}),
            "extra_info": pa.struct({"split": text, "index": number, "answer": text, "question": text}),
        }
    )

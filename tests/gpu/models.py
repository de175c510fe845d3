"""Data that a model of 135M can learn from within minutes: `models.py $KIT [TOY]` makes sums-* and after-*.parquet.

With the rows of the toy in TOY also those of it with a fault.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas

ASKED = 'Write the sum on one line and then the number after "####".'
MARKED = 'Write it after "####", such as "#### 12".'


def sums(kit: Path) -> None:
    """Sums of two numbers below 50, in veRL's schema: 2,048 rows to train on and 128 others."""
    pairs = [(a, b) for a in range(2, 50) for b in range(2, 50)]
    random.Random(0).shuffle(pairs)
    _write(kit, "sums", [(f"What is {a} + {b}? {ASKED}", a + b) for a, b in (*pairs[:2048], *pairs[-128:])], 128)


def after(kit: Path) -> None:
    """The number after another one: 896 rows to train on and 64 others; `turn`: products from row 160 (step 11) on."""
    chosen = random.Random(67)
    rows = [(f"Which number comes after {a}? {MARKED}", a + 1) for a in chosen.sample(range(10, 1000), 960)]
    pairs = [(chosen.randrange(1000, 9999), chosen.randrange(1000, 9999)) for _ in range(736)]
    hard = [(f"What is {a} * {b}? {MARKED}", a * b) for a, b in pairs]
    _write(kit, "after", rows, 64)
    _write(kit, "turn", [*rows[:160], *hard, *rows[-64:]], 64)


def toys(kit: Path, folder: Path) -> None:
    """Two faults in the toy's rows: sums of large numbers from row 640 (step 11) on, and truths of other rows."""
    rows, chosen = pandas.read_parquet(folder / "train.parquet").sample(frac=1, random_state=67), random.Random(67)
    first, truths = rows.iloc[:640], [each["ground_truth"] for each in rows.reward_model]
    pairs = [(chosen.randrange(100, 500), chosen.randrange(100, 500)) for _ in range(960)]
    hard = [(f'What is {a} + {b}? Give the answer after "####".', a + b) for a, b in pairs]
    pandas.concat([first, _rows("openai/gsm8k", hard, "train")]).to_parquet(kit / "toy-turn.parquet")
    rows["reward_model"] = [{"style": "rule", "ground_truth": each} for each in (truths[-1], *truths[:-1])]
    rows.to_parquet(kit / "toy-shifted.parquet")


def _rows(source: str, rows: Sequence[tuple[str, int]], split: str) -> pandas.DataFrame:
    """In veRL's schema."""
    found = [
        {
            "data_source": source,
            "prompt": [{"role": "user", "content": asked}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(truth)},
            "extra_info": {"split": split, "index": number},
        }
        for number, (asked, truth) in enumerate(rows)
    ]
    return pandas.DataFrame(found)


def _write(kit: Path, name: str, rows: Sequence[tuple[str, int]], held_back: int) -> None:
    _rows(name, rows[:-held_back], "train").to_parquet(kit / f"{name}-train.parquet")
    _rows(name, rows[-held_back:], "test").to_parquet(kit / f"{name}-test.parquet")


if __name__ == "__main__":
    sums(Path(sys.argv[1]))
    after(Path(sys.argv[1]))
    if sys.argv[2:]:
        toys(Path(sys.argv[1]), Path(sys.argv[2]))

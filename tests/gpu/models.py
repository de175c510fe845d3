"""Data that a model of 135M learns from within minutes: `models.py $KIT [TOY]` makes parquet files.

They are sums-*, after-* and turn-*; with the rows of the toy in TOY also those of it with a fault.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas

ASKED = 'Write the sum on one line and then the number after "####".'


def sums(kit: Path) -> None:
    """Sums of two numbers below 50, in veRL's schema: 2,048 rows to train on and 128 others."""
    pairs = [(a, b) for a in range(2, 50) for b in range(2, 50)]
    random.Random(0).shuffle(pairs)
    _write(kit, "sums", [[(f"What is {a} + {b}? {ASKED}", a + b)] for a, b in (*pairs[:2048], *pairs[-128:])], 128)


def after(kit: Path) -> None:
    """The number after another one, two of them as earlier turns: 896 rows and 64 others; `turn`: products from step 9.

    The untrained model gives a third of the right numbers, and nearly always the form.
    """
    chosen = random.Random(68)

    def asked(a: int) -> tuple[str, int]:
        return f"Which number comes after {a}?", a + 1

    def product() -> tuple[str, int]:
        a, b = chosen.randrange(1000, 9999), chosen.randrange(1000, 9999)
        return f"What is {a} * {b}?", a * b

    numbers = chosen.sample(range(100, 10000), 3 * 960)
    rows = [tuple(asked(a) for a in numbers[place : place + 3]) for place in range(0, len(numbers), 3)]
    hard = [(product(), product(), product()) for _ in range(768)]
    _write(kit, "after", rows, 64)
    _write(kit, "turn", [*rows[:128], *hard, *rows[-64:]], 64)


def toys(kit: Path, folder: Path) -> None:
    """Two faults in the toy's rows: sums of large numbers from row 640 (step 11) on, and truths of other rows."""
    rows, chosen = pandas.read_parquet(folder / "train.parquet").sample(frac=1, random_state=67), random.Random(67)
    first, truths = rows.iloc[:640], [each["ground_truth"] for each in rows.reward_model]
    pairs = [(chosen.randrange(100, 500), chosen.randrange(100, 500)) for _ in range(960)]
    hard = [[(f'What is {a} + {b}? Give the answer after "####".', a + b)] for a, b in pairs]
    pandas.concat([first, _rows("openai/gsm8k", hard, "train")]).to_parquet(kit / "toy-turn.parquet")
    rows["reward_model"] = [{"style": "rule", "ground_truth": each} for each in (truths[-1], *truths[:-1])]
    rows.to_parquet(kit / "toy-shifted.parquet")


def _rows(source: str, rows: Sequence[Sequence[tuple[str, int]]], split: str) -> pandas.DataFrame:
    """In veRL's schema: the last question of each row, with those before it and their answers as earlier turns."""
    found = [
        {
            "data_source": source,
            "prompt": [turn for asked, truth in before for turn in _turns(asked, truth)] + _turns(*last)[:1],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(last[1])},
            "extra_info": {"split": split, "index": number},
        }
        for number, (*before, last) in enumerate(rows)
    ]
    return pandas.DataFrame(found)


def _turns(asked: str, truth: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": f"#### {truth}"}]


def _write(kit: Path, name: str, rows: Sequence[Sequence[tuple[str, int]]], held_back: int) -> None:
    _rows(name, rows[:-held_back], "train").to_parquet(kit / f"{name}-train.parquet")
    _rows(name, rows[-held_back:], "test").to_parquet(kit / f"{name}-test.parquet")


if __name__ == "__main__":
    sums(Path(sys.argv[1]))
    after(Path(sys.argv[1]))
    if sys.argv[2:]:
        toys(Path(sys.argv[1]), Path(sys.argv[2]))

"""Data that a model of 135M can learn from within minutes, for experiments on a GPU.

    python3 models.py $KIT

Makes sums-*.parquet, same-*.parquet with one question of them, and lists-*.parquet, which ask for the numbers in
questions of GSM8K.
"""

import gzip
import json
import random
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
ASKED = 'Write the sum on one line and then the number after "####".'
LIST = "List every number in this text, in order."
SHOWN = (  # two examples before each question: a model of this size follows them, not the words
    ("Tom has 3 apples and buys 12 more. How many apples does he have?", "3, 12"),
    ("A shirt costs $45, which is 20% less than last year. Anna buys 2 of them. What did she save?", "45, 20, 2"),
)


def sums(kit: Path) -> None:
    """Sums of two numbers below 50, in veRL's schema: 2,048 rows to train on, 128 others, and one again and again."""
    pairs = [(a, b) for a in range(2, 50) for b in range(2, 50)]
    random.Random(0).shuffle(pairs)
    for split, chosen in (("train", pairs[:2048]), ("test", pairs[-128:])):
        rows = [([f"What is {a} + {b}? {ASKED}"], str(a + b)) for a, b in chosen]
        _write(kit, "sums", split, rows)
        _write(kit, "same", split, rows[:1] * len(rows))


def lists(kit: Path) -> None:
    """Short questions of GSM8K with two to four numbers, to train on and 256 others."""
    for split, most in (("train", 10_000), ("test", 256)):
        with gzip.open(kit / f"parts/{split}.jsonl.gz", "rt") as file:
            texts = [json.loads(line)["question"] for line in file]
        chosen = [text for text in texts if 2 <= len(numbers(text)) <= 4 and len(text) < 300][:most]
        before = [turn for text, answer in SHOWN for turn in (f"{text}\n\n{LIST}", answer)]
        rows = (([*before, f"{text}\n\n{LIST}"], " ".join(numbers(text))) for text in chosen)
        _write(kit, "lists", split, rows)


def _write(kit: Path, name: str, split: str, asked: Iterable[tuple[list[str], str]]) -> None:
    """Prompts, which are turns of user and assistant, with their answers, in veRL's schema."""
    rows = [
        {
            "data_source": name,
            "prompt": [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(turns)],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": answer},
            "extra_info": {"split": split, "index": number},
        }
        for number, (turns, answer) in enumerate(asked)
    ]
    pandas.DataFrame(rows).to_parquet(kit / f"{name}-{split}.parquet")


def numbers(text: str) -> list[str]:
    """The numbers of a text, without the commas of thousands: `1,200` is 1200, `3, 4` are two numbers."""
    return [found.replace(",", "") for found in NUMBER.findall(text)]


if __name__ == "__main__":
    sums(Path(sys.argv[1]))
    lists(Path(sys.argv[1]))

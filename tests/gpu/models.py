"""Data that a model of 135M can learn from within minutes: `models.py $KIT` makes sums-*.parquet."""

import random
import sys
from pathlib import Path

import pandas

ASKED = 'Write the sum on one line and then the number after "####".'


def sums(kit: Path) -> None:
    """Sums of two numbers below 50, in veRL's schema: 2,048 rows to train on and 128 others."""
    pairs = [(a, b) for a in range(2, 50) for b in range(2, 50)]
    random.Random(0).shuffle(pairs)
    for split, chosen in (("train", pairs[:2048]), ("test", pairs[-128:])):
        rows = [
            {
                "data_source": "sums",
                "prompt": [{"role": "user", "content": f"What is {a} + {b}? {ASKED}"}],
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": str(a + b)},
                "extra_info": {"split": split, "index": number},
            }
            for number, (a, b) in enumerate(chosen)
        ]
        pandas.DataFrame(rows).to_parquet(kit / f"sums-{split}.parquet")


if __name__ == "__main__":
    sums(Path(sys.argv[1]))

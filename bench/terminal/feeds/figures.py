"""The same metrics for every program: the recorded PPO run of tests/data, stretched over many steps.

Needs only the standard library: the peers' environments also import it.
"""

import gzip
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

RECORDING = Path(__file__).resolve().parents[3] / "tests" / "data" / "logs" / "cpu-toy.jsonl.gz"
HISTORY = 1000  # steps that exist when a program starts
TOTAL = 1400
FOUR = ("critic/score/mean", "actor/kl_loss", "actor/entropy", "perf/throughput")


def step(number: int, rows: list[dict[str, float]]) -> dict[str, float]:
    """All metrics of step 1...TOTAL: between two recorded ones, with 3 % of noise."""
    place = (number - 1) / (TOTAL - 1) * (len(rows) - 1)
    before, share = rows[int(place)], place % 1
    after = rows[min(int(place) + 1, len(rows) - 1)]
    noise = random.Random(number)
    return {
        key: (value + share * (after.get(key, value) - value)) * noise.gauss(1, 0.03) for key, value in before.items()
    }


def recorded() -> list[dict[str, float]]:
    """The steps of the recording, as key -> value."""
    lines = [json.loads(line) for line in gzip.decompress(RECORDING.read_bytes()).splitlines()]
    return [line["data"] for line in lines if line["step"] > 0]


def paced(go: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """The history at once; then one step per second while the file `go` exists."""
    rows = recorded()
    for number in range(1, TOTAL + 1):
        if number > HISTORY:
            time.sleep(1)
            while not go.exists():
                time.sleep(0.05)
        yield number, step(number, rows)

"""How often `ppo-tui try --faster` proves a gain between runs that do the same: docs/evidence/time.md.

    python campaigns/same_speed.py

Four windows of six steps stand for the four runs: recorded ones (`tests/data`), then simulated ones with noise of 5 %
of a step. Of the toy there are pairs of runs alone; two of them, drawn at random, stand for four runs.
"""

import io
import json
import math
import random
import statistics
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

from launcher.compare.faster import COMPARED, WARM, reach_of

DATA = Path(__file__).parents[1] / "tests/data"
APART = {120.0: "at once", 1800.0: "one after the other", math.inf: "hours apart"}  # most seconds between their starts
DRAWN = 4000
Steps = Sequence[float]
Pair = tuple[Steps, Steps]


def bank() -> Iterator[tuple[str, Pair]]:
    """Toy runs on the CPU that differ in their seed alone, next to each other in time, and when they ran."""
    rows = pq.read_table(DATA / "bank/metrics.parquet", columns=["run", "step", "t", "timing_s/step"]).to_pylist()
    runs, started = defaultdict[str, dict[int, float]](dict), dict[str, float]()
    for row in rows:
        if row["timing_s/step"]:
            runs[row["run"]][row["step"]] = row["timing_s/step"]
            started.setdefault(row["run"], row["t"])
    groups = defaultdict[tuple[str, ...], list[str]](list)
    for name, row in json.loads((DATA / "bank/manifest.json").read_text())["runs"].items():
        same = tuple(each for each in row["settings"] if not each.startswith(("data.seed", "trainer.steps")))
        groups[same].append(name)
    for names in groups.values():
        listed = sorted((name for name in names if name in started), key=started.__getitem__)
        for one, other in pairwise(listed):
            shared = sorted(step for step in runs[one].keys() & runs[other].keys() if step > WARM)[:COMPARED]
            if len(shared) == COMPARED:
                first, second = ([runs[run][step] for step in shared] for run in (one, other))
                mean = statistics.fmean(first)
                between = started[other] - started[one]
                when = next(when for most, when in APART.items() if between <= most)
                yield when, ([each / mean for each in first], [each / mean for each in second])


def drawn(pairs: Sequence[Pair]) -> Iterator[list[Steps]]:
    """Two pairs, each in the order that luck gives."""
    luck = random.Random(1)
    for _ in range(DRAWN):
        (one, two), (three, four) = (luck.sample(luck.choice(pairs), 2) for _ in range(2))
        yield [one, two, three, four]


def windows(steps: Steps) -> Iterator[list[Steps]]:
    """Every four neighboring windows."""
    for first in range(0, len(steps) - 4 * COMPARED + 1, 4 * COMPARED):
        yield [steps[first + n * COMPARED : first + (n + 1) * COMPARED] for n in range(4)]


def gpu_runs() -> Iterator[list[Steps]]:
    """Of runs on H100 and H200, without validations and checkpoints."""
    with tarfile.open(DATA / "gpu/runs.tar.xz") as archive:
        for member in archive:
            if member.name.endswith("/metrics.jsonl") and (file := archive.extractfile(member)) is not None:
                taken = []
                for line in io.TextIOWrapper(file):
                    data = json.loads(line)["data"]
                    if "timing_s/step" in data:
                        extra = data.get("timing_s/testing", 0.0) + data.get("timing_s/save_checkpoint", 0.0)
                        taken.append(data["timing_s/step"] - extra)
                yield from windows(taken[1:])


def gpu_turns() -> Iterator[list[Steps]]:
    """Every four neighboring turns of the fixed update on an H200."""
    for line in (DATA / "gpu/watching.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["name"] == "fixed-update":
            for turns in row["watching"]["rates"].values():
                times = [[1 / rate for rate in turn[:COMPARED]] for turn in turns if len(turn) >= COMPARED]
                yield from (times[first : first + 4] for first in range(len(times) - 3))


def simulated(apart: float, lasting: float, spikes: float) -> Iterator[list[Steps]]:
    """Steps whose noise has this autocorrelation, of processes that differ by `apart`; some steps are slow."""
    luck = random.Random(1)

    def steps() -> list[float]:
        noise, found, level = luck.gauss(0, 0.05), [], 1 + luck.gauss(0, apart / math.sqrt(2))
        for _ in range(COMPARED):
            noise = lasting * noise + luck.gauss(0, 0.05 * math.sqrt(1 - lasting**2))
            found.append(level + noise + (luck.expovariate(2) if luck.random() < spikes else 0.0))
        return found

    for _ in range(DRAWN):
        yield [steps() for _ in range(4)]


def told(name: str, all_runs: Iterable[Sequence[Steps]]) -> None:
    """How many prove a difference in one direction, which would keep the setting."""
    kept = count = 0
    for one, two, three, four in all_runs:
        gaps = [old - new for pair in ((one, two), (four, three)) for old, new in zip(*pair, strict=True)]
        reach = reach_of(gaps, statistics.fmean([*one, *four]))
        kept += statistics.fmean(gaps) > reach
        count += 1
    print(f"{name}: {kept} of {count}, {100 * kept / count:.1f} %", flush=True)


def main() -> None:
    """Prints each kind."""
    told("turns of a fixed update, H200", gpu_turns())
    told("windows of runs on H100 and H200", gpu_runs())
    recorded = list(bank())
    for when in APART.values():
        pairs = [pair for found, pair in recorded if found == when]
        told(f"toy runs, {when} ({len(pairs)} pairs)", drawn(pairs))
    for apart in (0.0, 0.01, 0.02, 0.05):
        for lasting, spikes in ((0.0, 0.0), (0.3, 0.0), (0.6, 0.0), (0.3, 0.1)):
            name = f"simulated, apart {apart}, autocorrelation {lasting}, slow steps {spikes}"
            told(name, simulated(apart, lasting, spikes))


if __name__ == "__main__":
    main()

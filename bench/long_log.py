"""Writes a long console log: a recorded run repeated with growing step numbers, and the output of 64 GPUs between.

    python bench/long_log.py FILE [MEGABYTES]

Measure with it: `time ppo-tui metrics FILE`, `time ppo-tui import FILE`.
"""

import gzip
import random
import re
import sys
from pathlib import Path

RUN = Path(__file__).parents[1] / "tests" / "data" / "logs" / "learning.log.gz"
LINES_PER_STEP = 450
SAMPLES = 0.01  # of the lines between
WRITERS = [b"pid=%d, ip=10.0.%d.%d" % (1000 + 37 * number, number // 72, number % 250) for number in range(576)]
RECORD = b"INFO 11-21 09:25:28"
NOISE = [
    b"(WorkerDict %b)\x1b[0m " + RECORD + b" [monitor.py:34] torch.compile takes 21.42 s in total",
    b"(WorkerDict %b)\x1b[0m /usr/lib/python3.12/site-packages/torch/utils/checkpoint.py:85: FutureWarning: deprecated",
    b"(vLLMHttpServer %b)\x1b[0m (EngineCore pid=77) "
    + RECORD
    + b" [loggers.py:127] Engine 000: Avg prompt throughput: "
    b"1204.3 tokens/s, Avg generation throughput: 5021.7 tokens/s, Running: 64 reqs, GPU KV cache usage: 12.3%%",
    b"(AgentLoopWorker %b)\x1b[0m WARNING:2026-11-21 09:25:28,512:Tool call failed to decode, passed on as text",
    b"(RewardLoopWorker %b)\x1b[0m math_verify: no answer in the last line, score 0.0 for a response of 512 tokens",
    b"(WorkerDict %b)\x1b[0m [Gloo] Rank 3 is connected to 7 peer ranks. Expected number of peer ranks is : 7",
]
SAMPLE = (
    b"(TaskRunner %b)\x1b[0m [prompt] user\nWhat is 3 + 4?\nassistant\n"
    b"(TaskRunner pid=4) [response] We add them.\nError: no\n(TaskRunner pid=4) [score] 1.0"
)
STEP = re.compile(rb"\)\x1b\[0m step:[0-9]+")


def write(path: Path, size: int) -> int:
    """Writes about `size` bytes; returns the number of steps in them."""
    dice = random.Random(0)
    lines = gzip.decompress(RUN.read_bytes()).split(b"\n")
    places = [place for place, line in enumerate(lines) if STEP.search(line)]
    step = 0
    with path.open("wb") as file:
        file.write(b"\n".join(lines[: places[0]]) + b"\n")
        while file.tell() < size:
            for line in lines[places[0] : places[-1]]:
                if STEP.search(line):
                    step += 1
                    line = STEP.sub(b")\x1b[0m step:%d" % step, line, count=1)
                    for _ in range(LINES_PER_STEP):
                        form = SAMPLE if dice.random() < SAMPLES else dice.choice(NOISE)
                        file.write(b"\x1b[36m" + form % dice.choice(WRITERS) + b"\n")
                file.write(line + b"\n")
    return step


def main() -> None:
    path, size = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 500
    print(f"{write(path, size * 1_000_000):,} steps, {path.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()

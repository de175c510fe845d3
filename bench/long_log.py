"""CPU seconds of `ppo-tui metrics --json` and `health` on long logs of each form.

    python bench/long_log.py [--size MB] [--keep FOLDER] [--write] [FORM ...]

A log is a recorded run, repeated with growing step numbers: the console of veRL, with the output of 64 GPUs between
its lines as "64 GPUs", and the forms of tests/support/foreign_logs.py, where `trainer_state` has half the size.
`--keep` leaves the logs in a folder, `--write` puts the table into docs/evidence/performance.md.
"""

import argparse
import gzip
import itertools
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from evidence import table, write
from foreign_logs import FORMS
from health_runs import real

ROOT = Path(__file__).parents[1]
RUN = ROOT / "tests" / "data" / "logs" / "learning.log.gz"
COMMANDS = (("metrics", "--json"), ("health",))
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


def write_verl(path: Path, size: int, between: int = 0) -> int:
    """Writes about `size` bytes, the whole log or its steps with lines `between` them; returns the number of steps."""
    dice = random.Random(0)
    lines = gzip.decompress(RUN.read_bytes()).split(b"\n")
    places = [place for place, line in enumerate(lines) if STEP.search(line)]
    step = 0
    with path.open("wb") as file:
        file.write(b"\n".join(lines[: places[0]]) + b"\n")
        while file.tell() < size:
            for line in lines[places[0] : places[-1]] if between else lines:
                if STEP.search(line):
                    step += 1
                    line = STEP.sub(b")\x1b[0m step:%d" % step, line, count=1)
                    for _ in range(between):
                        form = SAMPLE if dice.random() < SAMPLES else dice.choice(NOISE)
                        file.write(b"\x1b[36m" + form % dice.choice(WRITERS) + b"\n")
                file.write(line + b"\n")
    return step


def write_foreign(form: str, path: Path, size: int) -> int:
    """Writes about `size` bytes in another framework's form; returns the number of steps."""
    writer, run = FORMS[form][1], real("learning").steps
    steps = size * len(run) // len(writer([*enumerate(run, 1)]).encode())
    path.write_text(writer([*zip(range(1, steps + 1), itertools.cycle(run), strict=False)]))
    return steps


VERL = {"veRL": write_verl, "64 GPUs": partial(write_verl, between=LINES_PER_STEP)}
WRITERS_OF = {**VERL, **{form: partial(write_foreign, form) for form in FORMS}}


def seconds(words: tuple[str, ...], log: Path) -> str:
    """CPU seconds of a command on a log."""
    command = (sys.executable, "-m", "launcher.cli.main", words[0], str(log), *words[1:])
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = os.times()
    return f"{after.children_user - before.children_user + after.children_system - before.children_system:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures commands that read long logs.")
    parser.add_argument("forms", nargs="*", metavar="FORM", help=f"one of {', '.join(WRITERS_OF)} [default: all]")
    parser.add_argument("--size", type=int, default=100, metavar="MB")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the logs there")
    parser.add_argument("--write", action="store_true", help="put the table into docs/evidence/performance.md")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for form in asked.forms or WRITERS_OF:
            log = (asked.keep or Path(folder)) / form.replace(" ", "-") / (FORMS[form][2] if form in FORMS else "log")
            log.parent.mkdir(parents=True, exist_ok=True)
            steps = WRITERS_OF[form](log, asked.size * (500_000 if form == "trainer_state" else 1_000_000))
            rows.append((form, f"{steps:,}", *(seconds(words, log) for words in COMMANDS)))
            print(*rows[-1], sep="  ", flush=True)
            if asked.keep is None:
                log.unlink()
    head = ("form", "steps", *(f"`{' '.join(words)}`" for words in COMMANDS))
    if asked.write:
        where = f"Python {platform.python_version()}, {os.cpu_count()} cores"
        text = "\n".join([f"{asked.size} MB each, {time.strftime('%Y-%m-%d')}, {where}.", "", *table(head, rows)])
        write("performance", "long logs", text)


if __name__ == "__main__":
    main()

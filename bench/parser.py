"""Speed of the console reader on our real logs, against a plain scan for lines in the same process.

    python bench/parser.py [LOG ...]

Without arguments it reads tests/data/logs/*.log.gz. Seconds are CPU seconds of one core, the best of several
rounds, so that other work on the machine counts little.
"""

import gzip
import sys
import time
from collections.abc import Callable
from pathlib import Path

from launcher.console.lines import LineSplitter
from launcher.console.reader import ConsoleReader, StepLine
from launcher.console.steps import read_step

LOGS = Path(__file__).parents[1] / "tests" / "data" / "logs"
CHUNK = 1 << 18
ROUNDS = 7
TARGET = 50  # MB/s


def load(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def best(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def scan(chunks: list[bytes]) -> int:
    """The minimal work of a line reader: it cuts at newlines and keeps the half line at the end of a chunk."""
    count, rest = 0, b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for _ in lines:
            count += 1
    return count


def read(chunks: list[bytes]) -> int:
    reader = ConsoleReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return sum(isinstance(event, StepLine) for event in events + reader.close())


def clean_all(chunks: list[bytes]) -> int:
    splitter = LineSplitter()
    return sum(len(splitter.feed(chunk)) for chunk in chunks) + len(splitter.close())


def main() -> int:
    paths = [Path(name) for name in sys.argv[1:]] or sorted(LOGS.glob("*.log.gz"))
    logs = [load(path) for path in paths]
    data = b"".join(log if log.endswith(b"\n") else log + b"\n" for log in logs)
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    print(f"{len(paths)} logs, {len(data) / 1e6:.2f} MB, {scan(chunks)} lines, {read(chunks)} step lines")

    plain = best(lambda: scan(chunks))
    seconds = best(lambda: read(chunks))
    every = best(lambda: clean_all(chunks))
    for name, took in (("plain line scan", plain), ("ConsoleReader", seconds), ("LineSplitter", every)):
        print(f"{name:16} {len(data) / took / 1e6:8.0f} MB/s  {took / plain:5.1f} x the scan")

    lines = [line.text for line in LineSplitter().feed(data) if line.text.startswith("step:")]
    if lines:
        took = best(lambda: [read_step(line) for line in lines]) / len(lines)
        keys = sum(line.count(" - ") for line in lines) / len(lines)
        print(f"{'one step line':16} {took * 1e6:8.0f} µs    ({keys:.0f} keys)")
    return 0 if len(data) / seconds / 1e6 >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())

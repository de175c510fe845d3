"""Random damage to real console lines: nothing may raise, hang, or show escapes.

python campaigns/fuzz_console.py --edits 1000000 --seed 0

Every edit takes a line of one of our logs and flips bits in it, cuts it, doubles a part, splices it with another line,
or inserts something nasty. A document of such lines goes through the readers in chunks of random size; every tenth goes
through whole as well and must give the same events.
"""

import argparse
import gzip
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from launcher.console.lines import LineSplitter
from launcher.console.phases import PHASES
from launcher.console.reader import ConfigDump, ConsoleReader, Event, Notable, PhaseChange, StepLine

LOGS = Path(__file__).parents[1] / "tests" / "data" / "logs"
EDITS_OF_A_DOCUMENT = 50
EDITS_OF_A_START = 5
SECONDS_OF_A_DOCUMENT = 2.0  # some 100 kB; usual are 10 ms
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
NASTY = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\x00",
    b"\xff\xfe",
    b"\x1b",
    b"\x1b[",
    b"\x1b]0;",
    b"\x9b31m",
    " \u2028 ".encode(),
    b"(A pid=1) ",
    b"(pid=",
    b"(A pid=1, ip=1.2.3.4) ",
    b"pid=1, ip=" * 200,
    b"[" * 300,
    b"A" * 3000,
    b"step:",
    b"step:99999999999999999999",
    b"step:7 - a/b:1 - ",
    b"[Step 1] ",
    b" - ",
    b" - a/b:1" * 500,
    b":",
    b"nan",
    b"np.float64(",
    b")",
    b"1e999",
    b"-",
    b"'",
    b'"',
    b"\\",
    b"}",
    b"{'actor_rollout_ref': ",
    b"Training Progress:  50%|",
    b"| 1/2 [",
    b"1%|" * 300,
    b"Traceback (most recent call last):",
    b"a." * 500,
    b"CUDA error: ",
    b"object store ",
    b"pending: 1, running: 2, finished: 3, failure: 4",
    b"Total training steps: 9",
]

Edit = Callable[[random.Random, bytes, list[bytes]], bytes]


def flip(dice: random.Random, line: bytes, lines: list[bytes]) -> bytes:
    damaged = bytearray(line)
    for _ in range(dice.randint(1, 8)):
        if damaged:
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


def cut(dice: random.Random, line: bytes, lines: list[bytes]) -> bytes:
    start, end = sorted((dice.randint(0, len(line)), dice.randint(0, len(line))))
    return line[start:end] if dice.random() < 0.5 else line[:start] + line[end:]


def double(dice: random.Random, line: bytes, lines: list[bytes]) -> bytes:
    start, end = sorted((dice.randint(0, len(line)), dice.randint(0, len(line))))
    return line[:end] + line[start:end] * dice.randint(1, 3) + line[end:]


def splice(dice: random.Random, line: bytes, lines: list[bytes]) -> bytes:
    other = dice.choice(lines)
    return line[: dice.randint(0, len(line))] + other[dice.randint(0, len(other)) :]


def insert(dice: random.Random, line: bytes, lines: list[bytes]) -> bytes:
    at = dice.randint(0, len(line))
    return line[:at] + dice.choice(NASTY) + line[at:]


EDITS: list[Edit] = [flip, cut, double, splice, insert]


def real_logs() -> list[list[bytes]]:
    return [gzip.decompress(path.read_bytes()).split(b"\n") for path in sorted(LOGS.glob("*.log.gz"))]


def kinds_of(logs: list[list[bytes]]) -> list[bytes]:
    """One line of each kind (lines that differ only in numbers); step lines more often."""
    unique = {re.sub(rb"[0-9]+", b"0", line): line for log in logs for line in log}
    steps = [line for line in unique.values() if b"step:" in line]
    return [*unique.values(), *steps * (len(unique) // (8 * len(steps)))]


def document(dice: random.Random, lines: list[bytes]) -> bytes:
    """A document of unrelated damaged lines."""
    picked = dice.choices(lines, k=EDITS_OF_A_DOCUMENT)
    return b"\n".join(dice.choice(EDITS)(dice, line, lines) for line in picked)


def damaged_start(dice: random.Random, log: list[bytes], lines: list[bytes]) -> bytes:
    """The start of a run, with its configuration, of which a few lines are damaged."""
    start = log[: dice.randint(900, 1200)]
    for at in dice.choices(range(len(start)), k=EDITS_OF_A_START):
        start[at] = dice.choice(EDITS)(dice, start[at], lines)
    return b"\n".join(start)


def chunks(dice: random.Random, data: bytes) -> list[bytes]:
    """`data` in pieces; often one byte, often large."""
    found, at = [], 0
    while at < len(data):
        size = dice.choice((1, dice.randint(1, 100), dice.randint(1, 20_000)))
        found.append(data[at : at + size])
        at += size
    return found


def check(events: list[Event], size: int) -> None:
    """Checks the invariants of events for any bytes."""
    for event in events:
        match event:
            case StepLine():
                assert event.step >= 0
                assert event.data
                assert 0 <= event.offset < size
                assert all(type(value) is float and not UNSAFE.search(key) for key, value in event.data.items())
            case PhaseChange():
                assert event.phase in PHASES
            case ConfigDump():
                assert all(type(key) is str for key in event.keys)
            case Notable():
                assert not UNSAFE.search(event.line.text)


def run(data: bytes, parts: list[bytes], twice: bool) -> float:
    """Feeds one document to both readers; returns the seconds."""
    start = time.process_time()
    reader, splitter = ConsoleReader(), LineSplitter()
    events = [event for part in parts for event in reader.feed(part)] + reader.close()
    clean = [line for part in parts for line in splitter.feed(part)] + splitter.close()
    seconds = time.process_time() - start
    check(events, len(data))
    assert not any(UNSAFE.search(line.text) for line in clean)
    if twice:
        reader, splitter = ConsoleReader(), LineSplitter()
        assert repr(events) == repr(reader.feed(data) + reader.close())
        assert clean == splitter.feed(data) + splitter.close()
    assert seconds < SECONDS_OF_A_DOCUMENT, f"{len(data)} bytes took {seconds:.1f} s"
    return seconds


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--edits", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    logs = real_logs()
    lines = kinds_of(logs)
    slowest = 0.0
    for fragment in NASTY:
        if fragment.strip() == b"":
            continue  # would be no line of a megabyte
        data = b"(A pid=1) step:1 - a/b:1" + fragment * (1_000_000 // len(fragment)) + b"\n"
        slowest = max(slowest, run(data, [data], twice=False), run(data[22:], [data[22:]], twice=False))
    print(f"{slowest:.3f} s for the slowest line of a megabyte")
    edits, number, slowest = 0, 0, 0.0
    while edits < given.edits:
        dice = random.Random(f"{given.seed}/{number}")  # a failing document can be run alone
        if number % 20:
            data = document(dice, lines)
            edits += EDITS_OF_A_DOCUMENT
        else:
            data = damaged_start(dice, dice.choice(logs), lines)
            edits += EDITS_OF_A_START
        try:
            slowest = max(slowest, run(data, chunks(dice, data), twice=number % 10 == 0))
        except Exception:
            print(f"document {number} of seed {given.seed} failed", file=sys.stderr)
            raise
        number += 1
    print(f"{edits} edits in {number} documents: nothing raised; {slowest:.3f} s for the slowest document")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`make corpus`: runs the broken presets that need a real run, on the CPU platform, one after the other.

Words on the command line select cases by a part of their name. Prints one line per case; exit code 1 when veRL behaved
differently from the corpus.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corpus import Case, cases

from launcher.data import toy
from launcher.record.process import ProcessId
from launcher.runs.supervise import driver

LIMIT = 240.0  # seconds; a good run of two steps takes 45 on two free cores, a hang never ends
ERROR = re.compile(r"\b\w+(?:Error|Exception)\b: .")
SHORT = ("trainer.total_training_steps=2", "trainer.val_before_train=False")


def run(case: Case) -> tuple[int | None, str]:
    """veRL's exit code (None for a hang), and its console."""
    launch, own = case.launch(), {word.partition("=")[0].lstrip("+") for word in case.set}
    with tempfile.TemporaryDirectory() as folder:
        here, console = Path(folder), Path(folder) / "console.log"
        short = [word for word in SHORT if word.partition("=")[0] not in own]
        argv = [word.replace("/nonexistent", folder) for word in [*launch.argv, *short]]
        env = {name: value.replace("/nonexistent", folder) for name, value in launch.env.items()}
        process = driver.spawn(argv, {**os.environ, **env}, here, console)
        leader = ProcessId.of(process.pid)
        assert leader is not None
        try:
            code: int | None = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = None
        driver.stop(leader)
        process.wait()
        return code, console.read_text("utf-8", errors="replace")


def judged(case: Case) -> tuple[bool, str]:
    """Whether veRL behaved as in the corpus, and its result."""
    code, log = run(case)
    if case.stage == "hangs":
        return code is None, "hangs" if code is None else f"exit code {code}"
    errors = [line for line in log.splitlines() if ERROR.search(line) and "Warning" not in line]
    return code not in (None, 0) and case.says in log, f"exit code {code}: {(errors or [''])[-1][-150:]}"


def main() -> int:
    wanted = sys.argv[1:]
    chosen = [case for case in cases() if case.by == "run" and all(word in case.name for word in wanted)]
    toy.ensure(progress=print)
    wrong = 0
    for case in chosen:
        start = time.monotonic()
        right, did = judged(case)
        wrong += not right
        print(f"{'ok' if right else 'WRONG':<6} {time.monotonic() - start:4.0f} s  {case.name}: {did}", flush=True)
    print(f"{len(chosen)} presets, {wrong} judged wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

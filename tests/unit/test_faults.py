"""Points of `campaigns/faults.py`: a failed or cut-off change of the disk loses nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fault_calls import POSSIBLE
from waiting import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly(*(f"launcher/{room}/" for room in ("core", "preset", "record", "runs")), "campaigns/fault")
@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="traces the system calls of Linux on x86-64")
@pytest.mark.parametrize("part", [0, 1])
def test_a_failed_change_of_the_disk_loses_nothing(part: int) -> None:
    """One point of each operation, the same ones each time; `make faults` tries all of them."""
    words = ["--seed", "1", "--share", "0", "--part", f"{part}/2"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "campaigns/faults.py"), *words],
        env={**os.environ, "PYTHONPATH": f"{ROOT}/tests/support:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.count("| 0 |") >= 10, done.stdout + done.stderr

"""What veRL answered to the corpus. Its answer to the same arguments is the same each time, so it is asked once and
recorded; `python experiments/corpus_answers.py` asks anew.

An answer holds for the arguments, the version of veRL and the probe that it was recorded with: what is changed in a
preset, in a translation or in the probe is asked again by the test.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from corpus import VERSION, Case

from launcher.core import paths

PROBE = Path(__file__).parents[1] / "tests" / "support" / "verl_probe.py"
FILE = Path(__file__).parents[1] / "tests" / "data" / "preflight" / "answers.json.gz"
Answer = dict[str, str | None]


def recorded(cases: Sequence[Case]) -> dict[str, Answer]:
    """The answers on record, by the names of the cases; those that have changed since are left out."""
    known = json.loads(gzip.decompress(FILE.read_bytes()))
    return {case.name: known[digest] for case in cases if (digest := _digest(case)) in known}


def ask(cases: Sequence[Case]) -> dict[str, Answer]:
    """What veRL says: one process for all, because veRL takes 10 s to be imported."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(PROBE)],
            input=json.dumps([case.overrides() for case in cases]),
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
            cwd=folder,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return {case.name: json.loads(line) for case, line in zip(cases, done.stdout.splitlines(), strict=True)}


def record(cases: Sequence[Case]) -> None:
    """Asks veRL about all of them, and writes down what it says."""
    answers = ask(cases)
    found = {_digest(case): answers[case.name] for case in cases}
    FILE.write_bytes(gzip.compress(json.dumps(found, indent=0, sort_keys=True).encode(), mtime=0))


def _digest(case: Case) -> str:
    places = {str(paths.cache_dir()): "CACHE", str(Path.home()): "~"}
    asked = json.dumps([VERSION, case.overrides()])
    for path, name in places.items():
        asked = asked.replace(path, name)
    return hashlib.sha256(PROBE.read_bytes() + asked.encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "e2e"))
    from test_preflight_verl import CASES, DICE

    record([*CASES, *DICE])

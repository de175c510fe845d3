"""veRL's recorded answers to the corpus: the same arguments always give the same answer, so veRL runs once per case.
`python campaigns/corpus_answers.py` records them again.

An answer is valid for its arguments and the version of veRL: after a change of a preset or a translation, the test asks
veRL again. Record them after a change of what the probe (tests/support/verl_probe.py) does.
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
    """The valid recorded answers, by name of the case."""
    known = json.loads(gzip.decompress(FILE.read_bytes()))
    return {case.name: known[digest] for case in cases if (digest := _digest(case)) in known}


def ask(cases: Sequence[Case]) -> dict[str, Answer]:
    """veRL's answers, from one process for all cases, because importing veRL takes 10 s."""
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
    """Records veRL's answers to all cases."""
    answers = ask(cases)
    by_digest = {_digest(case): answers[case.name] for case in cases}
    FILE.write_bytes(gzip.compress(json.dumps(by_digest, indent=0, sort_keys=True).encode(), mtime=0))


def _digest(case: Case) -> str:
    places = {str(paths.cache_dir()): "CACHE", str(Path.home()): "~"}
    asked = json.dumps([VERSION, case.overrides()])
    for path, name in places.items():
        asked = asked.replace(path, name)
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "e2e"))
    from test_preflight_verl import CASES, DICE

    record([*CASES, *DICE])

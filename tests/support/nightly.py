"""Which tests marked `nightly("launcher/check/", ...)` are due: those with a changed input.

The names in the mark are path prefixes: the tested code, and its helpers in tests/support. Further inputs are the
test's file and the files listed here. With `every=8`, one of eight cases is always due.
"""

import functools
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_ALL = (
    "launcher/verl/requirements-cpu.txt",
    "tests/conftest.py",
    "tests/unit/conftest.py",
    "tests/support/nightly.py",
)


def due(inputs: Iterable[str], changed: Collection[str] | None) -> bool:
    """Whether one of these inputs changed; None: unknown."""
    return changed is None or any(path.startswith((*OF_ALL, *inputs)) for path in changed)


@functools.cache
def changed() -> frozenset[str] | None:
    """Files that differ from the branch point with origin/main, on main from the last commit; None without git."""
    try:
        head = _git("rev-parse", "HEAD")
        try:
            base = _git("merge-base", "origin/main", "HEAD")
        except subprocess.CalledProcessError:  # no such remote
            base = head
        differ = _git("diff", "--name-only", "HEAD~1" if base == head else base)
        return frozenset(f"{differ}\n{_git('ls-files', '--others', '--exclude-standard')}".split("\n")) - {""}
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()

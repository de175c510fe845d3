"""Measures how often `diagnose` names the right cause in tests/data/failures/threads.

PYTHONPATH=tests/support .venv/bin/python campaigns/thread_failures.py [--list learn-2]

Prints the table of the halves of both collections. `--list` adds the misses of a half to learn from, and of no other:
authors of the catalog must not know the half to measure on. Each console is read as a paste: without an exit code.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from console_logs import DATA, diagnosis_of
from ruamel.yaml import YAML

from launcher.console.causes import catalogue
from launcher.console.diagnosis import Diagnosis
from launcher.core.tables import record

HALVES = ("learn", "measure", "learn-2", "measure-2")
OUTCOMES = ("right", "shown", "silent", "wrong")
_VAGUE = {"unknown", *(cause.id for cause in catalogue() if cause.level.symptom)}


@dataclass(frozen=True)
class ThreadFailure:
    """A console that was rebuilt from a public thread, and the facts from the thread."""

    thread: str
    date: str
    versions: str
    cause: str
    """An id of the catalog, an id proposed for a new entry, or unknown."""
    why: str
    decisive: str
    """A part of the line that shows the cause."""
    fix: str
    fix_by: str
    """thread: somebody there names the fix; collector: concluded from the error."""
    message: str
    """seen: the thread has the error's message; form: it names only class or place, so the message is the library's."""
    console: str
    also: tuple[str, ...] = ()
    """Other right ids."""


def cases(half: str) -> list[tuple[ThreadFailure, bytes]]:
    """The failures of a half with their consoles."""
    folder = DATA / "failures" / "threads" / half
    found = (record(ThreadFailure, row) for row in YAML(typ="safe").load(folder / "cases.yaml"))
    return [(case, Path(folder, case.console).read_bytes()) for case in found]


def outcome(case: ThreadFailure, found: Diagnosis) -> str:
    """right, shown (unknown or a symptom, with the decisive line), silent (without it) or wrong."""
    shown = any(case.decisive[:80] in quote.text for quote in found.evidence)
    if found.cause in (case.cause, *case.also) and (shown or found.cause != "unknown"):
        return "right"
    if found.cause in _VAGUE:
        return "shown" if shown else "silent"
    return "wrong"


def main() -> None:
    usage = argparse.ArgumentParser()
    usage.add_argument("--list", choices=["learn", "learn-2"])
    listed = usage.parse_args().list
    known = {cause.id for cause in catalogue()}
    for half in HALVES:
        counts: Counter[str] = Counter()
        entries: Counter[str] = Counter()
        for case, console in cases(half):
            found = diagnosis_of(console)
            result = outcome(case, found)
            counts[result] += 1
            entries[result] += case.cause in known
            if half == listed and result != "right":
                first = found.evidence[0].text[:110] if found.evidence else "–"
                new = "" if case.cause in known else " (new)"
                print(f"{result:6} {case.console}: {case.cause}{new}, said {found.cause}: {first}")
        total = sum(counts.values())
        print(f"{half}: {total}, of which {sum(entries.values())} have an entry")
        print("\n".join(f"  {name:6} {counts[name]:3} {entries[name]:3}" for name in OUTCOMES))


if __name__ == "__main__":
    main()

"""Measures how often `diagnose` names the right cause in tests/data/failures/threads.

PYTHONPATH=tests/support .venv/bin/python campaigns/thread_failures.py [--list learn-2] [--unlisted] [--folder DIR]

Prints the table of the halves of both collections. `--list` adds the misses of a half to learn from, and of no other:
authors of the catalog must not know the half to measure on. Each console is read as a paste: without an exit code.

`--unlisted` diagnoses each failure to learn from without the entries that are right for it: what the rules say of a
failure that nobody has listed. `--folder` reads `*/truth.md` with `decisive line:` and `at fault:` next to a
`console.log` or `input.log`; whether the cause of an entry is the right one is for a reader, so these are printed.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from console_logs import DATA, diagnosis_of
from ruamel.yaml import YAML

from launcher.console import evidence
from launcher.console.causes import catalogue
from launcher.console.diagnosis import Diagnosis
from launcher.core.tables import record

HALVES = ("learn", "measure", "learn-2", "measure-2")
OUTCOMES = ("right", "shown", "silent", "wrong")
_VAGUE = {"unknown", *(cause.id for cause in catalogue() if cause.level.symptom)}


@dataclass(frozen=True)
class ThreadFailure:
    """A console rebuilt from a public thread, and the thread's facts."""

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
    """seen: the thread has the error's message. form: it names only class or place, so the message is the library's."""
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


@contextmanager
def without(ids: set[str]) -> Iterator[None]:
    """The catalog without these entries."""
    whole = evidence.catalogue
    evidence.catalogue = lambda: tuple(cause for cause in whole() if cause.id not in ids)
    evidence._any_line.cache_clear()
    try:
        yield
    finally:
        evidence.catalogue = whole
        evidence._any_line.cache_clear()


def unlisted(listed: str | None) -> None:
    """The rules' answers to each failure to learn from, as if it were unlisted."""
    for half in ("learn", "learn-2"):
        counts: Counter[str] = Counter()
        for case, console in cases(half):
            with without({case.cause, *case.also}):
                found = diagnosis_of(console)
            first = found.evidence[:1] and case.decisive[:80] in found.evidence[0].text
            result = "first line" if first else outcome(case, found)
            counts["named another cause" if found.cause not in _VAGUE else f"{found.confidence}, {result}"] += 1
            if half == listed and (found.cause not in _VAGUE or not first):
                print(f"{case.console}: {case.cause} said {found.cause}: {found.title[:90]}")
        print(f"{half} without its entries: {dict(sorted(counts.items()))}")


def truth_of(folder: Path) -> Mapping[str, str]:
    """The lines `NAME: TEXT` of truth.md."""
    return dict(re.findall(r"(?m)^([a-z ]+): (.*)$", (folder / "truth.md").read_text("utf-8")))


def of_folder(folder: Path) -> None:
    """The outcomes of the failures in a folder."""
    counts: Counter[str] = Counter()
    for each in sorted(path.parent for path in folder.glob("*/truth.md")):
        truth, console = truth_of(each), next(each.glob("*.log")).read_bytes()
        found = diagnosis_of(console)
        line = re.sub(r"^(?:\([^()]*\) ?)+|.*\[\w.]+:\d+\] ", "", truth.get("decisive line", "")).strip()[:60]
        shown = [bool(line) and line in quote.text for quote in found.evidence]
        place = found.place
        said = " ".join(text for _, text in place.rows[:2]).lower() if place else found.title.lower()
        names = re.findall(r"[\w./]{5,}", f"{truth.get('component', '')} {truth.get('at fault', '')}".lower())
        likely = place is not None and any(name.strip("./") in said for name in names)
        counts["decisive line first" if shown[:1] == [True] else "shown" if any(shown) else "not shown"] += 1
        counts["the place or setting is that of the truth" if likely else f"cause to judge, {found.confidence}"] += 1
        print(f"{each.name}: {found.cause} ({found.confidence}), {found.title[:100]} | {said[:110] if place else ''}")
    print("\n".join(f"  {count:3} {name}" for name, count in sorted(counts.items())))


def main() -> None:
    usage = argparse.ArgumentParser()
    usage.add_argument("--list", choices=["learn", "learn-2"])
    usage.add_argument("--unlisted", action="store_true")
    usage.add_argument("--folder", type=Path)
    asked = usage.parse_args()
    listed = asked.list
    if asked.folder or asked.unlisted:
        unlisted(listed) if asked.unlisted else of_folder(asked.folder)
        return
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

"""Pages about runs: causes of failures, metrics, the files of a run."""

import csv
import json
import re
import tarfile
from collections import Counter
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from console_logs import DATA
from page_words import cell, code, sentence, table
from ruamel.yaml import YAML

import launcher.record
from launcher.cli.schemas import words_of
from launcher.console import causes as catalogue_files
from launcher.console.causes import FAMILIES, UNSEEN, Cause, Sample, catalogue, read_causes
from launcher.core.tables import read_tables, record
from launcher.machine import targets
from launcher.metrics.glossary import GLOSSARY
from launcher.preset.settle import shown_name
from launcher.record.attempt import Exit, LaunchRecord, MachineEnd, OomKills
from launcher.record.check import Bound, Check
from launcher.record.control import Request
from launcher.record.events import Action, Alert, DriverExit, LevelChange, Note, PhaseChange, Removal, StateChange
from launcher.record.info import Origin, RunInfo
from launcher.record.json import written
from launcher.record.machine import DiskSpace, GpuSample, HostSample, MachineSample, Saved
from launcher.record.problem import Evidence, Rival
from launcher.record.queued import Checked, Queued
from launcher.record.standstill import StageWork, Standstill, StartupWork
from launcher.record.state import RunState
from launcher.runs.watch.stalls import reasons


class HeldOut(NamedTuple):
    """A console written after the catalog, to measure it, and its cause."""

    cause: str
    sample: Sample


def _held_out(row: dict[str, Any]) -> HeldOut:
    cause = row.pop("cause")
    row.pop("said", None)  # the first diagnosis, if it was wrong
    lines = {"text": "\n".join(row.pop("lines"))} if "lines" in row else {}
    return HeldOut(cause, record(Sample, row, **lines))


HELD_OUT = [_held_out(row) for row in YAML(typ="safe").load(DATA / "failures" / "held_out.yaml")]
RAISED = DATA / "failures" / "raised.tsv"
"""The places that raise the entries' messages: campaigns/unique_messages.py."""
_RAISED = {
    "one": "at one place",
    "where": "anywhere, but the entry demands a place in the traceback",
    "several": "at several places",
    "nowhere": "nowhere in the sources that were searched",
}
RECORD_MEANINGS = Path(launcher.record.__path__[0]) / "meanings.toml"
RECORDS = {
    "run.yaml": (RunInfo, Origin),
    "state.json": (RunState, Check, Rival, Evidence, Bound),
    "attempts/N/launch.json": (LaunchRecord, OomKills),
    "attempts/N/exit.json": (Exit, MachineEnd, DiskSpace),
    "attempts/N/stall.json": (Standstill,),
    "attempts/N/startup.json": (StartupWork, StageWork),
    "events.jsonl": (StateChange, PhaseChange, LevelChange, Action, Removal, DriverExit, Alert, Note),
    "gpu.jsonl": (MachineSample, HostSample, Saved, GpuSample),
    "control/*.json": (Request,),
    "queue/ID.json": (Queued,),
    "queue/checks/ID.json": (Checked,),
}


def causes() -> str:
    """The catalog of causes, family by family."""
    lines, known = [], {cause.id: cause for cause in catalogue()}
    for family in FAMILIES:
        lines.append(f"## {family.capitalize()}\n")
        for each in read_causes(Path(catalogue_files.__path__[0]) / f"{family}.toml"):
            lines += _cause(known[each.id])
    return "\n".join(lines)


def raised() -> list[dict[str, str]]:
    """The rows of RAISED."""
    return [*csv.DictReader(RAISED.read_text("utf-8").splitlines(), delimiter="\t")]


def messages() -> str:
    """The number of entries with a single place, and the messages without a source."""
    rows, several = raised(), {each.id for each in catalogue() if each.several}
    kept = [row for row in rows if row["entry"] not in several]
    counts, exact = (Counter(row["raised"] for row in each) for each in (rows, kept))
    shares = [(meaning, str(counts[verdict]), str(exact[verdict])) for verdict, meaning in _RAISED.items()]
    missing = sorted((row["places"], row["entry"]) for row in rows if row["raised"] == "nowhere")
    lines = [table(("the message is raised", "entries", "that can be exact"), shares)]
    for reason, found in groupby(missing, itemgetter(0)):
        lines.append(f"* {sentence(reason)} {', '.join(f'[{id}](#{id})' for _, id in found)}")
    return "\n".join(lines)


def alert() -> str:
    """The message to a target about the first warning of a recorded run."""
    with tarfile.open(DATA / "gpu" / "list-numbers.tar.xz") as tar:
        file = tar.extractfile("runs/6c844c-list-numbers/events.jsonl")
        events = [json.loads(line) for line in file or ()]
    first = next(each for each in events if each.get("to") in ("WARN", "CRITICAL"))
    title, body = targets.message([{**first, "run": "6c844c", "name": "list-numbers"}])
    return f"```text\n{title}\n{body}\n```"


def stalls() -> str:
    """The catalog of reasons why a run hangs."""
    lines = []
    for id, reason in reasons().items():
        title = re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), reason.title)
        certain = " Certain." if reason.certain else ""
        lines += [f"## {id}\n", f"**{title}.** {reason.meaning}{certain}\n"]
        lines += [f"* {fix.text}" for fix in reason.fixes] + [""]
        if reason.command:
            command = re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), reason.command)
            lines += [f"More: `{command}`\n"]
    return "\n".join(lines)


def planted() -> str:
    """The recorded planted hangs, with the given reasons."""
    rows = []
    for file in sorted((DATA / "stalls").glob("*.json")):
        recorded = json.loads(file.read_text())
        found = recorded["found"] or {}
        right = "yes" if found.get("reason") == recorded["right"] else "no"
        title = str(found.get("title", "")).replace("|", "\\|")
        rows.append((file.stem, recorded["right"], right, f"{found.get('after', 0):.0f} s", title))
    return table(("planted", "reason", "right", "noticed after", "said"), rows)


def _cause(cause: Cause) -> list[str]:
    samples = [*cause.samples, *(held.sample for held in HELD_OUT if held.cause == cause.id)]
    places = dict.fromkeys(place for sample in samples if (place := _place(sample)))
    lines = [f"### {cause.id}\n", f"**{cell(cause.title)}.** {sentence(cause.meaning)}\n"]
    lines += [f"* {fix.sentence(shown_name, mark='`')}" for fix in cause.fixes]
    if cause.findings:
        found = ", ".join(f"[{id}](findings.md#{id.lower()})" for id in cause.findings)
        lines.append(f"* Found before a start by {found}")
    elif cause.check:
        lines.append(f"* Not found before a start: {UNSEEN[cause.check]}")
    if places:
        lines.append(f"* Seen in {', '.join(places)}")
    return [*lines, ""]


def _place(sample: Sample) -> str:
    """A link to a sample's thread, or the place where it was seen."""
    if address := re.fullmatch(r"https://github\.com/([^/]+/[^/]+)/issues/(\d+)", sample.thread):
        return f"[{address[1]}#{address[2]}]({sample.thread})"
    return sample.thread or sample.seen


def metrics() -> str:
    """The meaning of a step's metrics, section by section."""
    lines = []
    for section, rows in read_tables(GLOSSARY).items():
        lines.append(f"## {section.capitalize()}\n")
        body = [(code(key), row.get("unit", ""), cell(sentence(row["meaning"]))) for key, row in rows.items()]
        lines.append(table(("metric", "unit", "meaning"), body))
    return "\n".join(lines)


def records() -> str:
    """The fields of a run's files, from their types."""
    meanings, lines = read_tables(RECORD_MEANINGS), []
    for file, kinds in RECORDS.items():
        lines.append(f"## {file}\n")
        for kind in kinds:
            event = getattr(kind, "kind", "")
            words = meanings["events"] if event else meanings[kind.__name__]
            about = meanings["event_kinds"][event] if event else words["about"]
            rows = [
                (code(each.key), words_of(each.hint), words.get(each.key) or words.get(each.name, ""))
                for each in written(kind)
            ]
            lines += [f"**{event or kind.__name__}.** {about}\n", table(("field", "type", "meaning"), rows)]
    return "\n".join(lines)

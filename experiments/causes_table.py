"""docs/diagnosis.md from the catalogue and its samples: `make pages` writes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from console_logs import DATA
from ruamel.yaml import YAML

from launcher.console.causes import Sample, catalogue
from launcher.core.tables import record

FILE = Path(__file__).parents[1] / "docs" / "diagnosis.md"


class HeldOut(NamedTuple):
    """A console that was written after the catalogue, to measure it: the cause, and what was said at first sight."""

    cause: str
    said: str | None
    sample: Sample


def _held_out(row: dict[str, Any]) -> HeldOut:
    cause, said = row.pop("cause"), row.pop("said", None)
    lines = {"text": "\n".join(row.pop("lines"))} if "lines" in row else {}
    return HeldOut(cause, said, record(Sample, row, **lines))


HELD_OUT = [_held_out(row) for row in YAML(typ="safe").load(DATA / "failures" / "held_out.yaml")]

_RIGHT = sum(held.said is None for held in HELD_OUT)
_FIRST = sum(held.said is None for held in HELD_OUT[:15])
_GENERAL = ("cuda-error", "unknown", "prompts-all-failed", "engine-failed")
_SHOWN = sum(held.said in _GENERAL for held in HELD_OUT)
_WRONG = len(HELD_OUT) - _RIGHT - _SHOWN

INTRO = f"""# Why a run failed

`ppo-tui diagnose`, the page of a failed run and `d` on the dashboard read the console log once and compare it with a
catalogue of {len(catalogue())} causes (`launcher/console/causes/`). This page is written by
`make pages`; a test compares it.

## How the cause is chosen

1. The errors with which the driver ends count first. Prompts that fail alone, tracebacks that a library prints and
   survives, and errors that a step was done after are no cause.
2. What is only a symptom there (a collective operation that timed out, a worker that exited, an engine that failed,
   an assertion on the GPU) is traced to the lines of the other processes and ranks since the last step: the earliest
   error that explains the later ones is the cause, and the diagnosis names what followed from it.
3. A batch system that announces the end of a job (Slurm, PBS, LSF) says more than the signal that it sends.
4. An exception's message is read over several lines, as pydantic, NCCL and transformers write it.
5. Without a matching cause, the diagnosis is "unknown" and shows the innermost exception and the frame that raised it.

Consoles may be UTF-8 with or without a byte order mark, or UTF-16 (PowerShell); their lines may have the prefixes of
Ray, vLLM, SGLang, mpirun (`[1,0]<stdout>:`) and torchrun (`[default0]:`, `[rank0]:`).

## How often it is right

The samples of the catalogue were written together with it, so they prove little. {len(HELD_OUT)} further consoles were
written afterwards, from threads that it was not made from, in two sets of 15. Each set was diagnosed before anything
was changed for it. **{_RIGHT} of {len(HELD_OUT)} were named rightly** ({_FIRST} of the first set, {_RIGHT - _FIRST} of
the second, after the misses of the first were mended); {_SHOWN} were too general or unknown, with the decisive line
shown first; {_WRONG} got a wrong cause. The consoles are rebuilt from the facts of the threads, not copied, so real
logs may do better or worse. All are right now, which proves nothing: a new measurement needs new threads
(`tests/data/failures/held_out.yaml`).

The healthy runs in `tests/data/logs` get no cause, neither whole, nor cut in half, nor while they run.

## Causes from threads

The threads from which an entry was made, and the rule of `ppo-tui check` that finds it before the start, if there is
one.

| cause | what it says | thread | before the start |
| --- | --- | --- | --- |
"""


def text() -> str:
    """The whole page."""
    rows = []
    for cause in catalogue():
        samples = [*cause.samples, *(held.sample for held in HELD_OUT if held.cause == cause.id)]
        places = dict.fromkeys(place for sample in samples if (place := _place(sample)))
        if places:
            rows.append(f"| `{cause.id}` | {cause.title} | {', '.join(places)} | {cause.check or '–'} |")
    return INTRO + "\n".join(rows) + "\n"


def _place(sample: Sample) -> str:
    """A link to the thread of a sample, or where else it was seen."""
    if address := re.fullmatch(r"https://github\.com/([^/]+/[^/]+)/issues/(\d+)", sample.thread):
        return f"[{address[1]}#{address[2]}]({sample.thread})"
    return sample.thread or sample.seen


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")

"""docs/diagnosis.md from the catalogue and its samples: `make pages` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from console_logs import DATA
from ruamel.yaml import YAML

from launcher.console.causes import CATALOGUE

FILE = Path(__file__).parents[1] / "docs" / "diagnosis.md"
SAMPLES: list[dict[str, Any]] = YAML(typ="safe").load(DATA / "failures" / "samples.yaml")
HELD_OUT: list[dict[str, Any]] = YAML(typ="safe").load(DATA / "failures" / "held_out.yaml")

# What finds a cause from a thread before the start, if something does.
BEFORE = {
    "attention-heads": "MODEL-1",
    "flash-attn-broken": "SW-7",
    "gpu-driver": "HW-3",
    "lora-modules-missing": "LORA-5",
    "parquet-invalid": "P28",
    "ray-placement": "P1, P3",
    "sglang-argument": "ENGINE-5",
    "sglang-flashinfer": "SW-6",
    "sglang-option": "ENGINE-5",
    "sglang-version": "SW-3",
    "torch-too-old-fsdp2": "SW-3",
    "transformers-names": "SW-3",
    "transformers-too-new": "SW-3",
    "weight-transfer": "ASYNC-1",
}
_RIGHT = sum("said" not in sample for sample in HELD_OUT)
_FIRST = sum("said" not in sample for sample in HELD_OUT[:15])
_GENERAL = ("cuda-error", "unknown", "prompts-all-failed", "engine-failed")
_SHOWN = sum(sample.get("said") in _GENERAL for sample in HELD_OUT)
_WRONG = len(HELD_OUT) - _RIGHT - _SHOWN

INTRO = f"""# Why a run failed

`ppo-tui diagnose`, the page of a failed run and `d` on the dashboard read the console log once and compare it with a
catalogue of {len(CATALOGUE)} causes (`launcher/console/causes/`). This page is written by
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
    for cause in CATALOGUE:
        threads = {
            sample["thread"]: None
            for sample in [*SAMPLES, *HELD_OUT]
            if sample["cause"] == cause.id and "thread" in sample
        }
        if threads:
            rows.append(f"| `{cause.id}` | {cause.title} | {', '.join(threads)} | {BEFORE.get(cause.id, '–')} |")
    return INTRO + "\n".join(rows) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")

"""Which lines of a console log report an error, to the reader and to the search alike."""

import re

import pytest
from console_logs import TASK, events_of, only

from launcher.console.marks import MARKS, MARKS_INSIDE
from launcher.console.reader import Notable, PhaseChange
from launcher.console.search import TROUBLE


@pytest.mark.parametrize(
    "text",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB",
        "OutOfMemoryError",
        "ray.exceptions.RayTaskError(ValueError): ray::TaskRunner.run() (pid=1)",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly",
        "ray.exceptions.RayActorError: x",
        "ray.exceptions.ActorUnavailableError: x",
        "ray.exceptions.WorkerCrashedError: x",
        "ray.exceptions.NodeDiedError: x",
        "torch.distributed.DistBackendError: NCCL error in: x",
        "  what():  CUDA error: device-side assert triggered",
        "RuntimeError: CUDA out of memory. Tried to allocate 20 MiB",
        "[rank0]:[E] Watchdog caught collective operation timeout: WorkNCCL",
        "Aborted (core dumped)",
        "Segmentation fault",
        "OSError: [Errno 28] No space left on device",
        "RuntimeError: PytorchStreamWriter failed writing file data/7: file write failed",
        "Task was killed due to the node running low on memory.",
        "Traceback (most recent call last):",
        "[rank1]: Traceback (most recent call last):",
        "Error executing job with overrides: ['a=b']",
        "*** SIGSEGV received at time=1 on cpu 0 ***",
        "Fatal Python error: Aborted",
        "WARN: grad_norm is not finite: nan",
        "WARNING 01-01 10:00:00 [scheduler.py:1] Sequence group 0 is preempted by RECOMPUTE",
        "(raylet) object store memory is full, spilling to disk",
        "Spilled 5000 MiB, 10 objects, write throughput 400 MiB/s.",
        "Failed to save checkpoint",
        "Failed to load checkpoint",
        "ERROR:2026-01-01 10:00:00,123:Error in _run_prompt for uid=1",
        "Exception raised in creation task: The actor died because of an error",
    ],
)
@pytest.mark.parametrize("prefix", ["", TASK, "\x1b[36m(vLLMHttpServer pid=1)\x1b[0m (EngineCore pid=2) "])
def test_errors_are_notable_and_found_by_the_search(text: str, prefix: str) -> None:
    raw = f"{prefix}{text}".encode()
    assert TROUBLE.test(raw) and any(map(raw.__contains__, TROUBLE.hints))
    (notable,) = only(Notable, events_of(f"fine\n{prefix}{text}\nfine\n"))
    assert (notable.line.number, notable.line.offset) == (2, 5)
    text = text.removeprefix("(raylet) ")
    assert notable.line.text == (text if prefix else re.sub(r"^\[rank\d\]: ?", "", text))


@pytest.mark.parametrize(
    "text",
    [
        "my answer: raise ValueError: no",
        "It says Traceback (most recent call last): and OutOfMemoryError: too",
        "The error is small.",
        "UserWarning: x is not available: ModuleNotFoundError(\"No module named 'y'\")",
        "Using blocking ray.get inside async actor.",
        "  'error': 'CUDA error: in a printed configuration'",
    ],
)
def test_other_lines_are_not(text: str) -> None:
    assert only(Notable, events_of(f"{TASK}{text}\n")) == []


RESPONSE = ["Traceback (most recent call last):", "torch.OutOfMemoryError: CUDA out of memory. Tried to", "bye"]


def test_a_printed_response_that_quotes_an_error_is_none() -> None:
    sample = ["[prompt] user", "Why?", "[response] Look:", *RESPONSE, "[ground_truth] 5", "[score] 0.0"]
    lines = [f"{TASK}{line}" for line in sample]
    lines[5:5] = ["(EngineCore pid=8) RuntimeError: CUDA error: x"]  # of another process meanwhile
    lines += [f"{TASK}RuntimeError: the real one"]
    found = only(Notable, events_of("\n".join(lines) + "\n"))
    assert [event.line.number for event in found] == [6, len(lines)]


@pytest.mark.parametrize("after", [f"{TASK}step:2 - a/b:1", f"{TASK}words\n" * 400])
def test_a_response_without_an_end_hides_no_later_error(after: str) -> None:
    text = f"{TASK}[response] Look:\n{TASK}{RESPONSE[1]}\n{after}\n{TASK}RuntimeError: real\n"
    assert [event.line.text for event in only(Notable, events_of(text))] == ["RuntimeError: real"]
    driver = f"[response] Look:\n{RESPONSE[0]}\nError executing job with overrides: []\n"
    assert [event.line.number for event in only(Notable, events_of(driver))] == [3]


def test_events_stand_in_the_order_of_their_lines() -> None:
    text = "".join(f"Segmentation fault {n}\n{TASK}step:{n} - a/b:1\n" for n in range(200)) + "core dumped\n" * 200
    events = [event for event in events_of(text, 5000) if not isinstance(event, PhaseChange)]
    lines = [event.line.number if isinstance(event, Notable) else getattr(event, "line", 0) for event in events]
    assert lines == list(range(1, 421)), "the last 180 repeat the 20 before them"


def test_a_phrase_stands_once_in_the_table() -> None:
    marks = (*MARKS, *MARKS_INSIDE)
    phrases = [phrase for mark in marks for phrase in mark.phrases]
    names = [mark.name for mark in marks if mark.name != "tracker"]  # one row for each tracker
    assert len(set(names)) == len(names)
    assert len(set(phrases)) == len(phrases)

"""Our real console logs, and the console package's results for bytes."""

import gzip
from pathlib import Path
from typing import Any, TypeVar

from launcher.console.diagnose import diagnose
from launcher.console.diagnosis import Diagnosis
from launcher.console.reader import ConsoleReader, Event

DATA = Path(__file__).parents[1] / "data"
Kind = TypeVar("Kind", bound=Event)

# As Ray and Python's logging begin the lines of veRL's trainer.
TASK = "\x1b[36m(TaskRunnerV1 pid=7)\x1b[0m "
TASK_LOGGER = TASK + "INFO:2026-01-01 10:00:00,123:"

_WRITERS = [b"\x1b[36m(WorkerDict pid=7)\x1b[0m ", b"(EngineCore_DP0 pid=8) "]
ODD_BYTES = [b"\n", b"\r", b"\r\n", *_WRITERS, b"\xff\xfe", b"step:1 - a/b:1", "█▊".encode(), b"\x1b[", b"text", b" "]
PROMPTS = "\x1b[36m(AgentLoopWorkerTQ pid=8)\x1b[0m "
JOB = "Error executing job with overrides: ['a=b']\nTraceback (most recent call last):\n"
SYNC = "RuntimeError: Sync replay buffer selected terminal groups with no materializable trajectories.\n"
FAILED_PROMPT = "".join(
    PROMPTS + line + "\n"
    for line in (
        "ERROR:2026-11-21 09:30:55,586:Error in _run_prompt for uid=61aef5a4",
        "Traceback (most recent call last):",
        "ray.exceptions.RayTaskError(ValueError): ray::RewardLoopWorker.compute_score() (pid=3, ip=10.0.0.2)",
        '  File "/home/me/reward.py", line 3, in compute_score',
        "ValueError: no number in the answer",
    )
)


def stored(name: str) -> bytes:
    """A log of tests/data: `real-*` are failures on the CPU, `*-collapse` other frameworks, the others from GPUs."""
    folder = "failures" if name.startswith("real-") else "frameworks" if name.endswith("-collapse") else "logs"
    return gzip.decompress((DATA / folder / f"{name}.log.gz").read_bytes())


def events_of(data: bytes | str, size: int = 1 << 30) -> list[Event]:
    """The events of a log fed in chunks of `size` bytes."""
    data = data.encode() if isinstance(data, str) else data
    reader = ConsoleReader()
    events = [event for at in range(0, len(data), size) for event in reader.feed(data[at : at + size])]
    return events + reader.close()


def only(kind: type[Kind], events: list[Event]) -> list[Kind]:
    return [event for event in events if isinstance(event, kind)]


def diagnosis_of(data: bytes | str, **known: Any) -> Diagnosis:
    return diagnose([data.encode() if isinstance(data, str) else data], **known)

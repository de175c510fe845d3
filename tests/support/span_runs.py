"""Runs with spans: a recorded one of the CPU toy, and synthetic ones of several GPUs."""

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import orjson

from launcher.metrics.records import StepRecord
from launcher.record.layout import AttemptDir
from launcher.record.spans import Span

DATA = Path(__file__).parent.parent / "data" / "spans"
NAMES = sorted(path.name.split(".")[0] for path in DATA.glob("*.spans.jsonl.gz"))
START = 1_800_000_000.0


def recorded(name: str = "toy") -> list[Span]:
    """The spans of six steps of the CPU toy, with two validations and two checkpoints.

    `h100-*`: four whole steps of GPU-suite runs with a slow setting, and parts of the steps around them.
    """
    lines = gzip.decompress((DATA / f"{name}.spans.jsonl.gz").read_bytes()).splitlines()
    return [span for line in lines if (span := Span.from_line(line)) is not None]


def recorded_steps(name: str = "toy") -> list[StepRecord]:
    """The metrics of the `recorded` steps."""
    lines = gzip.decompress((DATA / f"{name}.steps.jsonl.gz").read_bytes()).splitlines()
    return [record for line in lines if (record := StepRecord.from_line(line)) is not None]


def write_spans(attempt: AttemptDir, spans: list[Span]) -> None:
    """Writes spans as one process would."""
    attempt.spans.mkdir(exist_ok=True)
    lines = b"".join(orjson.dumps(span.to_json()) + b"\n" for span in spans)
    (attempt.spans / "host-1.jsonl").write_bytes(lines)


def made_up(steps: int, gpus: int = 8, requests: int = 64, *, running: bool = False) -> list[Span]:
    """Steps of 20 s on some GPUs: a long tail of the rollout, a slow rank, a checkpoint every fourth step."""
    return [*_steps(random.Random(0), steps, gpus, requests, running)]


def _steps(luck: random.Random, steps: int, gpus: int, requests: int, running: bool) -> Iterator[Span]:
    at = START
    for step in range(1, steps + 1):
        begun = at
        generated = 9 + luck.random()
        for replica in range(gpus):
            for _ in range(requests):
                length = generated * min(1.0, 0.25 + 0.25 * luck.random() + (luck.random() < 0.04) * 0.5)
                yield Span("vllm_generate", f"replica_{replica}", at + 0.2, at + 0.2 + length)
        yield Span("data", "trainer", at + 0.02, at + 0.15, step)
        yield Span("gen", "trainer", at + 0.2, at + 0.4 + generated, step)
        at += 0.4 + generated
        timers = (
            ("old_log_prob", "actor_compute_log_prob", 1.5),
            ("ref", "ref_compute_log_prob", 1.2),
            ("update_critic", "train_batch", 2.0),
            ("update_actor", "actor_update", 4.0),
        )
        for timer, span, seconds in timers:
            if running and step == steps and timer == "update_critic":
                yield Span("step", "trainer", begun, None, step)
                yield Span(timer, "trainer", at, None, step)
                yield from (Span(span, f"rank_{rank}", at + 0.1) for rank in range(gpus))
                return
            for rank in range(gpus):
                slow = 1.0 if rank == gpus - 1 else 0.8 + 0.1 * luck.random()
                yield Span(span, f"rank_{rank}", at + 0.1, at + 0.1 + (seconds - 0.2) * slow)
            yield Span(timer, "trainer", at, at + seconds, step)
            at += seconds
        if step % 4 == 0:
            yield Span("save_checkpoint", "trainer", at, at + 3, step)
            yield from (Span("save_checkpoint", f"rank_{rank}", at + 0.1, at + 2.8) for rank in range(gpus))
            at += 3
        yield Span("update_weights", "trainer", at, at + 0.8, step)
        yield from (Span("update_weights", f"rank_{rank}", at + 0.1, at + 0.7) for rank in range(gpus))
        at += 0.8
        yield Span("step", "trainer", begun, at, step)
        at += 0.1

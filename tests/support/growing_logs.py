"""Writes steps with veRL's names as each kind of log that can be followed."""

import json
import struct
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from foreign_logs import FORMS

Step = tuple[int, dict[str, float]]
Write = Callable[[Sequence[Step]], bytes]


def run_of(first: int, last: int, factor: float = 1.0) -> list[Step]:
    names = ("critic/score/mean", "actor/entropy", "actor/grad_norm", "rollout_corr/kl", "response_length/mean")
    return [(step, dict.fromkeys(names, factor / step)) for step in range(first, last + 1)]


def console(run: Sequence[Step]) -> bytes:
    lines = (f"step:{step} - " + " - ".join(f"{key}:{value:.6f}" for key, value in data.items()) for step, data in run)
    return "".join(f"(TaskRunner pid=1) {line}\n" for line in lines).encode()


def wandb(run: Sequence[Step], code: int | None = None, began: float = 1e9) -> bytes:
    from wandb.proto import wandb_internal_pb2

    parts = [b":W&B\xe1\xbe\0"]
    record: Any = getattr(wandb_internal_pb2, "Record")  # noqa: B009 (its types lack it)
    contents = [record() for _ in run]
    for content, (step, data) in zip(contents, run, strict=True):
        for key, value in {**data, "_step": step, "_timestamp": began + step}.items():
            content.history.item.add(key=key, value_json=json.dumps(value))
    if code is not None:
        contents.append(record())
        contents[-1].exit.exit_code = code
    for each in contents:
        content = each.SerializeToString()
        parts += [struct.pack("<IHB", zlib.crc32(content, zlib.crc32(b"\1")), len(content), 1), content]
    return b"".join(parts)


def tensorboard(run: Sequence[Step], began: float = 1e9) -> bytes:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    with tempfile.TemporaryDirectory() as folder:
        writer = EventFileWriter(folder)
        for step, data in run:
            values = [{"tag": key, "simple_value": value} for key, value in data.items()]
            writer.add_event(Event(wall_time=began + step, step=step, summary={"value": values}))
        writer.close()
        return next(Path(folder).iterdir()).read_bytes()


WRITERS: dict[str, tuple[str, str, Write]] = {
    "veRL": ("console", "run.log", console),
    "UTF-16": ("console", "run.log", lambda run: console(run).decode().replace("\n", "\r\n").encode("utf-16-le")),
    "prime-rl": ("console", "run.log", lambda run: FORMS["prime-rl"][1](run).encode()),
    "csv": ("rows", "metrics.csv", lambda run: FORMS["csv"][1](run).encode()),
    "trainer_state": ("rows", "trainer_state.json", lambda run: FORMS["trainer_state"][1](run).encode()),
    "wandb": ("tracker", "run-1-ab/run-ab.wandb", wandb),
    "tensorboard": ("tracker", "events.out.tfevents.1.host.1.0", tensorboard),
}

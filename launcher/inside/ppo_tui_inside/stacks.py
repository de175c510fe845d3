"""Stacks of each process of a run, on request of the supervisor, which looks when the run hangs.

Each process with the plugin has files in the folder `stacks` next to the metrics of its attempt. A thread that waits at
the pipe `PID.ask` writes `PID.json`: the stacks of all threads, waiting coroutines (which no stack shows), rank, and
the collective operations in torch's flight recorder. `PID.txt` gets stacks at a signal: faulthandler writes them for a
process whose threads cannot answer because C code in one holds the interpreter. Others must not get that signal:
faulthandler reads frames without the interpreter's lock, and crashes when a thread runs meanwhile (seen with 3.11).

Not in plugin/, which needs veRL: the supervisor reads its constants.
"""

import contextlib
import faulthandler
import gc
import importlib.metadata
import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = "stacks"
SIGNAL = 43  # a real-time signal of Linux that veRL, Ray, vLLM and SLURM do not use
_FRAMES = 100  # frames per stack
_DEEPEST, _MOST = 40, 100  # frames of a coroutine, coroutines
_RECORDERS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")  # gloo's and NCCL's; a torch for CPUs lacks the second
_file: Any = None  # faulthandler writes to its descriptor


def install() -> None:
    """Registers the signal and starts the thread, here and in each fork. Does nothing outside a run."""
    metrics = os.environ.get("VERL_FILE_LOGGER_PATH")
    if not metrics or sys.platform != "linux":
        return
    folder = Path(metrics).parent / FOLDER
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        for name, value in recorder(f"{folder}/recorder_").items():
            os.environ.setdefault(name, value)
        _attach(folder)
        os.register_at_fork(after_in_child=lambda: _attach(folder))


def recorder(files: str) -> dict[str, str]:
    """Variables that enable torch's flight recorder; it dumps to `files` and the rank after a timeout.

    It is a ring buffer of names and sizes. torch 2.13 warns of the older names.
    """
    try:
        major, minor = importlib.metadata.version("torch").split(".")[:2]
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return {}
    size, file = "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"
    if (int(major), int(minor)) < (2, 10):
        size, file = "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
    return {size: "2000", file: files, "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"}


def _attach(folder: Path) -> None:
    global _file
    with contextlib.suppress(OSError, RuntimeError):
        _file = (folder / f"{os.getpid()}.txt").open("a")
        faulthandler.register(SIGNAL, _file, all_threads=True)
        pipe = folder / f"{os.getpid()}.ask"
        with contextlib.suppress(FileExistsError):
            os.mkfifo(pipe)
        threading.Thread(target=_answer, args=(pipe,), name="ppo-tui stacks", daemon=True).start()


def _answer(pipe: Path) -> None:
    with contextlib.suppress(OSError):
        asked = os.open(pipe, os.O_RDWR)  # also opened for writing, so that it never ends
        while os.read(asked, 64):
            answer = pipe.with_suffix(".new")
            answer.write_text(json.dumps(state()))
            answer.replace(pipe.with_suffix(".json"))


def state() -> Mapping[str, object]:
    """Stacks, rank and number of ranks, waiting coroutines, collective operations, as far as available."""
    found: dict[str, object] = {}
    for name, part in (("threads", threads), ("ranks", ranks), ("tasks", tasks), ("collectives", collectives)):
        try:
            found[name] = part()
        except Exception as error:  # other threads continue meanwhile
            found["error"] = f"{name}: {type(error).__name__}: {error}"
    return found


def threads() -> list[Mapping[str, object]]:
    """Name and frames of each other thread, innermost first, as `file:line function`."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found: list[Mapping[str, object]] = []
    for ident, frame in sys._current_frames().items():
        frames: list[str] = []
        at: Any = frame
        while at is not None and len(frames) < _FRAMES:
            frames.append(f"{at.f_code.co_filename}:{at.f_lineno} {at.f_code.co_name}")
            at = at.f_back
        if ident != threading.get_ident():
            found.append({"thread": names.get(ident, hex(ident)), "frames": frames})
    return found


def ranks() -> list[int]:
    """Rank and number of ranks; empty in a process without ranks."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return [distributed.get_rank(), distributed.get_world_size()]
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return [int(rank), int(size)] if rank.isdigit() and size.isdigit() else []


def tasks() -> list[list[str]]:
    """The frames of each waiting coroutine, innermost first, as `file:line function`."""
    found: list[list[str]] = []
    module: Any = sys.modules.get("asyncio.tasks")
    known = ("_all_tasks",) if hasattr(module, "_all_tasks") else ("_scheduled_tasks", "_eager_tasks")  # since 3.12
    for task in [task for name in known for task in [*getattr(module, name, ())]]:
        frames: list[str] = []
        waits: Any = None if task.done() else task.get_coro()
        while waits is not None and len(frames) < _DEEPEST:
            frame = getattr(waits, "cr_frame", None) or getattr(waits, "gi_frame", None)
            if frame is not None:
                frames.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
            inner = getattr(waits, "cr_await", None) or getattr(waits, "gi_yieldfrom", None)
            if type(inner).__name__ == "coroutine_wrapper":  # between Ray's coroutines and Python's
                inner = next(iter(gc.get_referents(inner)), None)
            waits = inner
        if frames and frames[::-1] not in found:
            found.append(frames[::-1])
    return found[:_MOST]


def collectives() -> list[Mapping[str, object]]:
    """Per process group the unfinished operation, or the last one, from torch's flight recorders.

    NCCL has its own recorder, separate from gloo's. A GPU runs a group's operations one after another, and the host may
    be far ahead: operations after an unfinished one wait for it.
    """
    c10d: Any = sys.modules.get("torch._C._distributed_c10d")
    found: dict[Any, dict[str, object]] = {}
    if c10d is None or not ranks():
        return []
    world: Any = sys.modules["torch.distributed.distributed_c10d"]._world
    members = {name: sorted(world.pg_group_ranks.get(group, ())) for group, name in world.pg_names.items()}
    for dump in [getattr(c10d, name) for name in _RECORDERS if hasattr(c10d, name)]:
        for entry in json.loads(dump()).get("entries", ()):
            group, operation = entry["process_group"], entry["profiling_name"]
            state = "completed" if entry.get("retired") else entry["state"]
            key = (*group, operation.partition(":")[0])
            if key not in found or "completed" in (state, found[key]["state"]):
                found[key] = {
                    "group": group[-1] or group[0],
                    "sequence": entry["collective_seq_id"],
                    "operation": operation,
                    "state": state,
                    "ranks": members.get(group[0], []),
                }
    return list(found.values())

"""What each process of a run waits for, on request of the supervisor, which looks when the run stands still.

Each process with the plugin has two files in the folder `stacks` next to the metrics of its attempt. `PID.txt` gets the
stacks of all threads at a signal: faulthandler writes them, also while a thread in C holds the interpreter.
A thread that waits at the pipe `PID.ask` writes `PID.json`: rank, waiting coroutines, which no stack shows, and the
collective operations in torch's flight recorder.

It is not in plugin/, which needs veRL: the supervisor reads its constants.
"""

import contextlib
import faulthandler
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

FOLDER = "stacks"
SIGNAL = 43  # a real-time signal of Linux, which neither veRL, Ray, vLLM nor SLURM use
RECORDER = {
    # The ring buffer, by its name since torch 2.9 and the one before. It costs nothing that can be measured.
    "TORCH_FR_BUFFER_SIZE": "2000",
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
}
_DUMPS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_DEEPEST, _MOST = 40, 100  # frames of a coroutine, coroutines
_file: Any = None  # faulthandler writes to its descriptor


def install() -> None:
    """Registers the signal and starts the thread, here and in each fork. Does nothing outside a run."""
    metrics = os.environ.get("VERL_FILE_LOGGER_PATH")
    if not metrics or sys.platform != "linux":
        return
    folder = Path(metrics).parent / FOLDER
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        for name, value in {**RECORDER, **dict.fromkeys(_DUMPS, f"{folder}/recorder_")}.items():
            os.environ.setdefault(name, value)
        _attach(folder)
        os.register_at_fork(after_in_child=lambda: _attach(folder))


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
        while True:
            with pipe.open("rb") as asked:  # waits for somebody who asks
                asked.read()
            answer = pipe.with_suffix(".new")
            answer.write_text(json.dumps(state()))
            answer.replace(pipe.with_suffix(".json"))


def state() -> dict[str, Any]:
    """Rank and number of ranks, waiting coroutines, collective operations: what can be had of them."""
    found: dict[str, Any] = {}
    for name, part in (("ranks", ranks), ("tasks", tasks), ("collectives", collectives)):
        try:
            found[name] = part()
        except Exception as error:  # other threads go on meanwhile
            found["error"] = f"{name}: {type(error).__name__}: {error}"
    return found


def ranks() -> list[int]:
    """Rank and number of ranks; empty in a process without."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return [distributed.get_rank(), distributed.get_world_size()]
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return [int(rank), int(size)] if rank.isdigit() and size.isdigit() else []


def tasks() -> list[list[str]]:
    """The frames of each coroutine that waits, innermost first, as `file:line function`."""
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
            waits = getattr(waits, "cr_await", None) or getattr(waits, "gi_yieldfrom", None)
        if frames and frames[::-1] not in found:
            found.append(frames[::-1])
    return found[:_MOST]


def collectives() -> list[dict[str, Any]]:
    """The newest operation of each process group, from torch's flight recorder."""
    c10d: Any = sys.modules.get("torch._C._distributed_c10d")
    dump = getattr(c10d, "_dump_fr_trace_json", None) or getattr(c10d, "_dump_nccl_trace_json", None)
    if dump is None or not ranks():
        return []
    newest: dict[Any, dict[str, Any]] = {}
    for entry in json.loads(dump()).get("entries", ()):
        newest[tuple(entry["process_group"])] = entry
    return [
        {
            "group": group[-1] or group[0],
            "sequence": entry["collective_seq_id"],
            "operation": entry["profiling_name"],
            "state": "completed" if entry.get("retired") else entry["state"],
        }
        for group, entry in newest.items()
    ]

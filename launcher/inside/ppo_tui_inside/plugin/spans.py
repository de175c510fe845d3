"""Spans: each process's work over time, one JSON line each in the run's folder `spans`.

veRL times its work for rl-insight (`utils/tracking.py: RLInsightLogger.trace_state`, since 0.9), which needs three
services. Spans are taken at that place, and a real rl-insight still gets its own. rl-insight may stay off; enabling it
would end a run with `rollout.disable_log_stats=True`. Spans also cover the trainer's timers (`marked_timer`), and parts
without a timer in veRL: data, agent loops, reward functions, weights, the critic's values, and micro-batches with their
tokens.

A process appends to its own file; with the previous one it stays below 8 MiB. Long work is also recorded at its start.
A missing or unwritable folder disables the spans of a process; nothing raises.
"""

import contextlib
import functools
import inspect
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .. import SPANS
from .late import after_import

MOST = 4 << 20  # bytes of a file; then it becomes the older of two
KEPT = 64  # micro-batches of one pass with their tokens and seconds

TRAINERS = (
    *("verl.trainer.ppo.v1.trainer_base", "verl.trainer.ppo.v1.trainer_sync"),
    *("verl.trainer.ppo.v1.trainer_colocate_async", "verl.trainer.ppo.v1.trainer_separate_async"),
    "verl.trainer.ppo.ray_trainer",
)
TRAINER = "trainer"


def install() -> None:
    """Does nothing without a folder for spans, and in versions of veRL without these places."""
    if os.environ.get(SPANS, "0") in ("", "0"):
        return
    after_import("verl.utils.tracking", take_states)
    for name in TRAINERS:
        after_import(name, take_timers)
    after_import("verl.trainer.ppo.v1.trainer_base", take_data)
    after_import("verl.workers.engine_workers", take_workers)
    after_import("verl.workers.engine.fsdp.transformer_impl", take_micro_batches)
    after_import("verl.experimental.agent_loop.agent_loop", take_sessions)
    after_import("verl.experimental.reward_loop.reward_loop", take_rewards)


class _File:
    """The file of this process, or forked worker. It has a lock, as veRL calls reward functions in several threads."""

    pid = 0
    number = -1  # number of the open file; negative without one
    size = 0

    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        """Makes a new lock: in a forked process, the holder of the old one does not exist."""
        self.lock = threading.RLock()

    def open(self, pid: int) -> None:
        self.pid, self.number = pid, -1
        folder = os.environ.get(SPANS, "")
        self.path = os.path.join(folder, f"{socket.gethostname()}-{pid}.jsonl")  # noqa: PTH118 (no pathlib per fork)
        if os.path.isdir(folder):  # noqa: PTH112
            self.number = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.size = os.fstat(self.number).st_size

    def add(self, line: bytes) -> None:
        with self.lock:
            if self.pid != (pid := os.getpid()):
                self.open(pid)
            if self.number >= 0 and self.size + len(line) > MOST:
                full, self.number = self.number, -1
                os.close(full)
                os.replace(self.path, self.path + ".old")  # noqa: PTH105
                self.open(pid)
            if self.number >= 0:
                try:
                    self.size += os.write(self.number, line)
                except OSError:
                    self.number = -1


_file = _File()


def write(name: str, lane: str, start: float, end: float | None = None, more: str = "") -> None:
    """Writes one line. `more`: further fields as JSON: `,"step":3`."""
    ended = "" if end is None else f',"end":{end:.6f}'
    with contextlib.suppress(Exception):  # disk errors, or the interpreter's end: the run continues without spans
        _file.add(f'{{"name":{_quoted(name)},"lane":{_quoted(lane)},"start":{start:.6f}{ended}{more}}}\n'.encode())


@functools.lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(str(text))


class Span:
    """A context that writes a span at its end, and if `long` also at its start."""

    __slots__ = ("inner", "lane", "long", "more", "name", "start")

    def __init__(self, name: str, lane: str, inner: Any = None, more: str = "", long: bool = True) -> None:
        self.name, self.lane, self.inner, self.more, self.long = name, lane, inner, more, long

    def __enter__(self) -> Any:
        self.start = time.time()
        if self.long:
            write(self.name, self.lane, self.start, None, self.more)
        return None if self.inner is None else self.inner.__enter__()

    def __exit__(self, *error: Any) -> Any:
        given = None if self.inner is None else self.inner.__exit__(*error)
        write(self.name, self.lane, self.start, time.time(), self.more)
        return given


def take_states(module: ModuleType) -> None:
    """Records the stages of each rank, and each response of a rollout replica."""
    logger: Any = getattr(module, "RLInsightLogger", None)
    own = getattr(logger, "trace_state", None)
    if own is None:
        return

    def trace_state(_cls: Any, state_name: str, *, state_lane_id: Any = None, **labels: Any) -> Span:
        inner = own(state_name, state_lane_id=state_lane_id, **labels) if logger.enabled() else None
        lane = "" if state_lane_id is None else str(state_lane_id)
        return Span(state_name, lane, inner, long=not lane.startswith("replica"))

    logger.trace_state = classmethod(trace_state)


def take_timers(module: ModuleType) -> None:
    """Records the trainer's timers, each with the step of the calling trainer."""
    own = getattr(module, "marked_timer", None)
    if own is None:
        return

    @functools.wraps(own)
    def marked_timer(name: str, *args: Any, **kwargs: Any) -> Span:
        step = getattr(sys._getframe(1).f_locals.get("self"), "global_steps", None)
        return Span(name, TRAINER, own(name, *args, **kwargs), _step(step))

    module.marked_timer = marked_timer  # type: ignore[attr-defined]


def take_data(module: ModuleType) -> None:
    """Records the trainer's data loader and validation, which has no timer before the first step."""
    for method, name in (("_fetch_one_gen_batch", "data"), ("_validate", "testing")):
        _wrap(module.PPOTrainer, method, name, _trainer, _step_of)


def take_workers(module: ModuleType) -> None:
    """Records work of ranks without veRL's own state."""
    for kind in ("ActorRolloutRefWorker", "TrainingWorker"):
        for method in ("update_weights", "save_checkpoint", "load_checkpoint", "infer_batch"):
            _wrap(getattr(module, kind, None), method, method, _rank)


def take_sessions(module: ModuleType) -> None:
    """Records each sample in its agent loop, with its reward."""
    _wrap(getattr(module, "AgentLoopWorker", None), "_run_agent_loop", "session", _process, long=False)


def take_rewards(module: ModuleType) -> None:
    """Records each call of the reward function or model, with its true duration."""
    worker: Any = getattr(module, "RewardLoopWorker", None)
    begin = getattr(worker, "_init_reward_fn", None)
    if begin is None:
        return

    @functools.wraps(begin)
    def with_spans(self: Any) -> None:
        begin(self)
        with contextlib.suppress(AttributeError):
            manager = self.reward_manager
            manager.compute_score = _timed(manager.compute_score, "reward", _process, long=False)

    worker._init_reward_fn = with_spans
    _wrap(worker, "compute_score_disrm", "reward", _process, long=False)


def take_micro_batches(module: ModuleType) -> None:
    """Records the micro-batches of a pass in one span: `count`, and tokens and seconds of the first ones.

    One lasts until the next begins: the loop (`FSDPEngine.forward_backward_batch`) does nothing between them.
    """
    engine: Any = getattr(module, "FSDPEngine", None)
    whole = getattr(engine, "forward_backward_batch", None)
    if whole is None:
        return
    for kind in [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, engine)]:
        if "forward_step" in vars(kind):
            kind.forward_step = _noting(kind.forward_step)  # type: ignore[attr-defined]

    @functools.wraps(whole)
    def forward_backward_batch(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._ppo_tui_marks = marks = []
        start = time.time()
        result = whole(self, *args, **kwargs)
        end = time.time()
        ends = [mark[0] for mark in marks[1:]] + [end]
        parts = [(tokens, round(until - begun, 6)) for (begun, tokens), until in zip(marks, ends, strict=False)]
        more = f',"count":{len(marks)},"parts":{json.dumps(parts[:KEPT])}'
        write("micro_batches", _rank(self), start, end, more)
        return result

    engine.forward_backward_batch = forward_backward_batch


def _noting(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A step of a micro-batch that records its start, and the tokens of its input with padding."""

    @functools.wraps(forward)
    def forward_step(self: Any, micro_batch: Any, *args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            ids = micro_batch["input_ids"]
            tokens = ids.values().numel() if ids.is_nested else ids.numel()
            marks = getattr(self, "_ppo_tui_marks", None)
            if marks is not None:
                marks.append((time.time(), tokens))
        return forward(self, micro_batch, *args, **kwargs)

    return forward_step


def _wrap(
    owner: Any,
    method: str,
    name: str,
    lane: Callable[[Any], str],
    more: Callable[[Any], str] = lambda _: "",
    *,
    long: bool = True,
) -> None:
    """Wraps a method defined by the class itself in a span."""
    if owner is not None and method in vars(owner):
        setattr(owner, method, _timed(vars(owner)[method], name, lane, more, long=long))


def _timed(
    work: Callable[..., Any],
    name: str,
    lane: Callable[[Any], str],
    more: Callable[[Any], str] = lambda _: "",
    *,
    long: bool = True,
) -> Any:
    """The function with a span around each call. `lane` and `more` get its first argument."""

    def span(args: Any) -> Span:
        first = args[0] if args else None
        return Span(name, lane(first), more=more(first), long=long)

    if inspect.iscoroutinefunction(work):

        @functools.wraps(work)
        async def waited(*args: Any, **kwargs: Any) -> Any:
            with span(args):
                return await work(*args, **kwargs)

        return waited

    @functools.wraps(work)
    def called(*args: Any, **kwargs: Any) -> Any:
        with span(args):
            return work(*args, **kwargs)

    return called


def _rank(worker: Any) -> str:
    """The lane of a worker or its engine, in the form of `DistProfiler.annotate`."""
    rank = getattr(getattr(worker, "profiler", None), "rank", getattr(worker, "rank", None))
    return f"rank_{os.environ.get('RANK', 0) if rank is None else rank}"


def _trainer(_: Any) -> str:
    return TRAINER


def _process(_: Any) -> str:
    """The lane of a process without a rank."""
    return f"process_{os.getpid()}"


def _step_of(trainer: Any) -> str:
    return _step(getattr(trainer, "global_steps", None))


def _step(step: Any) -> str:
    return f',"step":{step}' if isinstance(step, int) else ""

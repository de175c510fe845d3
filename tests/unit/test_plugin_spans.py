"""The spans that the plugin takes: from veRL's own places, in a file per process, and never at the cost of a run."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from verl_process import WITH_VERL, Parent
from waiting import wait_until

from launcher.inside.ppo_tui_inside import SPANS
from launcher.record.layout import AttemptDir
from launcher.record.spans import Span, SpanTail

pytestmark = [*WITH_VERL, pytest.mark.slow]


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Any) -> AttemptDir:
    (tmp_path / "1" / "spans").mkdir(parents=True)
    found = AttemptDir(tmp_path / "1")
    monkeypatch.setenv(SPANS, str(found.spans))
    monkeypatch.setattr(plugin.spans, "_file", plugin.spans._File())
    return found


def ended(attempt: AttemptDir) -> list[Span]:
    return [span for span in SpanTail(attempt, whole=True).read() if span.end is not None]


def tracking(enabled: bool) -> tuple[ModuleType, list[str]]:
    """`verl.utils.tracking` with a real rl-insight behind it, which notes what it gets."""
    got: list[str] = []

    class RLInsightLogger:
        @classmethod
        def enabled(cls) -> bool:
            return enabled

        @classmethod
        @contextmanager
        def trace_state(cls, state_name: str, *, state_lane_id: Any = None, **labels: Any) -> Any:
            got.append(f"{state_name} {state_lane_id} {labels}")
            yield

    module = ModuleType("tracking")
    module.RLInsightLogger = RLInsightLogger  # type: ignore[attr-defined]
    return module, got


@pytest.mark.parametrize("enabled", [True, False])
def test_a_state_is_noted_and_a_real_rl_insight_still_gets_it(plugin: Any, attempt: AttemptDir, enabled: bool) -> None:
    module, got = tracking(enabled)
    plugin.spans.take_states(module)
    before = time.time()
    with module.RLInsightLogger.trace_state("actor_update", state_lane_id="rank_3", colour="red"):
        lines = list(SpanTail(attempt, whole=True).read())
    assert [(span.name, span.end) for span in lines] == [("actor_update", None)], "what is long is noted as it begins"
    with module.RLInsightLogger.trace_state("vllm_generate", state_lane_id="replica_0"):
        pass
    with pytest.raises(KeyError), module.RLInsightLogger.trace_state("actor_update", state_lane_id="rank_3"):
        raise KeyError("mine")
    update, request, _ = ended(attempt)
    assert (update.name, update.lane, request.lane) == ("actor_update", "rank_3", "replica_0")
    assert before <= update.start <= (update.end or 0) <= request.start
    theirs = ["actor_update rank_3 {'colour': 'red'}", "vllm_generate replica_0 {}", "actor_update rank_3 {}"]
    assert got == (theirs if enabled else [])


def test_the_timers_of_the_trainer_have_its_step(plugin: Any, attempt: AttemptDir) -> None:
    module = ModuleType("trainer_base")

    @contextmanager
    def marked_timer(name: str, timing_raw: dict[str, float], color: str | None = None) -> Any:
        yield
        timing_raw[name] = 1.0

    module.marked_timer = marked_timer  # type: ignore[attr-defined]
    plugin.spans.take_timers(module)

    class Trainer:
        global_steps = 7

        def step(self) -> dict[str, float]:
            timing: dict[str, float] = {}
            with module.marked_timer("gen", timing, color="red"):
                pass
            return timing

    assert Trainer().step() == {"gen": 1.0}, "veRL's own timer goes on"
    (span,) = ended(attempt)
    assert (span.name, span.lane, span.step) == ("gen", "trainer", 7)


def test_rewards_and_sessions_last_as_long_as_they_work(plugin: Any, attempt: AttemptDir) -> None:
    class RewardLoopWorker:
        def _init_reward_fn(self) -> None:
            self.reward_manager = SimpleNamespace(compute_score=lambda **_: time.sleep(0.05) or 1.0)

    class AgentLoopWorker:
        async def _run_agent_loop(self, value: int, *, twice: bool) -> int:
            await asyncio.sleep(0.05)
            return value * 2 if twice else value

    module = ModuleType("both")
    module.RewardLoopWorker, module.AgentLoopWorker = RewardLoopWorker, AgentLoopWorker  # type: ignore[attr-defined]
    plugin.spans.take_rewards(module)
    plugin.spans.take_sessions(module)
    worker = RewardLoopWorker()
    worker._init_reward_fn()
    assert worker.reward_manager.compute_score(solution_str="4") == 1.0
    assert asyncio.run(AgentLoopWorker()._run_agent_loop(4, twice=True)) == 8
    reward, session = ended(attempt)
    assert (reward.name, session.name, reward.lane) == ("reward", "session", f"process_{os.getpid()}")
    assert all((span.end or 0) - span.start >= 0.05 for span in (reward, session))


def test_micro_batches_are_one_span_with_their_tokens(plugin: Any, attempt: AttemptDir) -> None:
    import torch

    class FSDPEngine:
        rank = 2

        def forward_backward_batch(self, data: list[int]) -> list[int]:
            return [self.forward_step({"input_ids": torch.zeros(2, each)}) for each in data]

        def forward_step(self, micro_batch: Any) -> int:
            raise NotImplementedError

    class WithHead(FSDPEngine):
        def forward_step(self, micro_batch: Any) -> int:
            time.sleep(0.01)
            return int(micro_batch["input_ids"].numel())

    module = ModuleType("transformer_impl")
    module.FSDPEngine, module.WithHead = FSDPEngine, WithHead  # type: ignore[attr-defined]
    plugin.spans.take_micro_batches(module)
    lengths = [*range(1, 101)]
    assert WithHead().forward_backward_batch(lengths) == [2 * each for each in lengths]
    (span,) = ended(attempt)
    assert (span.lane, span.count, len(span.parts)) == ("rank_2", 100, plugin.spans.KEPT)
    assert [part[0] for part in span.parts[:3]] == [2, 4, 6] and all(part[1] >= 0.01 for part in span.parts)


def test_a_file_is_bounded_and_keeps_the_newest(plugin: Any, attempt: AttemptDir, monkeypatch: Any) -> None:
    monkeypatch.setattr(plugin.spans, "MOST", 10_000)
    for number in range(1000):
        plugin.spans.write("reward", f"process_{number}", number, number + 1)
    sizes = [path.stat().st_size for path in attempt.spans.iterdir()]
    assert len(sizes) == 2 and max(sizes) <= 10_000
    assert ended(attempt)[-1].lane == "process_999"


def test_a_thread_that_writes_during_the_change_of_files_loses_nothing(
    plugin: Any, attempt: AttemptDir, monkeypatch: Any
) -> None:
    def replace(old: str, new: str) -> None:
        other = Thread(target=plugin.spans.write, args=("reward", "other", 1.0, 2.0))
        other.start()
        other.join(0.2)  # it waits for the lock; without one it writes to the closed file
        others.append(other)
        rename(old, new)

    rename, others = os.replace, list[Thread]()
    monkeypatch.setattr(plugin.spans, "MOST", 300)
    monkeypatch.setattr(plugin.spans.os, "replace", replace)
    while not others:
        plugin.spans.write("reward", "own", 1.0, 2.0)
    others[0].join()
    assert [span.lane for span in ended(attempt)][-2:] == ["own", "other"]
    assert plugin.spans._file.number >= 0, "the spans are off"


def test_many_threads_fill_many_files(plugin: Any, attempt: AttemptDir, monkeypatch: Any) -> None:
    monkeypatch.setattr(plugin.spans, "MOST", 2_000)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda lane: plugin.spans.write("reward", str(lane), 1.0, 2.0), range(4_000)))
    kept = {span.lane for span in ended(attempt)}
    assert len(kept) >= 2_000 // 70 and plugin.spans._file.number >= 0
    plugin.spans.write("reward", "last", 1.0, 2.0)
    assert ended(attempt)[-1].lane == "last"


def test_without_a_folder_or_on_a_full_disk_nothing_happens(plugin: Any, attempt: AttemptDir, monkeypatch: Any) -> None:
    monkeypatch.setenv(SPANS, str(attempt.path / "gone"))
    plugin.spans.write("reward", "process_1", 1.0, 2.0)
    monkeypatch.setattr(plugin.spans, "_file", plugin.spans._File())
    monkeypatch.setenv(SPANS, str(attempt.spans))
    plugin.spans.write("reward", "process_1", 1.0, 2.0)
    os.close(plugin.spans._file.number)  # every further write fails
    plugin.spans.write("reward", "process_2", 1.0, 2.0)
    plugin.spans.write("reward", "process_3", 1.0, 2.0)
    assert [span.lane for span in ended(attempt)] == ["process_1"]


def test_a_fork_has_a_file_of_its_own(plugin: Any, attempt: AttemptDir) -> None:
    plugin.spans.write("reward", "process_1", 1.0, 2.0)
    child = os.fork()
    if child == 0:
        plugin.spans.write("reward", "process_2", 1.0, 2.0)
        os._exit(0)
    os.waitpid(child, 0)
    assert len(list(attempt.spans.iterdir())) == 2 and len(ended(attempt)) == 2


def test_a_fork_beside_a_thread_that_writes_does_not_wait_for_it(plugin: Any, attempt: AttemptDir) -> None:
    held, done = Event(), Event()

    def hold() -> None:
        with plugin.spans._file.lock:
            held.set()
            done.wait()

    holder = Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        plugin.spans.write("reward", "child", 1.0, 2.0)
        os._exit(0)
    try:
        wait_until(lambda: os.waitpid(child, os.WNOHANG)[0])
    finally:
        done.set()
        holder.join()
    assert [span.lane for span in ended(attempt)] == ["child"]


REAL = """
import os
import verl
from verl.utils.tracking import RLInsightLogger
from verl.trainer.ppo.v1 import trainer_base
from verl.workers import engine_workers
from verl.workers.engine.fsdp import transformer_impl
from verl.experimental.agent_loop import agent_loop
from verl.experimental.reward_loop import reward_loop
with RLInsightLogger.trace_state("actor_update", state_lane_id="rank_0"):
    pass
class Trainer:
    global_steps = 3
    def run(self):
        with trainer_base.marked_timer("gen", {}):
            pass
Trainer().run()
taken = [trainer_base.PPOTrainer._fetch_one_gen_batch, engine_workers.TrainingWorker.infer_batch,
         engine_workers.ActorRolloutRefWorker.update_weights, agent_loop.AgentLoopWorker._run_agent_loop,
         reward_loop.RewardLoopWorker._init_reward_fn, transformer_impl.FSDPEngine.forward_backward_batch]
print([each.__code__.co_filename.endswith("spans.py") for each in taken])
print(hasattr(engine_workers.TrainingWorker.infer_batch, "attrs_3141562937"))
"""


def test_the_places_are_there_in_the_installed_verl(verl: Parent, attempt: AttemptDir) -> None:
    """Also: what veRL notes on a method of its workers stays on it."""
    done = verl.python(REAL, **{SPANS: str(attempt.spans)})
    assert done.stdout.splitlines()[-2:] == [str([True] * 6), "True"], done.stderr
    assert [(span.name, span.step) for span in ended(attempt)] == [("actor_update", None), ("gen", 3)]
    off = verl.python(REAL, **{SPANS: "0"})
    assert off.stdout.splitlines()[-2] == str([False] * 6)

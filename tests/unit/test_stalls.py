"""Why a run stands still: reasons from recorded hangs and real processes, and none for a run that is slow."""

import gzip
import json
import os
import statistics
import sys
import tarfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import call
from console_logs import DATA

from launcher.health.checklist import Checklist
from launcher.inside.ppo_tui_inside import stacks as plugin
from launcher.metrics.records import StepRecord
from launcher.record.attempt import LaunchRecord
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.record.machine import GpuSample, MachineSample
from launcher.record.process import ProcessId
from launcher.record.standstill import HangFacts, RayView, Seen, Stack, Standstill
from launcher.record.state import RunState
from launcher.runs.judge.monitor import Monitor
from launcher.runs.judge.sink import Sink
from launcher.runs.supervise.failures import FailureLog
from launcher.runs.supervise.stalls.activity import Patience, Stage
from launcher.runs.supervise.stalls.collectives import standing
from launcher.runs.supervise.stalls.judging import judge
from launcher.runs.supervise.stalls.report import report
from launcher.runs.supervise.stalls.watch import News, StallWatch
from launcher.runs.watch.stalls import last_standstill, reasons

SECRET = "abcdef0123456789abcdef0123456789abcdef01"
TOY = gzip.decompress((DATA / "logs/cpu-toy.log.gz").read_bytes())
RECORDED = sorted((DATA / "stalls").glob("*.json"))
SITE = "/opt/venv/lib/python3.11/site-packages"
WAIT = f"{SITE}/torch/distributed/distributed_c10d.py:3252 all_reduce"


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_a_recorded_hang_has_its_reason_with_evidence(file: Path) -> None:
    recorded = json.loads(file.read_text())
    found = judge(HangFacts.from_json(recorded["facts"]))
    assert found is not None and found.reason == recorded["right"]
    assert found.evidence and "…" not in f"{found.title} {found.command}"


def test_each_reason_was_planted_or_is_judged_below() -> None:
    planted = {json.loads(file.read_text())["right"] for file in RECORDED}
    below = {"gpu-lost", "network-disk", "collective-lost", "collective", "ray-actor-pending", "tool", "user-code"}
    assert planted | below | {"unknown", "reward", "engine"} == set(reasons())


def seen(pid: int, *frames: str, **more: object) -> Seen:
    return replace(Seen(pid, f"ray::Worker{pid}", stacks=(Stack("main", frames),)), **more)  # type: ignore[arg-type]


def reason(*processes: Seen, busy: bool = False, **more: object) -> str | None:
    found = judge(replace(HangFacts(0.0, processes=processes), **more), busy=busy)  # type: ignore[arg-type]
    return found.reason if found is not None else None


def test_a_gpu_that_failed_comes_first() -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."
    found = judge(HangFacts(0.0, kernel=(line,), processes=(seen(1, WAIT, ranks=(0, 2)),)), busy=True)
    assert found is not None and found.title == "A GPU failed: Xid 79" and found.evidence == (line,)


def test_the_file_system_of_another_machine_is_told_from_a_disk() -> None:
    held = seen(1, "/home/me/save.py:3 save", state="D", wait="nfs_wait_on_request")
    assert reason(held, mounts=("/ ext4", "/mnt/data nfs4")) == "network-disk"
    assert reason(held, mounts=("/ ext4", "/scratch xfs")) == "disk-wait"
    assert reason(replace(held, cpu=0.7), mounts=("/mnt/data nfs4",)) != "network-disk", "it reads"
    saving = judge(HangFacts(0.0, "save", (held,), mounts=("/ ext4", "/dev/shm tmpfs", "/mnt/data nfs4")))
    assert saving is not None and saving.title == "The disk does not answer: / ext4", "where the checkpoints are"


def test_ranks_that_wait_for_one_that_is_gone_or_for_the_network() -> None:
    both = [seen(1, WAIT, ranks=(0, 2)), seen(2, WAIT, ranks=(1, 2))]
    assert reason(both[0]) == "collective-lost"
    assert reason(*both) == "collective"
    behind = ({"group": "default_pg", "sequence": 6, "operation": "gloo:all_reduce", "state": "scheduled"},)
    ahead = ({**behind[0], "sequence": 7},)
    assert reason(replace(both[0], collectives=behind), replace(both[1], collectives=ahead)) == "collective-mismatch"


def test_a_busy_run_gets_certain_reasons_alone() -> None:
    own = "/home/me/reward.py:12 score"
    scoring = seen(1, own, f"{SITE}/verl/experimental/reward_loop/reward_manager/naive.py:77 run_single")
    assert reason(scoring) == "reward" and reason(scoring, busy=True) is None
    absent = seen(2, own, ranks=(1, 2))
    assert reason(seen(1, WAIT, ranks=(0, 2)), absent, busy=True) == "collective-missing"
    moving = replace(seen(1, WAIT, ranks=(0, 2)), stacks=(Stack("main", (WAIT,), still=False),))
    assert reason(moving, absent, busy=True) is None, "it was elsewhere 3 s before"


STOPPED = HangFacts.from_json(json.loads((DATA / "stalls/gpu_stopped.json").read_text())["facts"])
SPINNING = next(each for each in STOPPED.processes if each.ranks == (0, 2))
"""Rank 0 of two H100, 70 s after rank 1 was stopped: it waits for NCCL with a whole core."""


def entry(operation: str, sequence: int, **more: object) -> dict[str, object]:
    known = {"process_group": ["0", "default_pg"], "profiling_name": operation, "collective_seq_id": sequence}
    return {**known, "retired": False, "state": "scheduled", **more}


def answer(monkeypatch: pytest.MonkeyPatch, *nccl: dict[str, object]) -> tuple[dict[str, object], ...]:
    """What the plugin answers in a torch for GPUs, which has two recorders; gloo's is as on the H100."""
    gloo = [entry("gloo:all_gather", 91, retired=True)]
    recorders = {
        f"_dump_{name}_trace_json": lambda entries=entries: json.dumps({"entries": entries}).encode()
        for name, entries in (("fr", gloo), ("nccl", nccl))
    }
    world = SimpleNamespace(pg_names={"group": "0"}, pg_group_ranks={"group": {0: 0, 1: 1}})
    monkeypatch.setitem(sys.modules, "torch._C._distributed_c10d", SimpleNamespace(**recorders))
    monkeypatch.setitem(sys.modules, "torch.distributed.distributed_c10d", SimpleNamespace(_world=world))
    monkeypatch.setattr(plugin, "ranks", lambda: [0, 2])
    return tuple({**each, "still": True} for each in plugin.collectives())


def test_waits_for_nccl_are_in_a_recorder_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host enqueues operations ahead of the GPU: the first that has not ended is the one it waits for."""
    ended, waited = entry("nccl:all_reduce", 6, state="completed"), entry("nccl:all_reduce", 7)
    gloo, nccl = answer(monkeypatch, entry("nccl:broadcast", 5), ended, waited, entry("nccl:_all_gather_base", 8))
    assert gloo["operation"] == "gloo:all_gather" and gloo["state"] == "completed"
    assert nccl["sequence"] == 7 and nccl["operation"] == "nccl:all_reduce" and nccl["ranks"] == [0, 1]
    assert answer(monkeypatch, waited, entry("nccl:all_reduce", 8, retired=True))[1]["state"] == "completed"


def test_a_rank_asleep_is_named_although_the_other_waits_at_full_speed() -> None:
    """Recorded on two H100. In the campaign before it got no reason: the plugin asked gloo's recorder alone."""
    assert reason(SPINNING, busy=True) is None
    facts = HangFacts.from_json(json.loads((DATA / "stalls/gpu_rank.json").read_text())["facts"])
    found = judge(facts, busy=True)
    assert found is not None and found.reason == "collective-missing" and found.words["rank"] == 1
    assert "pid 19615" in found.evidence[0] and "asleep.py:21" in found.evidence[0]
    assert "nccl:all_reduce no. 3603" in found.evidence[1]
    waits, asleep = (next(each for each in facts.processes if each.ranks == (rank, 2)) for rank in (0, 1))
    engine = [each for each in facts.processes if each.name == "VLLM::Worker"]
    tensor_parallel = [replace(each, ranks=(rank, 2)) for rank, each in enumerate(engine)]
    assert reason(waits, asleep, *tensor_parallel, busy=True) == "collective-missing"
    assert reason(waits, replace(asleep, cpu=0.9), busy=True) is None, "it computes and will come"
    apart = tuple({**each, "ranks": [0]} for each in waits.collectives)
    assert reason(replace(waits, collectives=apart), asleep, busy=True) is None, "it is not of that group"


def test_ranks_that_all_wait_at_full_speed_stand_still_after_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = replace(SPINNING, collectives=answer(monkeypatch, entry("nccl:all_reduce", 40)))
    both = HangFacts(0.0, processes=(waits, replace(waits, pid=2, ranks=(1, 2))))
    assert not standing(both, None) and standing(both, both)
    assert reason(*both.processes, busy=True) is None and reason(*both.processes) == "collective"
    later = replace(waits, collectives=answer(monkeypatch, entry("nccl:all_reduce", 41)))
    assert not standing(replace(both, processes=(later, both.processes[1])), both), "it came one further"
    working = replace(both, processes=(*both.processes, seen(3, "/home/me/reward.py:3 score", cpu=0.4)))
    assert not standing(working, working) and not standing(HangFacts(0.0), HangFacts(0.0))
    pair = [
        replace(each, collectives=answer(monkeypatch, entry(name, 1)))
        for each, name in zip(both.processes, ("nccl:send 0->1", "nccl:recv 1<-0"), strict=True)
    ]
    assert reason(*pair) == "collective", "one sends what the other receives"


def test_the_work_of_other_runs_on_the_same_gpus_is_not_the_runs() -> None:
    """From two H100: others used GPU 0 all the time while a reward function and later a rank were asleep."""
    lines = (DATA / "stalls/gpu_shared.jsonl").read_text().splitlines()
    shared = [gpu for line in lines for gpu in MachineSample.from_json(json.loads(line)).gpus if (gpu.util or 0) > 10]
    assert len(shared) == 26 and not any(gpu.only_of_run for gpu in shared)
    assert replace(shared[0], used=shared[0].run_used).only_of_run and not GpuSample(0, used=1, util=99).only_of_run


def test_a_driver_that_waits_for_a_worker_is_not_where_the_run_hangs() -> None:
    """A weight sync blocked in the engine's worker, and the answer was a line of Hydra in the driver."""
    got = f"{SITE}/ray/_private/worker.py:2967 get"
    driver = seen(1, got, "/srv/env/hydra/main.py:94 decorated_main", "/srv/start.py:3 main")
    found = judge(HangFacts(0.0, processes=(driver, seen(2, "/home/me/faults.py:84 await_bucket"))))
    assert (
        found is not None
        and found.reason == "user-code"
        and found.words["place"] == "/home/me/faults.py:84 await_bucket"
    )


def test_tools_and_engines_are_found_in_coroutines() -> None:
    loop = f"{SITE}/verl/experimental/agent_loop/tool_agent_loop.py:310 _call_tool"
    assert reason(Seen(1, "ray::AgentLoopWorker", tasks=(("/home/me/search.py:40 execute", loop),))) == "tool"
    asked = f"{SITE}/verl/workers/rollout/llm_server.py:120 generate"
    assert reason(Seen(1, "ray::AgentLoopWorker", tasks=((asked,),))) == "engine"


def test_an_actor_whose_resources_are_there_does_not_start() -> None:
    actor = {"name": "Server", "state": "PENDING_CREATION", "pid": 0, "needs": {"CPU": 1.0}}
    free = RayView(actors=(actor,), total={"CPU": 4.0}, free={"CPU": 2.0})
    assert reason(ray=free) == "ray-actor-pending"
    assert reason(ray=replace(free, free={"CPU": 0.0})) == "ray-cpus"
    ended = {"name": "Probe", "state": "DEAD", "cause": "killed by `ray.kill` reason: RAY_KILL"}
    assert reason(ray=RayView(actors=(ended,))) == "unknown", "its end was asked for"


def test_own_code_of_the_driver_is_named_last() -> None:
    assert reason(seen(1, "/home/me/train.py:7 wait_for_disk")) == "user-code"
    assert reason(seen(1, f"{SITE}/verl/trainer/ppo/v1/replay_buffer.py:409 sample")) == "unknown"


STEP = Stage("rollout", since=100.0, usual=30.0, longest=40.0)


def test_a_run_stands_still_after_twice_the_usual_time_when_it_is_quiet() -> None:
    patience = Patience(100.0)
    patience.note(149.0, busy=True, printed=None, stage=STEP)
    assert not patience.stands(158.0, STEP), "10 s of silence, but the step may take 60"
    patience.note(158.0, busy=False, printed=None, stage=STEP)
    assert patience.stands(160.0, STEP)
    patience.note(160.0, busy=True, printed=None, stage=STEP)
    assert not patience.stands(169.0, STEP), "it worked at 160"
    assert not Patience(100.0).stands(119.0, replace(STEP, usual=2.0, longest=2.0)), "20 s at least"
    assert Patience(100.0).stands(120.0, replace(STEP, usual=2.0, longest=2.0))


def test_a_stage_that_was_never_passed_may_be_quiet_for_two_minutes() -> None:
    fresh = Stage("engine", since=100.0)
    patience = Patience(100.0)
    assert not patience.stands(219.0, fresh) and patience.stands(220.0, fresh)
    patience.note(250.0, busy=True, printed=None, stage=fresh)  # it was slow, and worked again
    assert not patience.stands(250.0 + 290.0, fresh) and patience.stands(250.0 + 301.0, fresh)


def test_a_busy_run_without_progress_is_looked_at_and_more_rarely_later() -> None:
    patience, looks = Patience(100.0), []
    for now in range(100, 1300, 2):
        patience.note(now, busy=True, printed=None, stage=STEP)
        if patience.worth_a_look(now, STEP):
            looks.append(now - 100)
    assert looks == [60, 120, 240, 480, 960]
    short = Stage("rollout", since=100.0, usual=9.0, longest=10.0)
    assert not Patience(100.0).worth_a_look(119.0, short) and Patience(100.0).worth_a_look(120.0, short)


def test_a_standstill_does_not_make_the_next_one_wait_longer() -> None:
    """Two H100, 2026-11-25: the reward function slept two steps after a rank had, and was named after 54 s."""
    monitor = Monitor(Sink(), lambda keys: Checklist(keys), {}, file_logger=False)
    for step, t in enumerate((100.0, 108.1, 116.6, 125.7, 167.4, 176.5), 1):
        monitor.stood_still = 150.5 if t > 150.5 else 0.0  # the rank was named
        monitor.feed_records([StepRecord(step, t, 0, {})], t)
        monitor.collect(t)
    assert monitor.step == 6 and monitor.step_seconds == pytest.approx(8.8)
    since, *usual = monitor.stage
    stage = Stage("rollout", since or 0.0, *usual)
    patience = Patience(100.0)
    patience.note(168.0, busy=True, printed=None, stage=replace(stage, since=167.4), stood=True)
    patience.note(181.5, busy=True, printed=None, stage=stage)  # then the reward function slept
    due = next(now for now in range(182, 300) if patience.stands(now, stage))
    assert due == 197, "the 41.7 s of the rank would be due at 227"


def test_a_wait_that_ended_before_is_named_again_only_when_it_lasts_longer() -> None:
    """A judge that takes 30 s now and then is named once."""
    patience = Patience(100.0)
    assert not patience.too_soon(121.0, "reward", 100.0)
    patience.ended("reward", 30.0)
    later = replace(STEP, since=200.0, usual=9.0, longest=10.0)
    patience.note(200.0, busy=False, printed=None, stage=later)
    assert patience.stands(221.0, later) and patience.too_soon(221.0, "reward", 200.0)
    assert not patience.stands(235.0, later) and not patience.worth_a_look(235.0, later)
    assert patience.stands(237.0, later) and not patience.too_soon(237.0, "reward", 200.0)
    assert not patience.too_soon(221.0, "A process was stopped: VLLM::Worker (pid 14080)", 200.0), "another title"
    patience.ended("reward", 3600.0)
    assert not patience.too_soon(320.0, "reward", 200.0), "two minutes at most"


def test_healthy_steps_of_33_attempts_on_gpus_end_in_time_even_if_nothing_was_seen_of_them(tmp_path: Path) -> None:
    """One of them takes 31 s after steps of 10: only its activity shows that it is healthy."""
    with tarfile.open(DATA / "gpu/runs.tar.xz") as archive:
        members = [member for member in archive.getmembers() if member.name.endswith("/steps.jsonl")]
        archive.extractall(tmp_path, members, filter="data")
    judged = late = 0
    for file in tmp_path.glob("runs/*/attempts/*/steps.jsonl"):
        times = [json.loads(line)["t"] for line in file.read_text().splitlines()]
        gaps = [after - before for before, after in pairwise(times)]
        for index, gap in enumerate(gaps[1:], 1):
            known = gaps[max(0, index - 20) : index]
            stage = Stage("rollout", 0.0, statistics.median(known), max(known))
            judged, late = judged + 1, late + (gap > (stage.patience or 0.0))
    assert (judged, late) == (515, 1)


def test_the_same_counts_again_are_no_news() -> None:
    news = News()
    news.note(b"11-25 15:10:01 replay buffer: pending 3, running 2\n", 1.0)
    news.note(b"11-25 15:10:06 replay buffer: pending 3, running 2\n", 6.0)
    news.note(b"\x1b[33m(autoscaler +28s)\x1b[0m Error: no node\n", 7.0)
    news.note(b"\x1b[33m(autoscaler +1m3s)\x1b[0m Error: no node\n", 9.0)
    assert news.at == 7.0
    counts = b"(SimpleStorageUnit pid=1) Per-operation statistics: PUT_DATA: req_count=183, req/min=22.79"
    news.note(b"(SimpleStorageUnit pid=1) Time range: last 8.03 minutes; \n" + counts, 10.0)
    assert news.at == 7.0, "TransferQueue prints its statistics by the clock"
    news.note(b"11-25 15:10:11 replay buffer: pending 2, running 2\n", 11.0)
    assert news.at == 11.0


def test_a_job_that_is_silent_at_its_start_has_the_likely_cause(tmp_path: Path) -> None:
    """Its processes are on other machines."""
    monitor = Monitor(Sink(), lambda keys: Checklist(keys), {}, file_logger=False)
    run = RunDir(tmp_path)
    watch = StallWatch(run, run.attempt(1), LaunchRecord(), monitor, News(), FailureLog(run, 1, print).guard)
    monitor.feed_console(TOY[: TOY.index(b"dataset len")], 100.0)
    assert watch.silence(130.0) is None
    assert "CPUs" in (watch.silence(100.0 + 3600) or "")


def test_the_report_has_the_last_line_of_each_process_and_no_secret(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    console.write_text(
        "\x1b[36m(WorkerDict pid=11)\x1b[0m loading\n(WorkerDict pid=11) in all_reduce\n"
        f"(WorkerDict pid=12) WANDB_API_KEY={SECRET}\nstep:1\n"
    )
    facts = HangFacts(0.0, "rollout", (seen(7, WAIT, ranks=(0, 2)),), missing=("sudo dmesg",))
    text = report(facts, console, tmp_path / "gpu.jsonl", None)
    lines = text.splitlines()
    assert "WorkerDict pid=11: in all_reduce" in lines and "driver: step:1" in lines
    assert any(line.startswith("7 S") and "rank 0 of 2" in line for line in lines) and f"        {WAIT}" in lines
    assert SECRET not in text and "\x1b" not in text and "sudo dmesg" in text


def test_status_and_diagnose_say_why(home: Path) -> None:
    run = RunDir(home / "runs/abc123-x")
    assert last_standstill(run) is None
    run.attempt(1).path.mkdir(parents=True)
    RunInfo(run.id, "x", 1.0).write(run.run_yaml)
    found = Standstill("reward", "The reward function does not return", 10.0, 40.0, "rollout", evidence=("judge.py:3",))
    found.write(run.attempt(1).standstill)
    run.attempt(1).stall.write_text("Collected\nall stacks\n")
    run.attempt(1).console.write_text("step:1 - critic/score/mean:0.5\n")
    me = ProcessId.of(os.getpid())
    state = RunState("running", attempt=1, supervisor=me, driver=me, stalled=True, stall=found.title, standstill=found)
    state.write(run.state)

    def shown(*words: str) -> str:
        return call(words)[0].decode()

    status = shown("status", "abc123")
    assert f"hang reward: {found.title}: no progress for 30s\n" in status
    assert "seen: judge.py:3" in status and "fix: add a timeout to its calls" in status
    assert json.loads(shown("status", "abc123", "--json"))["standstill"]["evidence"] == ["judge.py:3"]
    first, *rest = shown("diagnose", "abc123").splitlines()
    assert f"{first}\n" in status
    assert rest[0].startswith("  A response waits") and "all stacks" not in "\n".join(rest)
    assert json.loads(shown("diagnose", "abc123", "--json"))["standstill"]["reason"] == "reward"
    replace(found, until=50.0).write(run.attempt(1).standstill)
    assert found.title not in shown("diagnose", "abc123"), "it moved again"

"""Of several errors the earliest that explains the later ones is the cause, over ranks and processes."""

import gzip
from pathlib import Path

import pytest
from console_logs import DATA, FAILED_PROMPT, JOB, TASK, diagnosis_of, events_of, only, stored

from launcher.console.diagnose import errors_so_far
from launcher.console.reader import Progress, StepLine
from launcher.core.tail import chunks
from launcher.runs.watch.log import Log, resolve

STEP = TASK + "step:{} - actor/entropy:0.4\n"
FRAME = '  File "/v/lib/python3.12/site-packages/verl/workers/engine_workers.py", line 9, in {}\n'
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
TRACE = "Traceback (most recent call last):\n"
NCCL = "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.\n"
WATCHDOG = "[E1121 09:30:28.111 ProcessGroupNCCL.cpp:685] [Rank 0] Watchdog caught collective operation timeout: Work\n"
ASSERT = "/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:112: _assert_async_cuda_kernel: block: [0,0,0], thread: "
ASSERT += "[0,0,0] Assertion `probability tensor contains either `inf`, `nan` or element < 0` failed.\n"
SLURM = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T10:00:12 DUE TO TIME LIMIT ***\n"


def of(writer: str, text: str) -> str:
    return "".join(f"{writer}{line}\n" for line in text.splitlines())


def worker(text: str, pid: int = 4711) -> str:
    return of(f"\x1b[36m(WorkerDict pid={pid})\x1b[0m ", text)


def test_memory_of_one_rank_before_the_watchdog_of_another() -> None:
    died = worker(TRACE + FRAME.format("update_actor") + OOM, 12)
    text = STEP.format(1) + died + worker(WATCHDOG, 11) + JOB + "ray.exceptions.RayTaskError: ray::WorkerDict.x() (p\n"
    found = diagnosis_of(text + NCCL, exit_code=1)
    assert (found.cause, found.evidence[0].line) == ("gpu-oom-update", 4)
    assert "Consequences: Communication between GPUs failed (NCCL) (line 5)." in found.meaning
    assert found.evidence[-1].text.startswith("torch.distributed.DistBackendError")
    assert diagnosis_of(STEP.format(1) + died + worker(WATCHDOG, 11)).cause == "gpu-oom-update"  # and nothing more
    assert diagnosis_of(died + STEP.format(1) + worker(WATCHDOG, 11) + JOB + NCCL, exit_code=1).cause == "nccl"
    alone = STEP.format(1) + worker(OOM, 12) + worker(WATCHDOG, 11) + JOB + NCCL  # Ray left the traceback out
    assert diagnosis_of(alone, exit_code=1).cause == "gpu-oom"
    assert diagnosis_of(FAILED_PROMPT + STEP.format(1) + JOB + NCCL, exit_code=1).cause == "nccl"


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[default{}]:", "[1,{}]<stderr>:", "[prterun-n-7@1,{}]<stderr>: "])
def test_the_rank_that_failed_first(prefix: str) -> None:
    first = of(prefix.format(1), TRACE + FRAME.format("update_actor") + OOM)
    later = of(prefix.format(0), TRACE + FRAME.format("update_actor") + NCCL)
    lines = [line for pair in zip(first.splitlines(), later.splitlines(), strict=True) for line in pair]
    for text in (first + later, "\n".join(lines) + "\n"):
        found = diagnosis_of(text, exit_code=1)
        assert found.cause == "gpu-oom-update"
        assert found.evidence[0].text == f"[rank1]: {OOM.strip()}"


def test_what_a_kernel_asserts_comes_before_the_error_of_the_gpu() -> None:
    later = JOB + FRAME.format("generate") + "torch.AcceleratorError: CUDA error: device-side assert triggered\n"
    found = diagnosis_of(STEP.format(1) + worker(ASSERT) + later, exit_code=1)
    assert (found.cause, found.evidence[0].line) == ("nan", 2)
    assert diagnosis_of(STEP.format(1) + later, exit_code=1).cause == "cuda-assert"
    crash = "terminate called after throwing an instance of 'c10::Error'\n"
    assert diagnosis_of(STEP.format(1) + ASSERT + crash, exit_code=134).cause == "nan"


def test_a_batch_system_that_ends_the_run_says_more_than_its_signal() -> None:
    killed = "*** SIGTERM received at time=1795253243 on cpu 3 ***\n"
    for text in (STEP.format(3) + SLURM, STEP.format(3) + killed + SLURM, STEP.format(3) + SLURM + killed):
        for code in (None, 143):
            found = diagnosis_of(text, exit_code=code)
            assert found.cause == "job-time-limit" and "resume" in found.fixes[0].text
    assert diagnosis_of(STEP.format(3) + killed, exit_code=143).cause == "stopped"
    assert diagnosis_of(worker(SLURM) + STEP.format(3)).cause == "running"


def test_a_placement_that_is_never_met() -> None:
    wait = (
        "\x1b[33m(autoscaler +1m2s)\x1b[0m Error: No available node types can fulfill resource request {'GPU': 1.0}.\n"
    )
    start = TASK + "create worker group x\n" + wait
    found = diagnosis_of(start)
    assert found.cause == "ray-placement" and "{'GPU': 1.0}" in found.title
    assert diagnosis_of(start, alive=True, stalled_for=600).cause == "ray-placement"
    assert diagnosis_of(start, alive=True, stalled_for=5).cause == "running"
    assert diagnosis_of(start + STEP.format(1)).cause == "running"
    kind = start.replace("{'GPU': 1.0}", "{'CPU': 1.0, 'accelerator_type:H100': 0.001}")
    assert diagnosis_of(kind).cause == "ray-placement"


def test_a_message_of_several_lines_is_shown() -> None:
    said = "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
    said += "  Value error, the moon is full. [type=value_error, input_value=1, input_type=int]\n"
    said += "    For further information visit https://errors.pydantic.dev/2.11/v/value_error\n"
    found = diagnosis_of(JOB + FRAME.format("launch") + said, exit_code=1)
    assert found.cause == "unknown" and "the moon is full" in found.title
    assert found.evidence[1].text.startswith("Value error, the moon")
    strange = diagnosis_of(JOB + "ValueError: never seen\nwandb: No module named 'vllm' here\n\n", exit_code=1)
    assert "never seen" in strange.evidence[0].text


RESUMED = TASK + "Setting global step to {}\n" + TASK + "Total training steps: 8\n"


def test_a_resumed_run_without_a_step() -> None:
    for text, code, title in (
        (RESUMED.format(8), None, "Already complete"),
        (RESUMED.format(8), 0, "Already complete"),
        (RESUMED.format(6), 0, "Finished without training: resumed at step 6 of 8"),
    ):
        found = diagnosis_of(text, exit_code=code)
        assert (found.cause, found.title) == ("finished", title)
    assert diagnosis_of(RESUMED.format(6)).cause == "running"


def test_a_run_that_only_validates_is_complete_after_one_validation() -> None:
    config = TASK + "{'actor_rollout_ref': {'x': 1}, 'trainer': {'val_only': True}}\n" + TASK + "dataset len: 9\n"
    validated = TASK + "(\"Initial validation metrics: {'val-core/x/acc/mean@1': 0.3}\")\n"
    assert diagnosis_of(config).cause == "running"
    for text in (config + validated, config + validated + STEP.format(0)):
        found = diagnosis_of(text)
        assert (found.cause, found.title) == ("finished", "Finished: validated only")
    assert diagnosis_of(validated + STEP.format(0)).cause == "running"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_of_a_log(tmp_path: Path, encoding: str, packed: bool) -> None:
    text = "step:1 - a/b:1.5 - c/d:2\nstep:2 - a/b:1.5 - c/é:3\n".encode(encoding)
    path = tmp_path / "train.log"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert isinstance(resolve(str(path)), Log)
    steps = only(StepLine, events_of(b"".join(chunks(path))))
    assert [(step.step, step.line, step.data) for step in steps] == [
        (1, 1, {"a/b": 1.5, "c/d": 2.0}),
        (2, 2, {"a/b": 1.5, "c/é": 3.0}),
    ]


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "[n7@1,3]<stdout>: ", "[rank0]:", "[default0]:[rank0]: "])
@pytest.mark.parametrize("ray", ["", TASK])
def test_steps_behind_a_rank(prefix: str, ray: str) -> None:
    bar = "Training Progress:  50%|#####     | 1/2 [00:01<00:01,  1.2s/it]"
    text = f"{prefix}{ray}step:1 - a/b:1.5 - c/d:2.25{bar}\n{prefix}{ray}{bar}\n"
    events = events_of(text)
    assert [step.data for step in only(StepLine, events)] == [{"a/b": 1.5, "c/d": 2.25}]
    assert only(Progress, events) == [Progress(1, 2)]


HEALTHY = [path.name[:-7] for path in sorted((DATA / "logs").glob("*.log.gz")) if not path.name.startswith("fail")]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_has_no_cause(name: str) -> None:
    """Neither at its end nor while it grows."""
    data = stored(name)
    assert diagnosis_of(data).cause in ("finished", "stopped")
    data = data.partition(b"*** SIGTERM")[0]
    half = data[: data.rfind(b"\n", 0, len(data) // 2) + 1]
    assert errors_so_far([data]) is None and errors_so_far([half]) is None
    assert diagnosis_of(half).cause in ("finished", "running")

"""Ends that are no failure: runs that finished, were stopped, still run or stand still; and what follows a failure."""

import gzip
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from console_logs import DATA, FAILED_PROMPT, JOB, PROMPTS, TASK, diagnosis_of, stored

import launcher
from launcher.console.evidence import Evidence


def until(data: bytes, fragment: str) -> bytes:
    """The log up to and including the first line with `fragment`."""
    end = data.index(b"\n", data.index(fragment.encode()))
    return data[: end + 1]


@pytest.mark.parametrize("name", ["learning", "resume", "two-gpus", "grpo", "kl-blowup", "nan"])
@pytest.mark.parametrize("exit_code", [134, -6, None])
def test_a_stopped_run_is_no_failure(name: str, exit_code: int | None) -> None:
    found = diagnosis_of(stored(name), exit_code=exit_code, requested_by="user" if exit_code else None)
    assert found.cause == "stopped"
    assert found.evidence[0].text.startswith("*** SIGTERM received at time=")
    assert "ppo-tui resume" in found.fixes[-1].text
    assert found.exit_code == (None if exit_code is None else 134)


def test_a_run_that_had_only_validated_was_stopped_before_its_first_step() -> None:
    stopped = TASK + "step:0 - val-core/a/acc/mean@1:0.1\n*** SIGTERM received at time=1 on cpu 4 ***\n"
    assert diagnosis_of(stopped).meaning == "The run was stopped before its first step."
    assert diagnosis_of(stopped.replace("step:0", "step:1")).meaning == "The run was stopped after step 1."


def test_stopped_says_what_to_resume_from_and_warns_of_nan() -> None:
    assert "global_step_20" in diagnosis_of(stored("learning")).fixes[-1].text
    poisoned = diagnosis_of(stored("nan"))
    assert poisoned.evidence[1].text == "WARN: grad_norm is not finite: nan"
    assert "before the first NaN" in poisoned.fixes[0].text


@pytest.mark.parametrize("exit_code", [0, None])
def test_finished(exit_code: int | None) -> None:
    found = diagnosis_of(stored("cpu-toy"), exit_code=exit_code)
    assert (found.cause, found.title) == ("finished", "Finished")
    assert found.evidence[0].text == "Final validation metrics"
    assert found.to_json() == {
        "cause": "finished",
        "title": "Finished",
        "meaning": found.meaning,
        "evidence": [{"line": 1262, "text": found.evidence[0].text}],
        "fixes": [],
        "fix_records": [],
        "exit_code": exit_code,
        "confidence": "exact",
        "place": None,
        "senders": {},
    }


def test_a_killed_run() -> None:
    data = until(stored("cpu-toy"), "step:30 - ")
    for code in (-9, 137):
        found = diagnosis_of(data, exit_code=code)
        assert (found.cause, found.exit_code) == ("killed", 137)
        assert found.evidence
    assert diagnosis_of(data, exit_code=137, requested_by="user").cause == "stopped"
    assert diagnosis_of(data, exit_code=-15).cause == "stopped"
    hangup = diagnosis_of(data, exit_code=129)
    assert (hangup.cause, hangup.title) == ("killed-by-signal", "Run ended by SIGHUP")


def test_a_run_that_stands_still_after_its_engine_refused_weights() -> None:
    """LoRA on one H200: the worker's error, and then nothing until the run was stopped."""
    data = stored("real-lora-hang")
    for alive, idle in ((None, None), (True, 120.0)):
        found = diagnosis_of(data, alive=alive, stalled_for=idle)
        assert (found.cause, found.evidence[0].text[-13:]) == ("lora-without-weights", "StopIteration")
        assert "strategy=fsdp2" in found.fixes[0].text
    assert diagnosis_of(data, alive=True, stalled_for=10.0).cause == "running"
    stopped = diagnosis_of(data, exit_code=134, requested_by="user")
    assert stopped.cause == "stopped" and "without weights" in stopped.meaning
    assert "strategy=fsdp2" in stopped.fixes[0].text


def test_an_engine_that_recovers_does_not_hang_the_run() -> None:
    data = stored("real-lora-hang") + b"(TaskRunnerV1 pid=18657) step:1 - actor/entropy:0.4\n"
    assert diagnosis_of(data, alive=None).cause == "running"


def test_a_log_without_an_end() -> None:
    data = until(stored("cpu-toy"), "step:30 - ")
    assert diagnosis_of(data, alive=True).cause == "running"
    assert diagnosis_of(data).cause == "running"
    assert diagnosis_of(data).evidence[0].text.startswith("step:30 - ")
    ended = diagnosis_of(b"", exit_code=1)
    assert (ended.cause, ended.title) == ("unknown", "Run ended without an error message")
    assert diagnosis_of(b"").cause == "running"


def test_a_run_that_vanished_with_its_supervisor() -> None:
    """The machine restarted. Prompts that had failed before the last step have nothing to do with it."""
    raised = "(RewardLoopWorker pid=7) Traceback (most recent call last):\n(RewardLoopWorker pid=7) "
    early = (raised + "ray.exceptions.ActorDiedError: The actor died unexpectedly\n").encode()
    data = until(stored("cpu-toy"), "step:30 - ")
    for log in (data, early + data):
        found = diagnosis_of(log, alive=False)
        assert (found.cause, found.title) == ("unknown", "Run and supervisor ended without a message")
        assert "Training Progress:" in found.evidence[0].text
        assert found.fixes[0].text.startswith("continue with `ppo-tui resume RUN` from")
    died = data + b"The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR\n"
    assert diagnosis_of(died, alive=False).cause == "worker-died"
    assert diagnosis_of(died).cause == "running"


@pytest.mark.parametrize("last", ["worker group kwargs", "'metrics': {'enabled': False, 'port': 0}}}"])
def test_a_start_that_waits_for_cpus(last: str) -> None:
    data = until(stored("learning"), last)
    found = diagnosis_of(data)
    assert found.cause == "ray-cpus"
    assert last in found.evidence[0].text
    assert "num_data_storage_units=1" in found.fixes[0].text
    assert diagnosis_of(data, alive=True).cause == "running"
    assert diagnosis_of(data, alive=True, stalled_for=5).cause == "running"
    assert diagnosis_of(data, alive=True, stalled_for=300).cause == "ray-cpus"
    stopped = diagnosis_of(data, exit_code=143, requested_by="user")
    assert stopped.cause == "stopped"
    assert "takes minutes at this point again" in stopped.fixes[0].text and "ppo-tui resume" in stopped.fixes[-1].text
    assert last in stopped.evidence[-1].text


@pytest.mark.parametrize("name", ["real-hang-cpus4", "real-hang-cpus8"])
def test_a_real_start_that_waited_until_it_was_stopped(name: str) -> None:
    data = stored(name)
    stopped = diagnosis_of(data, exit_code=124)
    assert stopped.cause == "stopped"
    assert "num_data_storage_units=1" in stopped.fixes[0].text
    assert diagnosis_of(data[: data.index(b"*** SIGTERM")]).cause == "ray-cpus"


def test_a_start_that_goes_on_waits_for_nothing() -> None:
    broken = stored("real-no-environment")  # a line of the configuration that ends as its last one does
    assert diagnosis_of(until(broken, " 'engine_kwargs': {}\n")).cause == "running"
    for place in ("{'actor_rollout_ref'", "'val_only': False", "Using dataset class", "create worker group"):
        assert diagnosis_of(until(stored("learning"), place)).cause == "running", place


def test_dropped_prompts_are_counted_though_the_run_finished() -> None:
    again = PROMPTS + "ERROR:2026-11-21 09:31:55,586:Error in _run_prompt for uid=6 [repeated 41x across cluster]\n"
    found = diagnosis_of(FAILED_PROMPT + again + TASK + "step:2 - a:1\n", exit_code=0, steps_total=2)
    assert found.cause == "finished"
    assert "dropped 42 prompts" in found.meaning
    endless = diagnosis_of(FAILED_PROMPT + again, exit_code=143, requested_by="user")
    assert endless.cause == "stopped" and "42 prompts failed before" in endless.meaning


def test_a_run_that_ended_before_its_last_step() -> None:
    total = TASK + "INFO:2026-11-21 11:07:43,653:Total training steps: 10\n"
    bar = TASK + "\rTraining Progress:  40%|████      | 4/10 [00:27<00:41,  6.93s/it]\n"
    found = diagnosis_of(total + bar + TASK + "step:4 - a:1\n", exit_code=0)
    assert (found.cause, found.title) == ("finished", "Finished early at step 4 of 10: the last epoch ended")
    done = diagnosis_of(TASK + "Training Progress: 100%|██████████| 2/2 [00:00<?, ?it/s]\n", exit_code=0)
    assert (done.cause, done.title) == ("finished", "Already complete")


def test_a_run_that_resumed_and_did_no_step() -> None:
    resumed = TASK + "Total training steps: 120\n" + TASK + "Setting global step to 60\n"
    bar = TASK + "Training Progress:  50%|█████     | 60/120 [00:02<?, ?it/s]\n"
    closed = TASK + "wandb: Synced 5 W&B file(s), 0 media file(s), 0 artifact file(s) and 0 other file(s)\n"
    for found in (diagnosis_of(resumed + bar + closed), diagnosis_of(resumed + bar, exit_code=0)):
        assert found.title == "Finished without training: resumed at step 60 of 120" and "data.pt" in found.meaning
    assert "No step was printed after step 60" in diagnosis_of(resumed + bar).meaning
    # a tracker that closed ended with its run, whatever the reason
    assert diagnosis_of(TASK + "step:3 - a:1\n" + closed).cause == "unknown"
    assert diagnosis_of(closed + TASK + "step:3 - a:1\n").cause == "running"


def test_rewards_that_never_differ_are_said() -> None:
    step = TASK + "step:{} - actor/entropy:0.4 - critic/score/max:{} - critic/score/min:0.0\n"
    equal = "".join(step.format(number, "0.0") for number in (1, 2, 3))
    interrupted = "^CTraceback (most recent call last):\nKeyboardInterrupt\n"
    found = diagnosis_of(equal + interrupted)
    assert found.cause == "stopped" and "Every response got the reward 0" in found.meaning
    assert "check --reward" in found.fixes[0].text
    for log in (equal + step.format(4, "1.0"), step.format(1, "0.0")):
        assert "Every response" not in diagnosis_of(log + interrupted).meaning


def test_a_failure_before_the_stop_stays_the_cause_and_one_after_it_does_not() -> None:
    sigterm = "*** SIGTERM received at time=1795253243 on cpu 36 ***\n"
    missing = "FileNotFoundError: Unable to find '/data/x.parquet'\n"
    assert diagnosis_of(JOB + missing + sigterm, exit_code=134).cause == "parquet-missing"
    assert diagnosis_of(sigterm + JOB + missing, exit_code=134).cause == "stopped"
    # Ray ends its workers with SIGTERM whenever a run ends.
    worker = "\x1b[36m(WorkerDict pid=9)\x1b[0m " + sigterm
    assert diagnosis_of(worker + JOB + missing, exit_code=1).cause == "parquet-missing"
    died = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    assert diagnosis_of(JOB + died, exit_code=1, requested_by="user").cause == "stopped"
    assert diagnosis_of(JOB + died, exit_code=1).cause == "worker-died"


def test_the_last_lines_that_ray_job_repeats() -> None:
    failure = JOB + "FileNotFoundError: Unable to find '/data/x.parquet'\n"
    job = "Status message: Job entrypoint command failed with exit code 1, last available logs (truncated):\n"
    found = diagnosis_of(failure + job + failure, exit_code=1)
    assert (found.cause, found.evidence[0].line) == ("parquet-missing", 3)


def test_an_interrupt_from_the_keyboard_is_a_stop() -> None:
    trace = 'Traceback (most recent call last):\n  File "/a.py", line 1, in main\nKeyboardInterrupt\n'
    found = diagnosis_of(TASK + "step:3 - a:1\n" + trace, exit_code=1)
    assert (found.cause, found.evidence[0].text) == ("stopped", "KeyboardInterrupt")
    assert "after step 3" in found.meaning


def test_harmless_tracebacks() -> None:
    harmless = 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n'
    harmless += "ModuleNotFoundError: No module named 'vllm'\n"
    step = TASK + "step:1 - a:1\n"
    assert diagnosis_of(harmless + step).cause == "running"
    ignored = "Exception ignored in: <function Pool.__del__>\n" + harmless
    assert diagnosis_of(step + ignored, steps_total=1).cause == "finished"
    assert diagnosis_of(step + ignored, exit_code=0, steps_total=1).cause == "finished"
    worker = "".join("(WorkerDict pid=3) " + line + "\n" for line in harmless.splitlines())
    assert diagnosis_of(worker + step + JOB + "ValueError: never seen before\n", exit_code=1).cause == "unknown"


def test_a_log_to_which_a_second_attempt_was_appended() -> None:
    first = JOB + "ValueError: train_batch_size (64) must be >= actor.ppo_mini_batch_size (128)\n"
    launch = "ray init kwargs: {'num_cpus': None}\n"
    assert diagnosis_of(first + launch + TASK + "step:1 - a:1\n").cause == "running"
    second = diagnosis_of(first + launch + JOB + "FileNotFoundError: Unable to find '/data/x.parquet'\n")
    assert second.cause == "parquet-missing"


def test_a_log_that_was_cut_off_after_the_cause() -> None:
    raylet = "(raylet) 3 worker(s) were killed due to the node running low on memory. Refer to the documentation\n"
    assert diagnosis_of(TASK + "step:3 - a:1\n" + raylet).cause == "host-oom-ray"
    assert diagnosis_of(raylet + TASK + "step:3 - a:1\n").cause == "running"
    assert diagnosis_of(TASK + "step:3 - a:1\n" + raylet, alive=True).cause == "running"


def test_a_step_after_a_sample_without_an_end_counts() -> None:
    log = TASK + "[response] and so on\n" + TASK + "step:3 - actor/entropy:0.4\n"
    assert "after step 3" in diagnosis_of(log, exit_code=143, requested_by="user").meaning


def healthy_logs() -> Iterator[tuple[str, bytes]]:
    """All recorded logs of veRL that no error ended, with those of the demo and of version 0.1."""
    names = ("cpu-toy", "grpo", "kl-blowup", "learning", "nan", "resume", "sglang", "two-gpus")
    yield from ((name, stored(name)) for name in names)
    demo = Path(launcher.__path__[0]) / "demo"
    yield from ((path.name, gzip.decompress(path.read_bytes())) for path in sorted(demo.glob("*.log.gz")))
    with tarfile.open(DATA / "runs-0.1.tar.xz") as archive:
        for attempt in ("6ca840-toy-cpu/attempts/1", "6ca840-toy-cpu/attempts/2", "c40d5d-toy-cpu/attempts/1"):
            file = archive.extractfile(f"{attempt}/console.log")
            assert file is not None
            yield attempt, file.read()


@pytest.mark.slow
@pytest.mark.parametrize("log", [pytest.param(data, id=name) for name, data in healthy_logs()])
def test_no_line_of_a_healthy_run_is_an_error(log: bytes) -> None:
    """Cut at ten places, and ended in ways that are not in the log: nothing is quoted but how far it got."""
    lines = log.partition(b"*** SIGTERM")[0].splitlines(keepends=True)
    ends = ({"exit_code": 143, "requested_by": "user"}, {"exit_code": 1}, {"exit_code": 137}, {"alive": False}, {})
    for tenth in range(1, 11):
        cut = b"".join(lines[: len(lines) * tenth // 10])
        evidence = Evidence()
        evidence.read([cut])
        assert not [*evidence.facts.errors, *evidence.errors.values(), *evidence.final_errors, *evidence.unknown_errors]
        assert evidence.facts.named is None and evidence.facts.repeated is None
        marks = map(evidence.quote, ("step", "last", "progress", "final", "validated_first", "nan"))
        reached = {quote.line for quote in marks if quote is not None}
        waits = {evidence.quote("worker_groups"), evidence.quote("config_ends")}
        reached |= {quote.line for quote in waits if quote is not None}
        for end in ends:
            found = diagnosis_of(cut, **end)
            assert {quote.line for quote in found.evidence} <= reached, found
            assert "rror was printed" not in found.meaning and "find what prints" not in str(found.fixes)


@pytest.mark.parametrize(
    "line",
    [
        "Warning: Failed to set NUMA affinity: libnuma.so: cannot open shared object file",
        "/opt/lib/torch/cuda.py:61: FutureWarning: failed to load: ImportError: no such file",
        "WARNING 11-21 09:30:55 [cuda.py:77] Failed to import from vllm._C with ImportError: no such file",
        "WARNING:2026-11-21 09:30:55,586:Failed to read the prompt: KeyError: 'answer'",
        "[W1121 09:30:55.123 ProcessGroup.cpp:1] Warning: failed to join",
        "[2026-11-21 09:30:28,111 W 88 88] (raylet) agent.cc:3: Failed to start",
    ],
)
def test_a_warning_is_no_error_and_the_same_words_as_an_error_are_one(line: str) -> None:
    source = "(WorkerDict pid=7) "
    log = until(stored("cpu-toy"), "step:3 - ") + 3 * f"{source}{line}\n".encode()
    for text in (log, log.replace(source.encode(), b"")):
        stopped = diagnosis_of(text, exit_code=143, requested_by="user")
        assert "error was printed" not in stopped.meaning and len(stopped.fixes) == 1
        assert diagnosis_of(text).evidence[0].text.startswith("step:3")
    harm = log.replace(line.encode(), b"Failed to reach the verifier")
    assert "an error was printed 3" in diagnosis_of(harm, exit_code=143, requested_by="user").meaning

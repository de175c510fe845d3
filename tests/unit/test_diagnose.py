"""Why runs ended: real logs, the ways to end that are no failure, symptoms and their causes.

tests/data/failures/real-*: veRL 0.9.1 on the CPU with one setting broken; only folder names were replaced.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.console.causes import CATALOGUE
from launcher.console.causes.frames import Folders, Owner
from launcher.console.causes.scan import CACHED, KEPT, WRITERS, Scan
from launcher.console.diagnose import diagnose
from launcher.console.diagnosis import LONGEST, Diagnosis
from launcher.console.lines import Line, LineSplitter

DATA = Path(__file__).parents[1] / "data"


def lines_of(data: bytes) -> list[Line]:
    splitter = LineSplitter()
    return [*splitter.feed(data), *splitter.close()]


def stored(name: str) -> bytes:
    folder = "failures" if name.startswith("real-") else "logs"
    return gzip.decompress((DATA / folder / f"{name}.log.gz").read_bytes())


def read(data: bytes | str, **known: Any) -> Diagnosis:
    return diagnose(lines_of(data.encode() if isinstance(data, str) else data), **known)


def until(data: bytes, fragment: str) -> bytes:
    """The log up to and including the first line with `fragment`."""
    end = data.index(b"\n", data.index(fragment.encode()))
    return data[: end + 1]


FAILURES = [
    ("fail-no-flash-attn", "flash-attn-missing", 1064, "FlashAttention2 has been toggled on"),
    ("fail-kv-cache", "kv-cache", 1110, "0.18 GiB KV cache is needed"),
    ("fail-oom", "gpu-oom-update", 1364, "CUDA out of memory. Tried to allocate 2.00 MiB"),
    ("fail-oom-log-prob", "gpu-oom-log-prob", 1194, "CUDA out of memory. Tried to allocate 139.39 GiB"),
    ("fail-lora-critic", "lora-critic-adapter", 1085, "'Qwen2ForTokenClassification' object has no attribute"),
    ("fail-missing-parquet", "parquet-missing", 1028, "Unable to find '/data/nope.parquet'"),
    ("fail-missing-model", "model-missing", 1002, "LocalEntryNotFoundError"),
    ("fail-broken-reward", "reward-raises", 1217, "IndexError: list index out of range"),
    ("real-afunix", "socket-path", 25, "AF_UNIX path length"),
    ("real-bad-quote", "config-syntax", 2, "critic.model.path=~/models/x"),
    ("real-batch-abc", "config-value-type", 9, "not all arguments converted"),
    ("real-gpus", "too-few-gpus", 1064, "total desired GPUs 8"),
    ("real-hydra-key", "unknown-config-key", 2, "actor_rollout_ref.actor.ppo_minibatch_size"),
    ("real-logger", "logger-unknown", 1057, "tensorbord is not supported"),
    ("real-logprob-micro", "micro-batch-log-prob", 1182, "force_group_size * micro_batch_size_per_gpu"),
    ("real-micro-unset", "micro-batch-unset", 4, "critic.micro_batch_size"),
    ("real-mini-larger", "mini-batch-too-large", 12, "train_batch_size (64) must be >="),
    ("real-no-environment", "torch-without-cuda", 1169, "doesn't have NCCL built in"),
    ("real-no-plugin", "plugin-missing", 18, "Unknown platform 'cpu'"),
    ("real-no-plugin-path", "plugin-missing", 11, "No module named 'launcher'"),
    ("real-no-prompt", "data-columns", 1099, "KeyError: 'prompt'"),
    ("real-plus-key", "unknown-config-field", 4, "unexpected keyword argument 'foo'"),
    ("real-ray-address", "ray-address", 17, "When connecting to an existing cluster"),
    ("real-resume-missing", "resume-gpu-count", 1106, "global_step_9/actor/model_world_size_1_rank_0.pt"),
    ("real-reward-name", "reward-function-missing", 1039, "object_name='score_answer'"),
    ("real-reward-none", "reward-returns", 1067, "rm_scores"),
    ("real-batch-512", "data-smaller-than-batch", 1055, "integer division or modulo by zero"),
    ("real-critic-path", "critic-model-missing", 4, "~/models/deepseek-llm-7b-chat"),
    ("real-dyn-mismatch", "dynamic-batch-mismatch", 1060, "AssertionError"),
    ("real-kl-type", "unknown-kl-option", 1154, "NotImplementedError"),
    ("real-legacy-raise", "reward-raises", 1143, "integer modulo by zero"),
    ("real-no-template", "chat-template", 1221, "tokenizer.chat_template is not set"),
    ("real-save-proc", "checkpoint-not-writable", 1085, "/proc/ppo"),
    ("real-source", "unknown-data-source", 1087, "data_source=np.str_('my/sums')"),
]


@pytest.mark.parametrize(("name", "cause", "number", "text"), FAILURES)
@pytest.mark.parametrize("exit_code", [1, None])
def test_real_failures(name: str, cause: str, number: int, text: str, exit_code: int | None) -> None:
    data = stored(name)
    found = read(data, exit_code=exit_code)
    assert (found.cause, found.evidence[0].line) == (cause, number)
    assert text in found.evidence[0].text
    assert text.encode() in data.split(b"\n")[number - 1]


def test_evidence_names_the_users_code_and_the_symptom() -> None:
    found = read(stored("fail-broken-reward"), exit_code=1)
    assert [item.line for item in found.evidence] == [1217, 1214, 1366]
    assert found.evidence[1].text == 'File "/data/reward.py", line 15, in broken'
    assert [item.line for item in read(stored("fail-no-flash-attn")).evidence] == [1064, 1098]
    oom = read(stored("fail-oom"))
    assert "in logprobs_from_logits_v2" in oom.evidence[1].text
    assert "actor_rollout_ref_update_actor()" in oom.evidence[2].text


def test_evidence_of_the_engine_begins_with_its_words() -> None:
    """vLLM's date and place come off, so that what it advises is not cut."""
    text = read(stored("fail-kv-cache"), exit_code=1).evidence[0].text
    assert text.startswith("ValueError: To serve") and "decreasing `max_model_len` when" in text


@pytest.mark.parametrize(
    ("name", "line", "place"),
    [
        ("fail-oom-log-prob", 1188, 'verl/utils/torch_functional.py", line 243, in entropy_from_logits'),
        ("fail-lora-critic", 1071, 'fsdp/transformer_impl.py", line 368, in _build_lora_module'),
        # caught and raised again: the first exception's traceback has no line of veRL
        ("real-save-proc", 1123, 'verl/utils/fs.py", line 303, in local_mkdir_safe'),
        ("real-lora-hang", 23, 'vllm_rollout/utils.py", line 384, in _update_weights'),
    ],
)
def test_evidence_names_where_in_verl_it_was_raised(name: str, line: int, place: str) -> None:
    """Also where the packages lie in a folder of any name (`/opt/kit/site`)."""
    found = read(stored(name)).evidence[1]
    assert found.line == line and found.text.endswith(place)


def test_memory_that_others_hold_is_named_by_the_process_and_lowering_its_share_is_no_fix() -> None:
    found = read(stored("fail-oom-log-prob"), exit_code=1)
    assert found.meaning.endswith("Beside it on the GPU: Worker (pid 15922) 914.00 MiB.")
    assert "rollout.log_prob_micro_batch_size_per_gpu ↓" in found.fixes[0]
    assert not any("gpu_memory_utilization" in fix or ".ref." in fix for fix in found.fixes)
    strange = JOB + "torch.OutOfMemoryError: CUDA out of memory. Process 77 has 60.00 GiB memory in use.\n"
    assert "not a process of this log (pid 77) 60.00 GiB" in read(strange).meaning


@pytest.mark.parametrize("name", ["learning", "resume", "two-gpus", "grpo", "kl-blowup", "nan"])
@pytest.mark.parametrize("exit_code", [134, -6, None])
def test_a_stopped_run_is_no_failure(name: str, exit_code: int | None) -> None:
    found = read(stored(name), exit_code=exit_code, requested_by="user" if exit_code else None)
    assert found.cause == "stopped"
    assert found.evidence[0].text.startswith("*** SIGTERM received at time=")
    assert "ppo-tui resume" in found.fixes[-1]
    assert found.exit_code == (None if exit_code is None else 134)


def test_a_run_that_had_only_validated_was_stopped_before_its_first_step() -> None:
    stopped = TASK + "step:0 - val-core/a/acc/mean@1:0.1\n*** SIGTERM received at time=1 on cpu 4 ***\n"
    assert read(stopped).meaning == "It was asked to end before its first step."
    assert read(stopped.replace("step:0", "step:1")).meaning == "It was asked to end after step 1."


def test_stopped_says_what_to_resume_from_and_warns_of_nan() -> None:
    assert "global_step_20" in read(stored("learning")).fixes[-1]
    poisoned = read(stored("nan"))
    assert poisoned.evidence[1].text == "WARN: grad_norm is not finite: nan"
    assert "before the first nan" in poisoned.fixes[0]


@pytest.mark.parametrize("exit_code", [0, None])
def test_finished(exit_code: int | None) -> None:
    found = read(stored("cpu-toy"), exit_code=exit_code)
    assert (found.cause, found.title) == ("finished", "Finished")
    assert "Final validation metrics" in found.evidence[0].text
    assert found.to_json() == {
        "cause": "finished",
        "title": "Finished",
        "meaning": found.meaning,
        "evidence": [{"line": 1262, "text": found.evidence[0].text}],
        "fixes": [],
        "exit_code": exit_code,
    }


def test_a_killed_run() -> None:
    data = until(stored("cpu-toy"), "step:30 - ")
    for code in (-9, 137):
        found = read(data, exit_code=code)
        assert (found.cause, found.exit_code) == ("host-oom-killed", 137)
        assert found.evidence
    assert read(data, exit_code=137, requested_by="user").cause == "stopped"
    assert read(data, exit_code=-15).cause == "stopped"
    hangup = read(data, exit_code=129)
    assert (hangup.cause, hangup.title) == ("killed-by-signal", "The run was ended by SIGHUP")


def test_a_run_that_stands_still_after_its_engine_refused_weights() -> None:
    """LoRA on one H200: the worker's error, and then nothing until the run was stopped."""
    data = stored("real-lora-hang")
    for alive, idle in ((None, None), (True, 120.0)):
        found = read(data, alive=alive, stalled_for=idle)
        assert (found.cause, found.evidence[0].text[-13:]) == ("lora-without-weights", "StopIteration")
        assert "strategy=fsdp2" in found.fixes[0]
    assert read(data, alive=True, stalled_for=10.0).cause == "running"
    stopped = read(data, exit_code=134, requested_by="user")
    assert stopped.cause == "stopped" and "without weights" in stopped.meaning
    assert "strategy=fsdp2" in stopped.fixes[0]


def test_an_engine_that_recovers_does_not_hang_the_run() -> None:
    data = stored("real-lora-hang") + b"(TaskRunnerV1 pid=18657) step:1 - actor/entropy:0.4\n"
    assert read(data, alive=None).cause == "running"


def test_a_log_without_an_end() -> None:
    data = until(stored("cpu-toy"), "step:30 - ")
    assert read(data, alive=True).cause == "running"
    assert read(data).cause == "running"
    assert read(data).evidence[0].text.startswith("step:30 - ")
    ended = read(b"", exit_code=1)
    assert (ended.cause, ended.title) == ("unknown", "The run ended without saying why")
    assert read(b"").cause == "running"


def test_a_run_that_vanished_with_its_supervisor() -> None:
    """The machine restarted. Prompts that had failed before the last step have nothing to do with it."""
    raised = "(RewardLoopWorker pid=7) Traceback (most recent call last):\n(RewardLoopWorker pid=7) "
    early = (raised + "ray.exceptions.ActorDiedError: The actor died unexpectedly\n").encode()
    data = until(stored("cpu-toy"), "step:30 - ")
    for log in (data, early + data):
        found = read(log, alive=False)
        assert (found.cause, found.title) == ("unknown", "The run and its supervisor ended without a word")
        assert "Training Progress:" in found.evidence[0].text
        assert found.fixes[0].startswith("`ppo-tui resume RUN` continues from")
    died = data + b"The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR\n"
    assert read(died, alive=False).cause == "worker-died"
    assert read(died).cause == "running"


@pytest.mark.parametrize("last", ["worker group kwargs", "'metrics': {'enabled': False, 'port': 0}}}"])
def test_a_start_that_waits_for_cpus(last: str) -> None:
    data = until(stored("learning"), last)
    found = read(data)
    assert found.cause == "ray-cpus"
    assert last in found.evidence[0].text
    assert "num_data_storage_units=1" in found.fixes[0]
    assert read(data, alive=True).cause == "running"
    assert read(data, alive=True, stalled_for=5).cause == "running"
    assert read(data, alive=True, stalled_for=300).cause == "ray-cpus"
    stopped = read(data, exit_code=143, requested_by="user")
    assert stopped.cause == "stopped"
    assert "stalled" in stopped.fixes[0] and "ppo-tui resume" in stopped.fixes[-1]
    assert last in stopped.evidence[-1].text


@pytest.mark.parametrize("name", ["real-hang-cpus4", "real-hang-cpus8"])
def test_a_real_start_that_waited_until_it_was_stopped(name: str) -> None:
    data = stored(name)
    stopped = read(data, exit_code=124)
    assert stopped.cause == "stopped"
    assert "num_data_storage_units=1" in stopped.fixes[0]
    assert read(data[: data.index(b"*** SIGTERM")]).cause == "ray-cpus"


def test_a_start_that_goes_on_waits_for_nothing() -> None:
    for place in ("{'actor_rollout_ref'", "'val_only': False", "Using dataset class", "create worker group"):
        assert read(until(stored("learning"), place)).cause == "running", place


TASK = "\x1b[36m(TaskRunnerV1 pid=7)\x1b[0m "
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


def test_prompts_that_failed_on_the_way_do_not_explain_another_end() -> None:
    step = TASK + "step:1 - actor/entropy:0.4\n"
    oom = '  File "/x/site-packages/verl/a.py", line 1, in update_actor\n'
    oom += "torch.OutOfMemoryError: CUDA out of memory.\n"
    assert read(FAILED_PROMPT + step + JOB + oom, exit_code=1).cause == "gpu-oom-update"
    strange = read(FAILED_PROMPT + step + JOB + "RuntimeError: never seen before\n", exit_code=1)
    assert strange.cause == "unknown"
    assert read(FAILED_PROMPT + step, exit_code=137).cause == "host-oom-killed"
    assert read(FAILED_PROMPT + step).cause == "running"
    assert read(FAILED_PROMPT + step + JOB + SYNC, exit_code=1).cause == "reward-raises"


def test_dropped_prompts_are_told_though_the_run_finished() -> None:
    again = PROMPTS + "ERROR:2026-11-21 09:31:55,586:Error in _run_prompt for uid=6 [repeated 41x across cluster]\n"
    found = read(FAILED_PROMPT + again + TASK + "step:2 - a:1\n", exit_code=0, steps_total=2)
    assert found.cause == "finished"
    assert "42 prompts were dropped" in found.meaning
    endless = read(FAILED_PROMPT + again, exit_code=143, requested_by="user")
    assert endless.cause == "stopped" and "42 prompts had failed" in endless.meaning


def test_a_run_that_ended_before_its_last_step() -> None:
    total = TASK + "INFO:2026-11-21 11:07:43,653:Total training steps: 10\n"
    bar = TASK + "\rTraining Progress:  40%|████      | 4/10 [00:27<00:41,  6.93s/it]\n"
    found = read(total + bar + TASK + "step:4 - a:1\n", exit_code=0)
    assert (found.cause, found.title) == ("finished", "Ended at step 4 of 10: the epochs were over")
    done = read(TASK + "Training Progress: 100%|██████████| 2/2 [00:00<?, ?it/s]\n", exit_code=0)
    assert (done.cause, done.title) == ("finished", "Nothing was left to do")


def test_a_failure_before_the_stop_stays_the_cause_and_one_after_it_does_not() -> None:
    sigterm = "*** SIGTERM received at time=1795253243 on cpu 36 ***\n"
    missing = "FileNotFoundError: Unable to find '/data/x.parquet'\n"
    assert read(JOB + missing + sigterm, exit_code=134).cause == "parquet-missing"
    assert read(sigterm + JOB + missing, exit_code=134).cause == "stopped"
    # Ray ends its workers with SIGTERM whenever a run ends.
    worker = "\x1b[36m(WorkerDict pid=9)\x1b[0m " + sigterm
    assert read(worker + JOB + missing, exit_code=1).cause == "parquet-missing"
    died = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    assert read(JOB + died, exit_code=1, requested_by="user").cause == "stopped"
    assert read(JOB + died, exit_code=1).cause == "worker-died"


def test_the_last_lines_that_ray_job_repeats() -> None:
    failure = JOB + "FileNotFoundError: Unable to find '/data/x.parquet'\n"
    job = "Status message: Job entrypoint command failed with exit code 1, last available logs (truncated):\n"
    found = read(failure + job + failure, exit_code=1)
    assert (found.cause, found.evidence[0].line) == ("parquet-missing", 3)


def test_an_interrupt_from_the_keyboard_is_a_stop() -> None:
    trace = 'Traceback (most recent call last):\n  File "/a.py", line 1, in main\nKeyboardInterrupt\n'
    found = read(TASK + "step:3 - a:1\n" + trace, exit_code=1)
    assert (found.cause, found.evidence[0].text) == ("stopped", "KeyboardInterrupt")
    assert "after step 3" in found.meaning


def test_harmless_tracebacks() -> None:
    harmless = 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n'
    harmless += "ModuleNotFoundError: No module named 'vllm'\n"
    step = TASK + "step:1 - a:1\n"
    assert read(harmless + step).cause == "running"
    ignored = "Exception ignored in: <function Pool.__del__>\n" + harmless
    assert read(step + ignored, steps_total=1).cause == "finished"
    assert read(step + ignored, exit_code=0, steps_total=1).cause == "finished"
    worker = "".join("(WorkerDict pid=3) " + line + "\n" for line in harmless.splitlines())
    assert read(worker + step + JOB + "ValueError: never seen before\n", exit_code=1).cause == "unknown"


def test_a_log_to_which_a_second_attempt_was_appended() -> None:
    first = JOB + "ValueError: train_batch_size (64) must be >= actor.ppo_mini_batch_size (128)\n"
    launch = "ray init kwargs: {'num_cpus': None}\n"
    assert read(first + launch + TASK + "step:1 - a:1\n").cause == "running"
    second = read(first + launch + JOB + "FileNotFoundError: Unable to find '/data/x.parquet'\n")
    assert second.cause == "parquet-missing"


def test_unknown_names_the_innermost_exception_and_the_users_frame() -> None:
    text = (
        JOB
        + "ray.exceptions.RayTaskError(RuntimeError): ray::TaskRunnerV1.run() (pid=1, ip=10.0.0.2)\n"
        + '  File "/opt/venv/lib/python3.12/site-packages/verl/trainer/ppo/ray_trainer.py", line 7, in fit\n'
        + '  File "/home/me/tool.py", line 9, in call\n    raise QuotaGone("x")\n'
        + '  File "/usr/lib/python3.12/json/decoder.py", line 3, in decode\n'
        + "tools.QuotaGone: nothing left for today\n\n"
        + "The above exception was the direct cause of the following exception:\n\n"
        + 'ray::TaskRunnerV1.run() (pid=1, ip=10.0.0.2)\n  File "/home/me/tool.py", line 11, in call\n'
        + "RuntimeError: the tool failed\n\n"
        + "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    )
    found = read(text, exit_code=1)
    assert found.cause == "unknown"
    assert [(item.line, item.text) for item in found.evidence] == [
        (8, "tools.QuotaGone: nothing left for today"),
        (5, 'File "/home/me/tool.py", line 9, in call'),
    ]


def test_a_library_is_known_by_its_folder_or_by_what_lies_in_it() -> None:
    folders = Folders()
    assert folders.owner("/home/ray/my_reward.py") is Owner.USER
    assert folders.owner("/work/verl/my_reward.py") is Owner.USER
    assert folders.owner("/work/verl/verl/trainer/ppo/core_algos.py") is Owner.VERL
    assert folders.owner("/opt/kit/site/verl/protocol.py") is Owner.VERL
    assert folders.owner("/opt/kit/site/ray/_private/worker.py") is Owner.LIBRARY
    assert folders.owner("/opt/kit/site/tensordict/base.py") is Owner.LIBRARY
    assert folders.owner("/usr/lib/python3.12/json/decoder.py") is Owner.LIBRARY
    assert folders.owner("<frozen os>") is Owner.LIBRARY
    assert folders.owner("/work/ppo-tui/launcher/verl_plugin/lora.py") is Owner.LIBRARY
    assert folders.owner("/opt/kit/my_reward.py") is Owner.USER


def test_unknown_without_a_line_of_verl_names_the_last_frame_of_the_innermost_call() -> None:
    text = (
        JOB
        + '  File "/home/me/train.py", line 3, in main\n'
        + "ray.exceptions.RayTaskError(OddError): ray::WorkerDict.work() (pid=1, ip=10.0.0.2)\n"
        + '  File "/opt/venv/lib/python3.12/site-packages/peft/peft_model.py", line 7, in __init__\n'
        + '  File "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 9, in call\n'
        + "peft.OddError: never seen\n"
    )
    lines = [item.line for item in read(text, exit_code=1).evidence]
    assert lines == [7, 6]


def test_rows_that_the_filter_dropped_because_of_the_template() -> None:
    template = "ValueError: Cannot use chat template functions because tokenizer.chat_template is not set\n"
    dropped = (
        TASK + "Traceback (most recent call last):\n" + TASK + '  File "/a.py", line 1, in doc2len\n' + TASK + template
    )
    empty = JOB + "ValueError: num_samples should be a positive integer value, but got num_samples=0\n"
    assert read(dropped + empty, exit_code=1).cause == "chat-template"
    assert read(empty, exit_code=1).cause == "prompts-all-filtered"


def test_a_log_that_was_cut_off_after_the_cause() -> None:
    raylet = "(raylet) 3 worker(s) were killed due to the node running low on memory. Refer to the documentation\n"
    assert read(TASK + "step:3 - a:1\n" + raylet).cause == "host-oom-ray"
    assert read(raylet + TASK + "step:3 - a:1\n").cause == "running"
    assert read(TASK + "step:3 - a:1\n" + raylet, alive=True).cause == "running"


def test_answers_of_the_model_are_no_evidence() -> None:
    said_by_it = "Error executing job\n*** SIGTERM received at time=1 ***\nKilled\n"
    answer = "[prompt] Why?\n[response] Because:\n" + said_by_it
    said = "".join(TASK + line + "\n" for line in answer.splitlines()) + TASK + "[score] 0.0\n"
    assert read(said).cause == "running"
    assert read(said + JOB + "ValueError: never seen before\n", exit_code=1).cause == "unknown"


def test_evidence_is_short_and_shows_where_it_was_cut() -> None:
    found = read(JOB + "ValueError: " + "x" * 100_000 + "\n", exit_code=1)
    assert len(found.evidence[0].text) == LONGEST and found.evidence[0].text.endswith("x …")
    assert len(found.title) < 300


def test_memory_is_bounded() -> None:
    def endless() -> Iterator[Line]:
        for number in range(1, 20_001):
            yield Line(number, 0, "AgentLoopWorkerTQ", "Traceback (most recent call last):", number)
            yield Line(number, 0, "AgentLoopWorkerTQ", f"ValueError: answer {number}", number)
            yield Line(number, 0, "", "Traceback (most recent call last):" if number == 1 else f"KeyError: {number}", 0)

    scan = Scan()
    scan.read(endless())
    assert len(scan._writers) <= WRITERS and len(scan._known) <= CACHED
    assert len(scan.processes) <= WRITERS
    assert len(scan.block) <= KEPT and len(scan.strangers) <= 16 and len(scan.seen) <= len(CATALOGUE)


MARKS = """ray::A.b() (pid=1)
full_key: critic
step:1 - a:1
[response] x
KeyError: 'prompt'
AssertionError
Killed
Exception ignored in: x
ray init kwargs: {}
(
[
  File "
Training Progress: 100%|█| 2/2 [00:00<?
Total training steps: 3
*** SIGTERM received at time=1 ***"""
PIECES = st.one_of(st.text(max_size=60), st.sampled_from((JOB + SYNC + FAILED_PROMPT + MARKS).splitlines()))


@given(
    st.lists(st.tuples(PIECES, st.sampled_from(["", "TaskRunnerV1", "WorkerDict", "AgentLoopWorkerTQ", "raylet"]))),
    st.one_of(st.none(), st.integers(-70, 300)),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "user"]),
)
def test_any_log_gets_an_answer(
    texts: list[tuple[str, str]], exit_code: int | None, alive: bool | None, requested_by: str | None
) -> None:
    lines = [Line(number, 0, source, text) for number, (text, source) in enumerate(texts, 1)]
    found = diagnose(lines, exit_code=exit_code, alive=alive, requested_by=requested_by)
    known = {cause.id for cause in CATALOGUE} | {"unknown", "stopped", "finished", "running"}
    assert found.cause in known
    assert all(1 <= item.line <= len(lines) for item in found.evidence)
    assert (exit_code == 0) <= (found.cause in ("finished", "stopped"))

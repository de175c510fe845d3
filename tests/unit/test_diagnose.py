"""Why runs failed: real logs, symptoms and their causes, the evidence that is shown.

tests/data/failures/real-*: veRL 0.9.1 on the CPU with one setting broken; only folder names were replaced.
"""

import tracemalloc
from collections.abc import Iterator

import pytest
from console_logs import FAILED_PROMPT, JOB, SYNC, TASK, diagnosis_of, stored
from hypothesis import given
from hypothesis import strategies as st

from launcher.console.causes import catalogue
from launcher.console.diagnose import diagnose
from launcher.console.diagnosis import LONGEST
from launcher.console.tracebacks import Folders, Owner

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
    ("real-ray-token", "ray-unauthenticated", 2, "InvalidAuthToken"),
    ("real-engine-sleep", "engine-sleep", 1324, "Memory usage increased after sleeping"),
    ("real-sglang-backend", "sglang-option", 1063, "Invalid attention backend: flash_infer"),
    ("real-sglang-flashinfer", "sglang-flashinfer", 1090, "flashinfer_python"),
    ("real-sglang-killed", "killed", 1168, "crashed with exit code -9"),
    ("real-sglang-memory", "sglang-memory", 1069, "Not enough memory. Please try to increase"),
    ("real-service-down", "service-down", 1139, "Connection refused"),
    ("real-reward-gpu", "reward-without-gpu", 1161, "Torch not compiled with CUDA enabled"),
    ("real-reward-file", "reward-raises", 1157, "/home/me/answers.json"),
    ("real-reward-pool", "not-serializable", 1135, "PicklingError"),
    ("real-template-refuses", "chat-template-refuses", 1065, "jinja2.exceptions.TemplateError"),
    ("real-agent-workers", "agent-workers", 1135, "only support equal chunk"),
    ("real-wandb-login", "logger-login", 1067, "No API key configured"),
    ("real-parquet-invalid", "parquet-invalid", 1015, "Parquet magic bytes not found"),
    ("real-source", "unknown-data-source", 1087, "data_source=np.str_('my/sums')"),
]


@pytest.mark.parametrize(("name", "cause", "number", "text"), FAILURES)
@pytest.mark.parametrize("exit_code", [1, None])
def test_real_failures(name: str, cause: str, number: int, text: str, exit_code: int | None) -> None:
    data = stored(name)
    found = diagnosis_of(data, exit_code=exit_code)
    assert (found.cause, found.evidence[0].line) == (cause, number)
    assert text in found.evidence[0].text
    assert text.encode() in data.split(b"\n")[number - 1]


@pytest.mark.parametrize("head", ["2025-11-24T15:40:09.031Z ", "2025-11-24T15:40:09+01:00 stderr F ", "^C"])
def test_the_heads_of_log_collectors_and_terminals_change_nothing(head: str) -> None:
    for name in ("fail-broken-reward", "fail-kv-cache", "real-no-plugin"):
        data = stored(name)
        headed = b"".join(head.encode() + line for line in data.splitlines(keepends=True))
        assert diagnosis_of(headed) == diagnosis_of(data)


@pytest.mark.parametrize(
    "line", ["│ ValueError: odd │", "  | ValueError: odd", "12:01 [worker] failed: x.OddError: no"]
)
def test_an_exception_in_any_form_is_shown(line: str) -> None:
    found = diagnosis_of(f"{JOB.splitlines()[0]}\n{line}\n", exit_code=1)
    assert "without an exception" not in found.meaning
    assert found.evidence[0].text.strip() == line.strip(" |│") and found.confidence != "exact"
    assert "name an exception" in diagnosis_of(f"{TASK}step:1 - a:1\n{line}\n").meaning


def test_evidence_names_the_users_code_and_the_symptom() -> None:
    found = diagnosis_of(stored("fail-broken-reward"), exit_code=1)
    assert [item.line for item in found.evidence] == [1217, 1214, 1366]
    assert found.evidence[1].text == 'File "/data/reward.py", line 15, in broken'
    assert [item.line for item in diagnosis_of(stored("fail-no-flash-attn")).evidence] == [1064, 1098]
    oom = diagnosis_of(stored("fail-oom"))
    assert "in logprobs_from_logits_v2" in oom.evidence[1].text
    assert "actor_rollout_ref_update_actor()" in oom.evidence[2].text


def test_evidence_of_the_engine_begins_with_its_words() -> None:
    """vLLM's date and place come off, so that what it advises is not cut."""
    text = diagnosis_of(stored("fail-kv-cache"), exit_code=1).evidence[0].text
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
    found = diagnosis_of(stored(name)).evidence[1]
    assert found.line == line and found.text.endswith(place)


def test_memory_that_others_hold_is_named_by_the_process_and_lowering_its_share_is_no_fix() -> None:
    found = diagnosis_of(stored("fail-oom-log-prob"), exit_code=1)
    assert found.meaning.endswith("Also on the GPU: Worker (pid 15922) 914.00 MiB.")
    assert "lower actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu (" in found.fixes[0].text
    assert not any("gpu_memory_utilization" in fix.text or ".ref." in fix.text for fix in found.fixes)
    strange = JOB + "torch.OutOfMemoryError: CUDA out of memory. Process 77 has 60.00 GiB memory in use.\n"
    assert "not a process of this log (pid 77) 60.00 GiB" in diagnosis_of(strange).meaning


def test_prompts_that_failed_on_the_way_do_not_explain_another_end() -> None:
    step = TASK + "step:1 - actor/entropy:0.4\n"
    oom = '  File "/x/site-packages/verl/a.py", line 1, in update_actor\n'
    oom += "torch.OutOfMemoryError: CUDA out of memory.\n"
    assert diagnosis_of(FAILED_PROMPT + step + JOB + oom, exit_code=1).cause == "gpu-oom-update"
    strange = diagnosis_of(FAILED_PROMPT + step + JOB + "RuntimeError: never seen before\n", exit_code=1)
    assert strange.cause == "unknown"
    assert diagnosis_of(FAILED_PROMPT + step, exit_code=137).cause == "killed"
    assert diagnosis_of(FAILED_PROMPT + step).cause == "running"
    assert diagnosis_of(FAILED_PROMPT + step + JOB + SYNC, exit_code=1).cause == "reward-raises"


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
    found = diagnosis_of(text, exit_code=1)
    assert found.cause == "unknown"
    assert [(item.line, item.text) for item in found.evidence] == [
        (8, "tools.QuotaGone: nothing left for today"),
        (5, 'File "/home/me/tool.py", line 9, in call'),
        (14, "RuntimeError: the tool failed"),
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
    assert folders.owner("/work/ppo-tui/launcher/inside/ppo_tui_inside/plugin/defects.py") is Owner.LIBRARY
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
    lines = [item.line for item in diagnosis_of(text, exit_code=1).evidence]
    assert lines == [7, 6]


def test_rows_that_the_filter_dropped_because_of_the_template() -> None:
    template = "ValueError: Cannot use chat template functions because tokenizer.chat_template is not set\n"
    dropped = (
        TASK + "Traceback (most recent call last):\n" + TASK + '  File "/a.py", line 1, in doc2len\n' + TASK + template
    )
    empty = JOB + "ValueError: num_samples should be a positive integer value, but got num_samples=0\n"
    assert diagnosis_of(dropped + empty, exit_code=1).cause == "chat-template"
    assert diagnosis_of(empty, exit_code=1).cause == "prompts-all-filtered"


def test_responses_of_the_model_are_no_evidence() -> None:
    said_by_it = "Error executing job\n*** SIGTERM received at time=1 ***\nKilled\n"
    answer = "[prompt] Why?\n[response] Because:\n" + said_by_it
    said = "".join(TASK + line + "\n" for line in answer.splitlines()) + TASK + "[score] 0.0\n"
    assert diagnosis_of(said).cause == "running"
    assert diagnosis_of(said + JOB + "ValueError: never seen before\n", exit_code=1).cause == "unknown"


def test_evidence_is_short_and_shows_where_it_was_cut() -> None:
    found = diagnosis_of(JOB + "ValueError: " + "x" * 100_000 + "\n", exit_code=1)
    assert len(found.evidence[0].text) == LONGEST and found.evidence[0].text.endswith("x …")
    assert len(found.title) < 300


@pytest.mark.slow
def test_memory_is_bounded_however_many_processes_and_errors_there_are() -> None:
    def endless(count: int) -> Iterator[bytes]:
        for number in range(1, count):
            worker = b"(AgentLoopWorkerTQ pid=%d) " % number
            yield worker + b"Traceback (most recent call last):\n"
            yield worker + b"ValueError: response %d\n" % number
            yield worker + b"[prompt] user\n"
            yield b"Traceback (most recent call last):\n" if number == 1 else b"KeyError: %d\n" % number

    def peak(count: int) -> int:
        tracemalloc.start()
        diagnose(endless(count))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(2)  # reads the causes
    assert peak(4_000) < 1.5 * peak(2_000)


LINES = """ray::A.b() (pid=1)
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
PIECES = st.one_of(st.text(max_size=60), st.sampled_from((JOB + SYNC + FAILED_PROMPT + LINES).splitlines()))


@given(
    st.lists(st.tuples(PIECES, st.sampled_from(["", "TaskRunnerV1", "WorkerDict", "AgentLoopWorkerTQ", "raylet"]))),
    st.one_of(st.none(), st.integers(-70, 300)),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "user"]),
)
def test_any_log_gets_a_diagnosis(
    texts: list[tuple[str, str]], exit_code: int | None, alive: bool | None, requested_by: str | None
) -> None:
    lines = [(f"({source} pid=1) " if source else "") + text + "\n" for text, source in texts]
    data = "".join(lines).encode(errors="replace")
    found = diagnose([data], exit_code=exit_code, alive=alive, requested_by=requested_by)
    known = {cause.id for cause in catalogue()} | {"unknown", "stopped", "finished", "running"}
    assert found.cause in known
    assert all(1 <= item.line <= data.count(b"\n") for item in found.evidence)
    assert (exit_code == 0) <= (found.cause in ("finished", "stopped"))

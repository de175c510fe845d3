"""A cause needs its frame, library or kind of file, and comes before what follows from it."""

import pytest
from console_logs import JOB, TASK, diagnosis_of

USER = '  File "/home/me/project/reward.py", line 3, in compute_score\n'
VERL = '  File "/v/lib/python3.12/site-packages/verl/{}", line 9, in {}\n'
LIBRARY = '  File "/v/lib/python3.12/site-packages/{}", line 9, in call\n'
WORKER = "\x1b[36m(WorkerDict pid=4711)\x1b[0m "
STEP = TASK + "step:1 - actor/entropy:0.4\n"
ABORT = WORKER + "*** SIGABRT received at time=1754734273 on cpu 21 ***\n"
TERMINATE = WORKER + "terminate called after throwing an instance of 'c10::DistBackendError'\n"
WATCHDOG = WORKER + "[rank1]:[E809 10:11:12.3 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation "
WATCHDOG += "timeout: WorkNCCL(SeqNum=5120, OpType=_ALLGATHER_BASE, Timeout(ms)=600000)\n"
SEGFAULT = "\x1b[36m(WorkerDict pid=12)\x1b[0m *** SIGSEGV received at time=1754733000 on cpu 2 ***\n"
DIED = JOB + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
UNPICKLED = (
    JOB + "ray.exceptions.RaySystemError: System error: Failed to unpickle serialized exception\n"
    "traceback: Traceback (most recent call last):\n"
    '  File "/v/lib/python3.12/site-packages/ray/exceptions.py", line 50, in from_ray_exception\n'
    "    return pickle.loads(ray_exception.serialized_exception)\n"
    "TypeError: {}.__init__() missing 1 required positional argument: 'inner'\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "RuntimeError: Failed to unpickle serialized exception\n"
)


def cause(frames: str, message: str) -> str:
    return diagnosis_of(JOB + frames + message + "\n", exit_code=1).cause


def test_a_missing_file_is_named_by_who_reads_it() -> None:
    missing = "FileNotFoundError: [Errno 2] No such file or directory: '{}'"
    data = VERL.format("utils/dataset/rl_dataset.py", "_read_files_and_tokenize")
    assert cause(data, missing.format("/data/train.json")) == "parquet-missing"
    assert cause(USER, missing.format("/home/me/answers.json")) == "unknown"
    assert cause(USER, missing.format("/home/me/cache.parquet")) == "unknown"
    assert cause(VERL.format("trainer/main_ppo.py", "run_ppo"), missing.format("/x/timeline.json")) == "unknown"
    lora = LIBRARY.format("vllm/lora/worker_manager.py")
    assert cause(lora, missing.format("simon_lora_path/adapter_config.json")) == "lora-async-engine"


def test_an_unknown_failure_shows_the_exception_and_the_line_of_the_user() -> None:
    found = diagnosis_of(JOB + USER + LIBRARY.format("json/decoder.py") + "TypeError: 'int' is not callable\n")
    assert found.cause == "unknown"
    assert [quote.text.split(",")[0] for quote in found.evidence] == [
        "TypeError: 'int' is not callable",
        'File "/home/me/project/reward.py"',
    ]


@pytest.mark.parametrize(
    "message",
    [
        "ray.exceptions.RaySystemError: System error: Broken pipe",
        "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        "TypeError: helper() got an unexpected keyword argument 'x'",
        "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://search.example/q",
        "zmq.error.Again: Resource temporarily unavailable",
    ],
)
def test_what_no_entry_explains_is_unknown(message: str) -> None:
    assert cause(USER, message) in ("unknown", "service-down")
    assert cause(USER, message) == "unknown" or "HTTPError" in message


def test_equal_chunks_are_the_agent_loops_only_in_its_frames() -> None:
    chunk = "AssertionError: only support equal chunk. Got size of DataProto 52 and chunk 8."
    assert cause(VERL.format("experimental/agent_loop/agent_loop.py", "generate_sequences"), chunk) == "agent-workers"
    assert cause(VERL.format("single_controller/base/decorator.py", "dispatch"), chunk) == "batch-not-divisible"


def test_a_collective_operation_that_timed_out_comes_before_the_abort() -> None:
    for log in (WATCHDOG + ABORT + TERMINATE, ABORT + TERMINATE, WATCHDOG + WORKER + "Fatal Python error: Aborted\n"):
        found = diagnosis_of(STEP + log + DIED, exit_code=1)
        assert (found.cause, found.evidence[0].line) == ("nccl", 3 if log.startswith(ABORT) else 2)
    assert diagnosis_of(STEP + ABORT + DIED, exit_code=1).cause == "aborted"
    assert diagnosis_of(STEP + SEGFAULT + WATCHDOG + ABORT + DIED, exit_code=1).cause == "crashed"


def test_the_exception_of_the_worker_comes_before_the_wrapper() -> None:
    trace = WORKER + "Traceback (most recent call last):\n" + WORKER + LIBRARY.format("triton/runtime/build.py")
    compiler = trace + WORKER + "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.\n"
    wrapped = UNPICKLED.format("BackendCompilerFailed")
    assert diagnosis_of(compiler + wrapped, exit_code=1).cause == "c-compiler-missing"
    alone = diagnosis_of(wrapped, exit_code=1)
    assert alone.cause == "exception-unpickled"
    assert any("BackendCompilerFailed" in quote.text for quote in alone.evidence)
    assert diagnosis_of(UNPICKLED.format("APIStatusError"), exit_code=1).cause == "service-down"


def test_the_error_of_the_engine_comes_before_the_call_that_failed() -> None:
    engine = "(vLLMHttpServer pid=5) (EngineCore pid=6) {}\n"
    refused = engine.format("ERROR 11-21 09:30:28 [core.py:1449] Invocation of collective_rpc method failed")
    reason = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:1"
    trace = engine.format("Traceback (most recent call last):") + engine.format(LIBRARY.format("vllm/x.py").rstrip())
    wrapped = JOB + "Exception: Call to collective_rpc method failed: see above\n"
    found = diagnosis_of(STEP + refused + trace + engine.format(reason) + wrapped, exit_code=1)
    assert (found.cause, found.evidence[0].text) == ("gloo-peer", f"{reason}")


@pytest.mark.parametrize(
    "waiter",
    [
        "TimeoutError: Failed to get register_center_actor a_register_center in [].",
        "RuntimeError: Server failed to become healthy within 600 s",
        "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.",
    ],
)
def test_a_worker_that_failed_comes_before_those_that_waited_for_it(waiter: str) -> None:
    threads = "(pid=77) E0729 20:03:14.606365961   99611 thd.cc:157]    pthread_create failed: try again\n"
    found = diagnosis_of(threads + JOB + VERL.format("trainer/x.py", "init_workers") + waiter + "\n", exit_code=1)
    assert (found.cause, found.evidence[0].line) == ("process-limit", 1)
    alone = diagnosis_of(JOB + waiter + "\n", exit_code=1)
    assert alone.cause != "process-limit" and alone.confidence != "exact"


def test_a_rollout_that_failed_though_the_run_ended_as_if_complete() -> None:
    lost = STEP + "(FullyAsyncRollouter pid=6) [FullyAsyncRollouter] Streaming process exception: no engine\n"
    for code in (0, None):
        assert diagnosis_of(lost, exit_code=code).cause == "async-rollout-lost"
    assert diagnosis_of(STEP, exit_code=0).cause == "finished"


SYMBOL = "ImportError: /v/lib/python3.12/site-packages/odd/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"
NAMES = "KeyError: 'base_model.model.layers.0.self_attn.qkv_proj.base_layer.weight'"
WRAP = "Exception: Could not find the transformer layer class to wrap in the model."
WRAPPED = "actor_rollout_ref.actor.fsdp_config.wrap_policy.transformer_layer_cls_to_wrap"
LENGTHS = "RuntimeError: stack expects each tensor to be equal size, but got [4] at entry 0 and [5] at entry 1"


@pytest.mark.parametrize(
    ("before", "path", "error", "first", "nowhere"),
    [
        ("torch_npu 2.5.1", "odd/x.py", SYMBOL, "source set_env.sh", "verl["),
        ("", "odd/x.py", SYMBOL, "find the library that should have the symbol", "set_env.sh"),
        ("", "sglang/srt/models/qwen2.py:load_weights", NAMES, "with LoRA: set actor_rollout_ref.model.lora.merge", ""),
        ("", "vllm/model_executor/models/qwen2.py:load_weights", NAMES, "with LoRA: set actor_rollout_ref.rollout", ""),
        ("", "verl/x.py", WRAP, f"set +{WRAPPED} to the layer classes", "remove"),
        (f"{WRAPPED}=[A]", "verl/x.py", WRAP, f"remove +{WRAPPED}", ""),
        ("", "verl/x.py", LENGTHS, "set data.filter_overlong_prompts=true", ""),
        ("data.filter_overlong_prompts=True", "verl/x.py", LENGTHS, "with a data set of your own", "filter_overlong"),
        (
            "",
            "odd/x.py",
            "RuntimeError: odd-cubin version (0.6.1) does not match odd version (0.5.3).",
            "pip install odd-",
            "",
        ),
    ],
)
def test_a_fix_whose_condition_does_not_hold_never_comes_first(
    before: str, path: str, error: str, first: str, nowhere: str
) -> None:
    path, _, function = path.partition(":")
    head = "Error executing job with overrides: ['trainer.nnodes=1'"
    settings, note = (f", '{before}']", "") if "=" in before else ("]", f"{before}\n")
    frame = LIBRARY.format(path).replace("call", function or "call")
    log = f"{note}{head}{settings}\n{JOB.partition(chr(10))[2]}{frame}{error}\n"
    found = diagnosis_of(log, exit_code=1)
    assert found.fixes[0].text.startswith(first)
    assert not nowhere or not any(nowhere in fix.text for fix in found.fixes)


def test_an_entry_that_names_several_reasons_is_not_exact() -> None:
    assert diagnosis_of(JOB + LENGTHS + "\n").confidence == "likely"
    assert diagnosis_of(JOB + "ModuleNotFoundError: No module named 'orjson'\n").confidence == "exact"
    assert diagnosis_of(JOB + "ModuleNotFoundError: No module named 'vllm.odd.part'\n").confidence == "exact"
    assert diagnosis_of(JOB + "ModuleNotFoundError: No module named 'odd.part'\n").cause == "module-part-missing"


def test_an_exception_has_the_calls_of_the_one_that_its_handling_raised() -> None:
    """veRL renders a message alone and, when the template refuses that, with a message of its own before it."""
    refused = LIBRARY.format("jinja2/x.py") + "jinja2.exceptions.TemplateError: No user query found in messages.\n"
    handling = (
        "\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
    )
    outer = VERL.format("utils/dataset/multiturn_sft_dataset.py", "_process_single_message")
    second = outer + "jinja2.exceptions.TemplateError: System message must be at the beginning.\n"
    found = diagnosis_of(JOB + refused + handling + second, exit_code=1)
    assert found.cause == "chat-template-single"
    assert [quote.text.split(": ")[1][:6] for quote in found.evidence if "Error" in quote.text] == ["No use", "System"]
    assert diagnosis_of(JOB + refused, exit_code=1).cause == "chat-template-refuses"

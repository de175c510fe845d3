"""Failures that no entry explains: the first failure, its component, the setting that runs the code, where to look."""

import importlib.util
from pathlib import Path

import code_settings as tool
import pytest
from console_logs import diagnosis_of

from launcher.console.diagnose import diagnose
from launcher.console.diagnosis import Place
from launcher.verl.code_settings import Condition, conditions, default_of, requirements

SITE = "/opt/venv/lib/python3.12/site-packages/"


def log(*frames: str, error: str, settings: str = "", before: str = "", call: str = "WorkerDict.update_actor") -> str:
    """A run of veRL that ends with an exception in a worker; a frame is `PATH:FUNCTION` or `PATH:FUNCTION CODE`."""
    lines = [
        *before.splitlines(),
        f"Error executing job with overrides: [{settings}]",
        "Traceback (most recent call last):",
    ]
    lines.append(f"ray.exceptions.RayTaskError({error.split(':')[0]}): ray::{call}() (pid=7, ip=10.0.0.2)")
    for frame in frames:
        place, _, code = frame.partition(" ")
        path, _, function = place.partition(":")
        lines += [f'  File "{SITE}{path}", line 10, in {function}', f"    {code or 'return inner(x)'}"]
    return "\n".join([*lines, error, "", ""])


CASES = {
    "the branch of the map": (
        log(
            "verl/models/mcore/model_forward_fused.py:_fused_GPTModel_forward",
            "verl/utils/kernel/linear_cross_entropy.py:forward",
            error="IndexError: list index out of range",
        ),
        ("fused kernels of veRL", "verl/utils/kernel/linear_cross_entropy.py"),
        "it runs because actor_rollout_ref.model.use_fused_kernels=True",
        "isolate: set actor_rollout_ref.model.use_fused_kernels=False",
    ),
    "what the component depends on": (
        log(
            "vllm/v1/engine/core.py:run_engine_core",
            "vllm/model_executor/models/qwen3_vl_moe.py:load_fused_expert_weights",
            error="ValueError: an odd shape for pipeline parallel size 2",
            settings="'actor_rollout_ref.rollout.pipeline_model_parallel_size=2'",
        ),
        ("vLLM: model and its weights", "vllm/model_executor/models/qwen3_vl_moe.py"),
        "it depends on actor_rollout_ref.rollout.pipeline_model_parallel_size=2",
        "isolate: set actor_rollout_ref.rollout.pipeline_model_parallel_size=1",
    ),
    "the only setting with the value that the message quotes": (
        log(
            "verl/workers/rollout/vllm_rollout/vllm_async_server.py:_apply_quantization",
            error="ValueError: Currently only support ['fp8', 'torchao'] quantization, got: int3",
            settings="'actor_rollout_ref.rollout.quantization=int3', 'actor_rollout_ref.rollout.dtype=half'",
        ),
        ("vLLM in veRL", "verl/workers/rollout/vllm_rollout/vllm_async_server.py"),
        "it depends on actor_rollout_ref.rollout.quantization=int3",
        "",
    ),
    "a quoted value, which has a default": (
        log(
            "verl/workers/engine/fsdp/transformer_impl.py:_build_module",
            "verl/utils/torch_dtypes.py:to_dtype",
            error="RuntimeError: unexpected precision: bf8",
            settings="'actor_rollout_ref.actor.fsdp_config.model_dtype=bf8'",
        ),
        ("trainer of veRL", "verl/utils/torch_dtypes.py"),
        "it depends on actor_rollout_ref.actor.fsdp_config.model_dtype=bf8",
        "isolate: set actor_rollout_ref.actor.fsdp_config.model_dtype=fp32",
    ),
    "a class that is registered under a name": (
        log(
            "verl/checkpoint_engine/nixl_checkpoint_engine.py:prepare",
            error="ValueError: no such thing",
            settings="'actor_rollout_ref.rollout.checkpoint_engine.backend=nixl'",
        ),
        ("transfer of the weights to the engine", "verl/checkpoint_engine/nixl_checkpoint_engine.py"),
        "it runs because actor_rollout_ref.rollout.checkpoint_engine.backend=nixl",
        "isolate: set actor_rollout_ref.rollout.checkpoint_engine.backend=naive",
    ),
}


@pytest.mark.parametrize(("text", "where", "because", "isolated"), CASES.values(), ids=CASES)
def test_the_component_and_the_setting_are_named(
    text: str, where: tuple[str, str], because: str, isolated: str
) -> None:
    found = diagnosis_of(text)
    assert found.cause == "unknown" and found.confidence == "likely" and found.place is not None
    assert (found.place.component, found.place.file) == where
    assert dict(found.place.rows)["setting"] == because
    assert found.fixes[0].text.startswith(isolated) and ("not a fix" in found.fixes[0].text) is bool(isolated)


@pytest.mark.parametrize(
    ("frame", "error", "settings"),
    [
        ("vllm/v1/core.py:run", "ValueError: odd", "rollout.tensor_model_parallel_size=4"),
        ("sglang/srt/models/x.py:load", "KeyError: 'w'", "rollout.load_format=auto"),
        ("vllm/model_executor/x.py:quantize", "ValueError: got: None", "rollout.quantization=None"),
        ("vllm/model_executor/x.py:load", "ValueError: Load format `dummy` is odd", "rollout.load_format=dummy"),
        ("vllm/x.py:load", "ValueError: got: half", "rollout.dtype=half', 'actor_rollout_ref.actor.strategy=half"),
    ],
)
def test_no_setting_is_named_that_the_failure_does_not_show(frame: str, error: str, settings: str) -> None:
    place = diagnosis_of(log(frame, error=error, settings=f"'actor_rollout_ref.{settings}'")).place
    assert place is not None and place.component and place.setting is None


def test_a_setting_that_the_run_has_otherwise_is_not_named() -> None:
    text, *_ = CASES["the branch of the map"]
    found = diagnosis_of(text.replace("[]", "['actor_rollout_ref.model.use_fused_kernels=False']"))
    assert found.place is not None and found.place.setting is None
    assert not any(fix.text.startswith("isolate") for fix in found.fixes)


def test_the_line_that_decides_comes_first() -> None:
    tail = "\nNOTE: see above" * 34  # the first of the linker's lines is far above
    text = log(
        "triton/runtime/build.py:_build",
        error="subprocess.CalledProcessError: Command '['gcc']' returned non-zero exit status 1.",
        before="/usr/bin/ld: x.o: undefined reference to `zz'\ncollect2: error: ld returned 1 exit status" + tail,
    )
    found = diagnosis_of(text)
    assert [quote.line for quote in found.evidence][:2] == [1, 42] and found.place is not None
    assert found.cause == "kernel-compile" and found.confidence == "likely"
    assert found.place.component.startswith("linker")


def test_the_exception_in_a_worker_of_the_loader_comes_before_the_one_that_reports_it() -> None:
    caught = "AttributeError: Caught AttributeError in DataLoader worker process 0."
    inner = "\nOriginal Traceback (most recent call last):\nAttributeError: 'RLHFDataset' object has no attribute 'odd'"
    found = diagnosis_of(log("torch/_utils.py:reraise", error=f"{caught}{inner}\n{caught}"))
    assert "'odd'" in found.evidence[0].text and "'odd'" in found.title


def test_a_worker_comes_before_its_caller_whose_exception_says_little() -> None:
    worker = "\n".join(
        f"(WorkerDict pid=9, ip=10.0.0.3) {line}"
        for line in (
            "Traceback (most recent call last):",
            f'  File "{SITE}megatron/core/transformer/moe/router.py", line 3, in forward',
            "ZeroDivisionError: division by zero",
        )
    )
    caller = log(
        "verl/protocol.py:union", error="AttributeError: 'NoneType' object has no attribute 'batch'", before=worker
    )
    found = diagnosis_of(caller)
    assert found.evidence[0].text == "ZeroDivisionError: division by zero"
    assert found.place is not None and found.place.component == "Megatron-Core: mixture of experts"


def test_versions_are_said_with_the_verl_that_asks_for_them() -> None:
    text = log("vllm/v1/x.py:run", error="ValueError: odd", before="INFO Initializing a V1 LLM engine (v0.11.0) with x")
    place = diagnosis_of(text).place
    assert place is not None and dict(place.rows)["versions"] == "vllm 0.11.0 (fits veRL 0.6.1 to 0.8.0)"
    assert "ValueError odd" in dict(place.rows)["search"]


def test_versions_that_the_run_recorded_are_said_where_the_log_has_none() -> None:
    text = log("vllm/v1/engine/core.py:step", error="ValueError: an odd shape")
    place = diagnose([text.encode()], versions={"vllm": "0.24.0", "verl": "0.9.1"}).place
    assert place is not None and dict(place.rows)["versions"] == "vllm 0.24.0 (fits veRL), verl 0.9.1"


def test_a_log_that_stops_says_which_step_and_what_the_engine_excludes() -> None:
    text = (
        "(TaskRunner pid=48, ip=10.0.0.7) Total training steps: 9\n"
        "(TaskRunner pid=48, ip=10.0.0.7) step:2 - actor/entropy:0.4 - critic/score/mean:0.3 - timing_s/step:60\n"
        "(vLLMHttpServer pid=49) INFO 07-28 11:31:02 [loggers.py:257] Engine 000: Running: {} reqs, Waiting: 0 reqs\n"
    )
    idle, busy = (diagnosis_of(text.format(requests)) for requests in (0, 3))
    assert "Step 3 of 9 was never printed" in idle.meaning and "no request" in idle.meaning
    assert [fix.text for fix in idle.fixes] == ["if it hangs: py-spy dump --pid 48 (TaskRunner on 10.0.0.7)"]
    assert "3 requests" in busy.meaning and any("--pid 49 (vLLMHttpServer" in fix.text for fix in busy.fixes)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("step:2 - a:1\n", "Step 3 was never printed. That step has no validation (trainer.test_freq=2)."),
        ("step:3 - a:1\n", "Step 4 was never printed. That step ends with a validation (trainer.test_freq=2)."),
        ("all initialize finished\n", "No step was printed. The first validation was not printed."),
        ("'Initial validation metrics: {}'\nTraining Progress:   0%|  | 0/9\n", "The first validation was printed."),
        ("step:3 - a:1\ntest_gen_batch meta info: {}\n", "A validation began; its responses were not complete"),
        (
            "step:3 - a:1\ntest_gen_batch meta info: {}\nvalidation generation end\n",
            "A validation began; its scores were not printed.",
        ),
        (
            "step:2 - a:1\nINFO:2026-11-23 07:10:22,777:pending: 0, running: 6, finished: 2, failure: 0\n"
            "Engine 000: Running: 0 reqs, Waiting: 0 reqs\n",
            "The engine has no request, and 6 prompts are unfinished: look at the reward",
        ),
        (
            "step:2 - a:1\nINFO openai: Retrying request to /chat/completions in 0.9 seconds\n",
            "A client repeats a request: the service that it asks, a verifier or a tool, does not answer.",
        ),
        ("Retrying request to /chat/completions\nstep:2 - a:1\n", "That step has no validation (trainer.test_freq=2)."),
    ],
)
def test_a_log_that_stops_says_what_its_last_lines_exclude(lines: str, said: str) -> None:
    prefix = "(TaskRunner pid=48, ip=10.0.0.7) "
    text = "python3 -m verl.trainer.main_ppo trainer.test_freq=2\n" + "".join(
        f"{prefix}{line}\n" for line in lines.splitlines()
    )
    found = diagnosis_of(text)
    assert found.title == "Log stops mid-run" and said in found.meaning
    assert ("repeats a request" in found.meaning) == ("repeats a request" in said)


def test_an_error_that_was_printed_again_and_again_is_said_of_a_stopped_run() -> None:
    failing = "".join(f"(TaskRunner pid=4) [Error] Task failed: Can't pickle it, completion: {n}\n" for n in range(4))
    found = diagnosis_of(f"{failing}Traceback (most recent call last):\nKeyboardInterrupt\n")
    assert found.cause == "stopped" and "4×: Task failed: Can't pickle it" in found.meaning
    assert found.evidence[0].line == 1


@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]")
def test_the_map_is_that_of_the_installed_verl() -> None:
    spec = importlib.util.find_spec("verl")
    assert spec is not None and spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    paths = [
        *(root / "models/mcore").glob("*.py"),
        *(root / "trainer/ppo").glob("*.py"),
        *(root / "workers/reward_manager").glob("*.py"),
        *(root / "workers/engine").rglob("*.py"),
    ]
    read = tool.table({f"verl/{path.relative_to(root)}": path.read_text() for path in paths})
    fused = "verl/models/mcore/model_forward_fused.py:_fused_GPTModel_forward"
    assert "actor_rollout_ref.model.use_fused_kernels" in read["places"][fused]
    registered = [place for place in read["places"] if "core_algos.py:compute" in place or "/reward_manager/" in place]
    assert len(registered) > 20
    for place in registered:
        stored = {condition.key for condition in conditions(place)}
        assert {gate.partition("=")[0] for gate in read["places"][place]} <= stored, place


def test_the_conditions_of_the_map_hold_and_end() -> None:
    flag, chosen, many = map(Condition.read, ("a.b", "a.b=x|y", "a.b>1"))
    assert flag.holds("True") and not flag.holds("null") and Condition.read("a.b=").holds("False")
    assert chosen.holds("y") and not chosen.holds("z") and many.holds("2") and not many.holds("1")
    assert default_of("reward.reward_manager.name") == "naive"
    assert requirements()["0.6.0"]["vllm"] == "<=0.9.1,>=0.7.3"
    assert Place().rows == ()

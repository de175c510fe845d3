"""The rollout engine: V10, V14 to V17, ENGINE-2, ENGINE-5.

veRL: `verl/workers/config/rollout.py: RolloutConfig.__post_init__`, `verl/workers/rollout/base.py: get_rollout_class`,
`verl/workers/engine/fsdp/transformer_impl.py: FSDPEngine`.
"""

from launcher.check.config.base import (
    Findings,
    dividing,
    error,
    gpu_count,
    of_keys,
    of_registry,
    of_trainer,
    one_of,
    warning,
)
from launcher.check.facts import known_names
from launcher.check.subject import Subject
from launcher.core.format import counted
from launcher.core.text import did_you_mean, nearest, perhaps
from launcher.verl.config import CRITIC, CRITIC_ULYSSES, ENGINE, GPUS, MODEL, NODES, ROLLOUT, ULYSSES

MODE = f"{ROLLOUT}.mode"
MULTI_TURN = f"{ROLLOUT}.multi_turn"


@of_registry
def engine(subject: Subject) -> Findings:
    """V16, V17: veRL recognizes the name of the engine; ppo-tui's CPU platform adds `hf`."""
    name = subject.get(ENGINE)
    known = subject.facts.names.get("engines", [])
    if name is None and known:
        usual = "hf" if subject.on_cpu else "vllm"
        message = "no rollout engine is set, and veRL has no default"
        yield error("V16", message, f"set {ENGINE} to {usual}", [ENGINE], {"rollout.engine": usual})
        return
    if not known or name in known or (name == "hf" and (subject.on_cpu or not subject.at_least("0.7.0"))):
        return
    if name == "hf":
        message = "the engine 'hf' is ppo-tui's own and works only on the CPU platform"
        yield error("V17", message, f"set {ENGINE} to vllm", [ENGINE], {"rollout.engine": "vllm"})
        return
    usable = ["hf"] if subject.on_cpu else known
    message = f"'{name}' is not a rollout engine{did_you_mean(str(name), known)}: veRL fails after loading the critic"
    fix = f"set {ENGINE} to {one_of(usable)}"
    yield error("V17", message, fix, [ENGINE], {"rollout.engine": "hf" if subject.on_cpu else "vllm"})


@of_trainer
def mode(subject: Subject) -> Findings:
    """V14: from 0.7 on, the only rollout mode is async."""
    value = subject.get(MODE)
    if value not in (None, "async") and subject.at_least("0.7.0"):
        message = f"the rollout mode '{value}' was removed in veRL 0.7: veRL fails after loading the critic"
        yield error("V14", message, f"remove {MODE}", [MODE])


def parallel_engine(subject: Subject) -> Findings:
    """V17: no engine supports pipeline parallelism; experts are split over all GPUs of an engine."""
    if not subject.at_least("0.7.0") or subject.get(ENGINE) not in ("vllm", "sglang", "trtllm"):
        return
    key = f"{ROLLOUT}.pipeline_model_parallel_size"
    pipeline, experts = subject.whole(key), subject.whole(f"{ROLLOUT}.expert_parallel_size")
    if pipeline is not None and pipeline > 1:
        yield error("V17", f"{key} is {pipeline}; no engine supports that yet", f"set {key} to 1", [key])
    tensor = subject.whole(f"{ROLLOUT}.tensor_model_parallel_size") or 1
    data = subject.whole(f"{ROLLOUT}.data_parallel_size") or 1
    if experts is not None and experts > 1 and experts != tensor * data:
        keys = [f"{ROLLOUT}.{name}_parallel_size" for name in ("expert", "tensor_model", "data")]
        message = f"expert parallel size {experts} is not tensor {tensor} x data {data} = {tensor * data}"
        yield error("V17", message, f"set {keys[0]} to {one_of(sorted({1, tensor * data}))}", keys)


def sequences_over_gpus(subject: Subject) -> Findings:
    """V10: sequence parallelism requires a size that divides the GPUs, and packed sequences."""
    size = subject.sequence_parallel()
    if subject.gpus % size:
        message = f"{ULYSSES} = {size} does not divide the {gpu_count(subject.gpus)}"
        fix = f"set {ULYSSES} to {one_of(dividing(subject.gpus, size))}"
        yield error("V10", message, fix, [ULYSSES, GPUS, NODES], {"actor.ulysses_sequence_parallel_size": 1})
    elif size > 1 and not subject.get(f"{MODEL}.use_remove_padding", True):
        message = f"{ULYSSES} = {size} requires packed sequences, and use_remove_padding is false"
        fix = "set model.use_remove_padding to true"
        yield error("V10", message, fix, [ULYSSES, f"{MODEL}.use_remove_padding"], {"model.use_remove_padding": True})
    own = subject.sequence_parallel(CRITIC)
    if subject.has_critic and subject.gpus % own:
        message = f"{CRITIC_ULYSSES} = {own} does not divide the {gpu_count(subject.gpus)}"
        fix = f"set {CRITIC_ULYSSES} to {one_of(dividing(subject.gpus, own))}"
        yield error("V10", message, fix, [CRITIC_ULYSSES, GPUS, NODES])
    elif subject.has_critic and own > 1 and not subject.get(f"{CRITIC}.model.use_remove_padding", True):
        message = f"the critic splits sequences over {counted(own, 'GPU')}, but its use_remove_padding is false"
        fix = "set critic.use_remove_padding to true"
        change = {"critic.use_remove_padding": True}
        yield error("V10", message, fix, [CRITIC_ULYSSES, f"{CRITIC}.model.use_remove_padding"], change)


@of_trainer
def conversations(subject: Subject) -> Findings:
    """V15: up to 0.5, multi-turn rollouts require tools or an interaction, and GRPO."""
    if subject.get(f"{MULTI_TURN}.enable") is not True or subject.at_least("0.6.0"):
        return
    tools = [f"{MULTI_TURN}.tool_config_path", f"{MULTI_TURN}.interaction_config_path"]
    if all(subject.get(key) is None for key in tools):
        message = "multi-turn rollouts require tools or an interaction, and neither is set"
        yield error("V15", message, f"set {tools[0]}", [f"{MULTI_TURN}.enable", *tools])
    if subject.get("algorithm.adv_estimator") != "grpo":
        message = f"veRL {subject.version} supports multi-turn rollouts only with GRPO"
        yield error("V15", message, "set algorithm to grpo", [f"{MULTI_TURN}.enable", "algorithm.adv_estimator"])


@of_keys
def engine_words(subject: Subject) -> Findings:
    """ENGINE-2: the engine recognizes the dtype; vLLM the load format, the log-probabilities and the request order."""
    engine = {"vllm": "vLLM", "sglang": "SGLang"}.get(str(subject.get(ENGINE)))
    if engine is None:
        return
    dtype, form = subject.get(f"{ROLLOUT}.dtype"), subject.get(f"{ROLLOUT}.load_format")
    if isinstance(dtype, str) and dtype not in known_names().engine_types:
        message = f"{engine} has no dtype '{dtype}'"
        fix = f"set {ROLLOUT}.dtype to {one_of(['bfloat16', 'float16'])}"
        yield error("ENGINE-2", message, fix, [f"{ROLLOUT}.dtype"], {"rollout.dtype": "bfloat16"})
    if engine != "vLLM":
        return
    if isinstance(form, str) and form not in known_names().load_formats and subject.at_least("0.9.0"):
        message = f"vLLM has no load_format '{form}'{did_you_mean(form, known_names().load_formats)}"
        fix = f"set {ROLLOUT}.load_format to safetensors"
        yield warning("ENGINE-2", message, fix, [f"{ROLLOUT}.load_format"], {"rollout.load_format": "safetensors"})
    for name, known in known_names().vllm.items():
        value = subject.get(key := f"{ROLLOUT}.{name}")
        if isinstance(value, str) and value not in known:
            message = f"vLLM has no {name} '{value}'{did_you_mean(value, known)}"
            yield error("ENGINE-2", message, f"set {key} to {one_of(known)}", [key])


OPTIONS = f"{ROLLOUT}.engine_kwargs.sglang"
SPLIT = f"{ROLLOUT}.disaggregation"
COMPARED = ("attention_backend", "load_format")
"""Options whose values SGLang's command line checks. veRL does not use it: a wrong one fails late in the start."""


def server_options(subject: Subject) -> Findings:
    """ENGINE-5: what veRL hands SGLang's server are options of the installed SGLang, with values that it has.

    veRL: `sglang_rollout/async_sglang_server.py: launch_server`, which makes `ServerArgs` of keys of its own and of
    those below `engine_kwargs.sglang`.
    """
    if subject.text(ENGINE) != "sglang" or not subject.at_least("0.7.0") or not (known := subject.server_options):
        return
    given = {f"{ROLLOUT}.load_format": "load_format"}
    if subject.get(f"{SPLIT}.enabled") is True:
        given[f"{SPLIT}.decode_tensor_model_parallel_size"] = "disaggregation_decode_tp"
    given = {key: name for key, name in given.items() if subject.get(key) is not None}
    for key, name in {**given, **{f"{OPTIONS}.{name}": name for name in subject.names_below(OPTIONS)}}.items():
        value, allowed = subject.get(key), known.get(name)
        if allowed is None:
            near = nearest(name, known) if key.startswith(OPTIONS) else None  # other keys are veRL's own
            message = f"SGLang's server has no option '{name}'{perhaps(near)}: it fails at its start"
            fix = f"rename it to {OPTIONS}.{near}" if near else f"remove {key}"
            yield error("ENGINE-5", message, fix, [key])
        elif name in COMPARED and isinstance(value, str) and allowed and value not in allowed:
            message = f"SGLang has no {name} '{value}'{did_you_mean(value, allowed)}: it fails at its start"
            yield error("ENGINE-5", message, f"set {key} to one of {', '.join(allowed)}", [key])


RULES = (engine, mode, parallel_engine, sequences_over_gpus, conversations, engine_words, server_options)

"""The rollout engine: V10, V14 to V17, ENGINE-2, ENGINE-5.

veRL: `verl/workers/config/rollout.py: RolloutConfig.__post_init__`, `verl/workers/rollout/base.py: get_rollout_class`,
`verl/workers/engine/fsdp/transformer_impl.py: FSDPEngine`.
"""

from launcher.check.config.base import Findings, dividing, of_keys, of_registry, of_trainer
from launcher.check.facts import known_names
from launcher.check.finding import Words, found
from launcher.check.subject import Subject
from launcher.core.text import did_you_mean, nearest, perhaps
from launcher.verl.config import CRITIC, ENGINE, MODEL, ROLLOUT

MODE = f"{ROLLOUT}.mode"
MULTI_TURN = f"{ROLLOUT}.multi_turn"


@of_registry
def engine(subject: Subject) -> Findings:
    """V16, V17: veRL knows the engine; ppo-tui's CPU platform adds `hf`."""
    name = subject.get(ENGINE)
    known = subject.facts.names.get("engines", [])
    if name is None and known:
        usual = "hf" if subject.on_cpu else "vllm"
        yield found("V16", usual=usual)
        return
    if not known or name in known or (name == "hf" and (subject.on_cpu or not subject.at_least("0.7.0"))):
        return
    if name == "hf":
        yield found("V17.cpu-only")
        return
    usable = ["hf"] if subject.on_cpu else sorted(known, key=lambda each: str(each) != "vllm")
    yield found("V17.unknown", name=name, near=did_you_mean(str(name), known), usable=usable)


@of_trainer
def mode(subject: Subject) -> Findings:
    """V14: from 0.7 on, the only rollout mode is async."""
    value = subject.get(MODE)
    if value not in (None, "async") and subject.at_least("0.7.0"):
        yield found("V14", value=value)


def parallel_engine(subject: Subject) -> Findings:
    """V17: no engine supports pipeline parallelism; experts are split over all GPUs of an engine."""
    if not subject.at_least("0.7.0") or subject.get(ENGINE) not in ("vllm", "sglang", "trtllm"):
        return
    key = f"{ROLLOUT}.pipeline_model_parallel_size"
    pipeline, experts = subject.whole(key), subject.whole(f"{ROLLOUT}.expert_parallel_size")
    if pipeline is not None and pipeline > 1:
        yield found("V17.pipeline", pipeline=pipeline)
    tensor = subject.whole(f"{ROLLOUT}.tensor_model_parallel_size") or 1
    data = subject.whole(f"{ROLLOUT}.data_parallel_size") or 1
    if experts is not None and experts > 1 and experts != tensor * data:
        keys = [f"{ROLLOUT}.{name}_parallel_size" for name in ("expert", "tensor_model", "data")]
        yield found(
            "V17.experts",
            experts=experts,
            tensor=tensor,
            data=data,
            engine=tensor * data,
            keys=keys,
            better=sorted({1, tensor * data}),
        )


def sequences_over_gpus(subject: Subject) -> Findings:
    """V10: sequence parallelism requires a size that divides the GPUs, and packed sequences."""
    size = subject.sequence_parallel()
    if subject.gpus % size:
        yield found("V10.size", size=size, gpus=subject.gpus, better=dividing(subject.gpus, size))
    elif size > 1 and not subject.get(f"{MODEL}.use_remove_padding", True):
        yield found("V10.padding", size=size)
    own = subject.sequence_parallel(CRITIC)
    if subject.has_critic and subject.gpus % own:
        yield found("V10.critic-size", own=own, gpus=subject.gpus, better=dividing(subject.gpus, own))
    elif subject.has_critic and own > 1 and not subject.get(f"{CRITIC}.model.use_remove_padding", True):
        yield found("V10.critic-padding", own=own)


@of_trainer
def conversations(subject: Subject) -> Findings:
    """V15: up to 0.5, multi-turn rollouts require tools or an interaction, and GRPO."""
    if subject.get(f"{MULTI_TURN}.enable") is not True or subject.at_least("0.6.0"):
        return
    tools = [f"{MULTI_TURN}.tool_config_path", f"{MULTI_TURN}.interaction_config_path"]
    if all(subject.get(key) is None for key in tools):
        yield found("V15.tools", tools=tools[0], keys=[f"{MULTI_TURN}.enable", *tools])
    if subject.get("algorithm.adv_estimator") != "grpo":
        yield found("V15.grpo", version=subject.version)


@of_keys
def engine_words(subject: Subject) -> Findings:
    """ENGINE-2: the engine knows the dtype; vLLM also the load format, the log-probabilities and the request order."""
    engine = {"vllm": "vLLM", "sglang": "SGLang"}.get(str(subject.get(ENGINE)))
    if engine is None:
        return
    dtype, form = subject.get(f"{ROLLOUT}.dtype"), subject.get(f"{ROLLOUT}.load_format")
    if isinstance(dtype, str) and dtype not in known_names().engine_types:
        yield found("ENGINE-2.dtype", engine=engine, dtype=dtype)
    if engine != "vLLM":
        return
    if isinstance(form, str) and form not in known_names().load_formats and subject.at_least("0.9.0"):
        yield found("ENGINE-2.load-format", form=form, near=did_you_mean(form, known_names().load_formats))
    for name, known in known_names().vllm.items():
        value = subject.get(key := f"{ROLLOUT}.{name}")
        if isinstance(value, str) and value not in known:
            yield found(
                "ENGINE-2.option", name=name, value=value, near=did_you_mean(value, known), key=key, known=known
            )


OPTIONS = f"{ROLLOUT}.engine_kwargs.sglang"
SPLIT = f"{ROLLOUT}.disaggregation"
COMPARED = ("attention_backend", "load_format")
"""Options that SGLang's command line checks. veRL does not use it: a wrong value fails late in the start."""


def server_options(subject: Subject) -> Findings:
    """ENGINE-5: the installed SGLang has the server options and values that veRL passes.

    veRL: `sglang_rollout/async_sglang_server.py: launch_server`, which makes `ServerArgs` from its own keys and those
    below `engine_kwargs.sglang`.
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
            words: Words = {"name": name, "perhaps": perhaps(near), "near": near, "key": key}
            yield found("ENGINE-5.near" if near else "ENGINE-5.unknown", **words)
        elif name in COMPARED and isinstance(value, str) and allowed and value not in allowed:
            yield found(
                "ENGINE-5.value", name=name, value=value, near=did_you_mean(value, allowed), key=key, allowed=allowed
            )


RULES = (engine, mode, parallel_engine, sequences_over_gpus, conversations, engine_words, server_options)

"""What ppo-tui's CPU platform demands (`trainer.device=cpu`)."""

from launcher.preflight.config.base import Findings, error
from launcher.preflight.subject import Subject
from launcher.verl_config import ACTOR, CRITIC, MODEL, REF, ROLLOUT

SUPPORTED = "0.9.1"


def version(subject: Subject) -> Findings:
    """CPU-1: it is made for one version of veRL."""
    if subject.on_cpu and subject.version != SUPPORTED:
        message = f"the CPU platform works with veRL {SUPPORTED} only, and this is veRL {subject.version}"
        yield error("CPU-1", message, f"{subject.python} -m pip install verl=={SUPPORTED}", ["trainer.device"])


def sharding(subject: Subject) -> Findings:
    """CPU-2: fsdp cannot shard on a CPU, fsdp2 can."""
    if not subject.on_cpu:
        return
    blocks = [ACTOR, *([REF] if subject.has_reference else []), *([CRITIC] if subject.has_critic else [])]
    for block in blocks:
        key = f"{block}.strategy"
        if subject.get(key) == "fsdp":
            message = f"{key} is fsdp, which does not work on a CPU"
            fix = f"set {key} to fsdp2"
            yield error("CPU-2", message, fix, [key], {f"{block.rpartition('.')[2]}.strategy": "fsdp2"})


def engine(subject: Subject) -> Findings:
    """CPU-3: the engine is ppo-tui's own; vLLM and SGLang need a GPU."""
    key = f"{ROLLOUT}.name"
    if subject.on_cpu and subject.get(key) in ("vllm", "sglang", "trtllm"):
        message = f"the engine {subject.get(key)} needs a GPU"
        yield error("CPU-3", message, f"set {key} to hf", [key], {"rollout.engine": "hf"})


def memory_savers(subject: Subject) -> Findings:
    """CPU-4: what saves a GPU's memory needs one: fused kernels, activations in pinned memory."""
    for name in ("use_fused_kernels", "enable_activation_offload"):
        key = f"{MODEL}.{name}"
        if subject.on_cpu and subject.get(key) is True:
            message = f"{key} does not work on a CPU: veRL dies of it in the first step"
            yield error("CPU-4", message, f"set {key} to false", [key], {f"model.{name}": False})


RULES = (version, sharding, engine, memory_savers)

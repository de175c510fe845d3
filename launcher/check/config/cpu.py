"""Requirements of ppo-tui's CPU platform (`trainer.device=cpu`)."""

from launcher.check.config.base import Findings, error
from launcher.check.subject import Subject
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.verl.config import ACTOR, CRITIC, MODEL, REF, ROLLOUT


def version(subject: Subject) -> Findings:
    """CPU-1: it supports one version of veRL."""
    if subject.on_cpu and subject.version != SUPPORTED:
        message = f"the CPU platform supports only veRL {SUPPORTED}; this is veRL {subject.version}"
        yield error("CPU-1", message, f"run `{subject.python} -m pip install verl=={SUPPORTED}`", ["trainer.device"])


def sharding(subject: Subject) -> Findings:
    """CPU-2: fsdp does not work on a CPU, fsdp2 does."""
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
    """CPU-3: the rollout engine is `hf`, ppo-tui's own; vLLM and SGLang require a GPU."""
    key = f"{ROLLOUT}.name"
    if subject.on_cpu and subject.get(key) in ("vllm", "sglang", "trtllm"):
        message = f"the rollout engine {subject.get(key)} requires a GPU"
        yield error("CPU-3", message, f"set {key} to hf", [key], {"rollout.engine": "hf"})


def memory_savers(subject: Subject) -> Findings:
    """CPU-4: fused kernels and activation offloading require a GPU."""
    for name in ("use_fused_kernels", "enable_activation_offload"):
        key = f"{MODEL}.{name}"
        if subject.on_cpu and subject.get(key) is True:
            message = f"{key} does not work on a CPU: veRL fails in the first step"
            yield error("CPU-4", message, f"set {key} to false", [key], {f"model.{name}": False})


RULES = (version, sharding, engine, memory_savers)

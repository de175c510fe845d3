"""Requirements of ppo-tui's CPU platform (`trainer.device=cpu`)."""

from launcher.check.config.base import Findings
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.verl.config import ACTOR, CRITIC, MODEL, REF, ROLLOUT


def version(subject: Subject) -> Findings:
    """CPU-1: it supports one version of veRL."""
    if subject.on_cpu and subject.version != SUPPORTED:
        yield found("CPU-1", version=subject.version, python=subject.python)


def sharding(subject: Subject) -> Findings:
    """CPU-2: fsdp does not work on a CPU, fsdp2 does."""
    if not subject.on_cpu:
        return
    blocks = [ACTOR, *([REF] if subject.has_reference else []), *([CRITIC] if subject.has_critic else [])]
    for block in blocks:
        key = f"{block}.strategy"
        if subject.get(key) == "fsdp":
            yield found("CPU-2", key=key, group=block.rpartition(".")[2])


def engine(subject: Subject) -> Findings:
    """CPU-3: the rollout engine is `hf`, ppo-tui's own; vLLM and SGLang require a GPU."""
    key = f"{ROLLOUT}.name"
    if subject.on_cpu and subject.get(key) in ("vllm", "sglang", "trtllm"):
        yield found("CPU-3", value=subject.get(key))


def memory_savers(subject: Subject) -> Findings:
    """CPU-4: fused kernels and activation offloading require a GPU."""
    for name in ("use_fused_kernels", "enable_activation_offload"):
        key = f"{MODEL}.{name}"
        if subject.on_cpu and subject.get(key) is True:
            yield found("CPU-4", key=key, name=name)


RULES = (version, sharding, engine, memory_savers)

"""The sizes behind the memory estimate: models with training states, and tokens per pass."""

import os
from dataclasses import dataclass
from functools import cached_property

from launcher.core.errors import UserError
from launcher.estimate import models
from launcher.estimate.models import ModelFacts
from launcher.estimate.trained import Trained, copied, element, reference_first, trained
from launcher.machine.capacity import Machine
from launcher.preset.effective import EffectiveConfig
from launcher.preset.files import LoadedPreset
from launcher.preset.flow import flow
from launcher.verl import env as verl_env
from launcher.verl.config import (
    ACTOR,
    CORRECTION,
    CRITIC,
    CRITIC_PATH,
    ENGINE,
    MODEL,
    MODEL_LENGTH,
    MODEL_PATH,
    REF,
    REWARD_MODEL,
    ROLLOUT,
    TENSOR,
    TRANSFER,
    UTILISATION,
)

BUCKET = 2048  # MiB in which veRL hands the engine its weights unless set otherwise
OWN_UTILISATION = f"{ROLLOUT}.standalone_gpu_memory_utilization"
KV_CACHE = f"{ROLLOUT}.engine_kwargs.vllm.kv_cache_memory_bytes"


@dataclass(frozen=True, kw_only=True)
class PlacedConfig(EffectiveConfig):
    """A preset's effective configuration on one machine; `python`: the interpreter with its veRL."""

    loaded: LoadedPreset
    python: str
    machine: Machine

    @cached_property
    def env(self) -> dict[str, str]:
        """The run's environment: this process's, overridden by the preset's."""
        return {**os.environ, **self.loaded.preset.env}


@dataclass(frozen=True)
class MemoryInputs:
    """All inputs of the estimate. Token counts are for the largest micro-batch per GPU."""

    facts: ModelFacts
    actor: Trained
    critic: Trained | None
    critic_facts: ModelFacts | None
    critic_guessed: bool  # nothing is known about its model: it is counted as the actor's
    reference: int  # bytes of the reference policy, in host memory; 0 without one
    reference_first: int  # bytes of it on the GPU until its first pass, when FSDP moves it off
    gpus: int
    longest: int  # tokens of the longest prompt and response together
    update_tokens: int
    log_prob_tokens: int
    critic_tokens: int
    update_logit: float  # bytes for each token and word of the vocabulary
    log_prob_logit: float
    checkpointing: bool  # activations are recomputed instead of kept
    activation_offload: bool
    utilisation: float | None  # None: no engine that reserves
    kv_cache: int | None  # bytes that vLLM is set to take for it; then its share does not count
    max_num_seqs: int
    max_num_batched_tokens: int
    bucket: int  # bytes per transfer of weights from veRL to the engine; 0 if they are elsewhere
    own_utilisation: float | None  # for engines on separate GPUs
    transferred: int  # bytes of both buffers in which weights go to other GPUs
    aside: int  # bytes of weights that separate_async puts aside in host memory
    staged: bool  # weights that were moved off come back as a whole to be sent
    copied: int  # bytes of the copy that FSDP 1 makes of them
    of_free: bool  # sglang: the share applies to free memory at its start, without its working memory
    sleeps: bool  # the engine gives its memory back outside of rollouts
    eager: bool
    tensor_parallel: int
    max_model_len: int
    reward_model: float | None  # memory share of a reward model on these GPUs
    reward_model_sleeps: bool

    @property
    def at_start(self) -> int:
        """Bytes of the models on the GPU before the engine starts."""
        models = [model for model in (self.actor, self.critic) if model]
        return sum(model.idle(with_adam=False) for model in models) + self.reference_first


def plan(subject: PlacedConfig) -> MemoryInputs | None:
    """The memory inputs of a subject; None if its model is unknown or its engine is not FSDP."""
    env = subject.env
    facts = models.facts(str(subject.get(MODEL_PATH)), env=env)
    if facts is None or not subject.is_fsdp:
        return None
    critic_facts, guessed = None, False
    if subject.has_critic:
        path = str(subject.get(CRITIC_PATH) or facts.name)
        critic_facts = facts if path == facts.name else models.facts(path, env=env)
        guessed = critic_facts is None
        critic_facts = critic_facts or facts
    batches = flow(subject)
    engine = str(subject.get(ENGINE, "vllm"))
    utilisation = subject.get(UTILISATION, 0.5)
    reserves = engine in ("vllm", "sglang") and isinstance(utilisation, (int, float)) and not subject.on_cpu
    own = subject.number(OWN_UTILISATION) or utilisation if reserves and subject.is_separate else None
    reserves = reserves and subject.has_hybrid_engine
    update_logit, log_prob_logit = logit_bytes(subject)
    actor = trained(subject, ACTOR, facts, facts.parameters)
    # with LoRA the reference is the base model without its adapter
    reference = facts.parameters if subject.has_reference and not subject.has_lora else 0
    reference *= element(subject, f"{REF}.fsdp_config")
    kv_cache = subject.whole(KV_CACHE) if (reserves or own) and engine == "vllm" else None
    transferred = (subject.whole(f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes") or BUCKET) << 20
    together = subject.get(TRANSFER, "naive") == "naive" or subject.is_separate
    return MemoryInputs(
        facts=facts,
        actor=actor,
        critic=trained(subject, CRITIC, critic_facts, critic_facts.critic_parameters) if critic_facts else None,
        critic_facts=critic_facts,
        critic_guessed=guessed,
        reference=reference,
        reference_first=reference_first(subject, reference),
        gpus=batches.gpus,
        longest=batches.longest,
        update_tokens=batches.actor.largest,
        log_prob_tokens=batches.log_probs.largest,
        critic_tokens=batches.critic.largest if batches.critic else 0,
        update_logit=update_logit,
        log_prob_logit=log_prob_logit,
        checkpointing=subject.flag(f"{MODEL}.enable_gradient_checkpointing", True),
        activation_offload=subject.flag(f"{MODEL}.enable_activation_offload", False),
        utilisation=float(utilisation) if reserves else None,
        kv_cache=kv_cache,
        max_num_seqs=subject.whole(f"{ROLLOUT}.max_num_seqs") or 1024,
        max_num_batched_tokens=subject.whole(f"{ROLLOUT}.max_num_batched_tokens") or 8192,
        bucket=transferred if reserves and together else 0,
        own_utilisation=None if own is None else float(own),
        transferred=0 if own is None else 2 * transferred,
        aside=_aside(subject, actor),
        staged=not actor.fsdp2 or subject.has_lora,
        copied=copied(subject, actor, facts),
        of_free=engine == "sglang",
        sleeps=subject.flag(f"{ROLLOUT}.free_cache_engine", True),
        eager=subject.flag(f"{ROLLOUT}.enforce_eager", False),
        tensor_parallel=subject.whole(TENSOR) or 1,
        max_model_len=subject.whole(MODEL_LENGTH) or facts.sizes.context,
        reward_model=_reward_model(subject),
        reward_model_sleeps=subject.flag(f"{REWARD_MODEL}.rollout.free_cache_engine", True),
    )


def logit_bytes(subject: PlacedConfig) -> tuple[float, float]:
    """Bytes per token and vocabulary entry in the actor's update and its log-probability pass.

    Measured on an H100 and on real runs (docs/evidence/memory.md). One copy of the logits in bf16 is 2. torch's
    log-softmax keeps another copy in fp32 for its backward pass; flash-attn works in place. Without remove-padding veRL
    gathers the valid rows into a second copy, and computes entropy outside of torch.compile: the logits, their softmax
    and the product in fp32.
    """
    if subject.get(f"{MODEL}.use_fused_kernels", False):
        return 0.5, 0.5
    scaled = 0 if subject.get(f"{ROLLOUT}.temperature", 1.0) == 1 else 2  # logits over temperature
    entropy = bool(subject.get(f"{ACTOR}.entropy_coeff", 0) or subject.get(f"{ACTOR}.calculate_entropy", False))
    if not subject.get(f"{MODEL}.use_remove_padding", False):
        return (24 if entropy else 8) + scaled, 14 + scaled
    update = (4 if entropy else 2) if _flash_attn(subject) else 6
    lean = subject.get(f"{ACTOR}.fsdp_config.use_torch_compile", True) or subject.get(
        f"{ACTOR}.fsdp_config.entropy_from_logits_with_chunking", False
    )
    return update + scaled, (2 if lean else 14) + scaled


def _flash_attn(subject: PlacedConfig) -> bool:
    """Whether the run uses flash-attn's cross entropy, which needs no second copy of the logits."""
    if subject.machine.assumed:
        return subject.get(f"{MODEL}.override_config.attn_implementation") in (None, "flash_attention_2")
    try:
        return "flash-attn" in verl_env.probe(subject.python).packages
    except UserError:
        return False


def _aside(subject: PlacedConfig, actor: Trained) -> int:
    """Old weights, plus the current ones while old ones compute log-probabilities."""
    if not subject.is_separate or subject.get(f"{CORRECTION}.bypass_mode") is True:
        return 0
    return actor.weights * min(2, subject.updates_a_step)


def _reward_model(subject: PlacedConfig) -> float | None:
    share = subject.get(f"{REWARD_MODEL}.rollout.gpu_memory_utilization", 0.5)
    shared = subject.get(f"{REWARD_MODEL}.enable") and not subject.get(f"{REWARD_MODEL}.enable_resource_pool")
    return float(share) if shared and isinstance(share, (int, float)) and not subject.on_cpu else None

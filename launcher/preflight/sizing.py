"""What a preset makes big: the models with their training states, and the tokens of one pass."""

from __future__ import annotations

from dataclasses import dataclass

from launcher import verl_env
from launcher.errors import UserError
from launcher.preflight import models
from launcher.preflight.config.base import (
    ACTOR,
    MODEL,
    REF,
    ROLLOUT,
    data_parallel,
    has_critic,
    has_lora,
    has_reference,
    is_fsdp,
    is_v1,
    sequence_parallel,
    whole,
)
from launcher.preflight.models import ModelFacts
from launcher.preflight.subject import Subject
from launcher.preflight.trained import Trained, copied, element, reference_first, trained

BUCKET = 2048  # MiB in which veRL hands the engine its weights unless told otherwise
JUDGE = "reward.reward_model"
CRITIC_TOKENS = 32768  # veRL's own budget from 0.8 on, which no key of its configuration tree names


@dataclass(frozen=True)
class Plan:
    """Everything the estimate is made of. Tokens are those of the largest micro-batch on one GPU."""

    facts: ModelFacts
    actor: Trained
    critic: Trained | None
    critic_facts: ModelFacts | None
    critic_guessed: bool  # nothing is known about its model: it is counted as the actor's
    reference: int  # bytes of the reference policy, which lies in host memory; 0 without one
    reference_first: int  # bytes of it on the GPU until its first pass, when FSDP moves it off
    gpus: int
    longest: int  # tokens of the longest prompt and response together
    update_tokens: int
    log_prob_tokens: int
    critic_tokens: int
    update_logit: float  # bytes for each token and word of the vocabulary
    log_prob_logit: float
    checkpointing: bool  # activations are computed again instead of kept
    activation_offload: bool
    utilisation: float | None  # None: no engine that reserves
    kv_cache: int | None  # bytes that vLLM was told to take for it; then its share does not count
    max_num_seqs: int
    max_num_batched_tokens: int
    bucket: int  # bytes in which veRL hands the engine its weights; 0 when they lie elsewhere
    staged: bool  # weights that were moved off come back as a whole to be sent
    copied: int  # bytes of the copy that FSDP 1 makes of them
    of_free: bool  # sglang: the share is of what is free at its start, and its own work is not in it
    sleeps: bool  # the engine gives its memory back outside of rollouts
    eager: bool
    tensor_parallel: int
    max_model_len: int
    judge: float | None  # share of a reward model on the same GPUs
    judge_sleeps: bool

    @property
    def at_start(self) -> int:
        """Bytes of the models on the GPU before the engine starts."""
        models = [model for model in (self.actor, self.critic) if model]
        return sum(model.idle(with_adam=False) for model in models) + self.reference_first


def plan(subject: Subject) -> Plan | None:
    """Reads the subject; None when nothing is known about its model, or its engine is none of FSDP."""
    env = subject.env
    facts = models.facts(str(subject.value(f"{MODEL}.path")), env=env)
    if facts is None or not is_fsdp(subject):
        return None
    critic_facts, guessed = None, False
    if has_critic(subject):
        path = str(subject.value("critic.model.path") or facts.name)
        critic_facts = facts if path == facts.name else models.facts(path, env=env)
        guessed = critic_facts is None
        critic_facts = critic_facts or facts
    longest = _int(subject, "data.max_prompt_length", 512) + _int(subject, "data.max_response_length", 512)
    sharing = sequence_parallel(subject)
    n = _int(subject, f"{ROLLOUT}.n", 1)
    mini = _int(subject, f"{ACTOR}.ppo_mini_batch_size", 256)
    batch = max(_int(subject, "data.train_batch_size", 1024), mini)
    dynamic = bool(subject.value(f"{ACTOR}.use_dynamic_bsz", False))

    packed = bool(subject.value(f"{MODEL}.use_remove_padding", False))
    critic_packed = bool(subject.value("critic.model.use_remove_padding", packed))

    def tokens(
        rows: int, budget: str, default: int, micro: str, *, by_tokens: bool = dynamic, packed: bool = packed
    ) -> int:
        rows = max(1, rows * n // data_parallel(subject))
        if by_tokens:
            # the budget counts tokens without their padding, which may well double them
            most = max(_int(subject, budget, default), longest) * (1 if packed else 2)
            return min(most, rows * longest) // sharing
        return min(_int(subject, micro, 1), rows) * longest // sharing

    always_dynamic = subject.at_least("0.8.0")
    critic_dynamic = always_dynamic or bool(subject.value("critic.use_dynamic_bsz", dynamic))
    lora = _int(subject, f"{MODEL}.lora_rank", 0)
    engine = str(subject.value(f"{ROLLOUT}.name", "vllm"))
    utilisation = subject.value(f"{ROLLOUT}.gpu_memory_utilization", 0.5)
    reserves = engine in ("vllm", "sglang") and isinstance(utilisation, (int, float)) and not subject.cpu
    reserves = reserves and not _apart(subject)
    update_logit, log_prob_logit = logit_bytes(subject)
    actor = trained(subject, "actor", facts, facts.parameters, f"{ACTOR}.fsdp_config", lora)
    # with LoRA the reference is the base model without its adapter
    reference = facts.parameters if has_reference(subject) and not has_lora(subject) else 0
    reference *= element(subject, f"{REF}.fsdp_config")
    kv_cache = subject.value(f"{ROLLOUT}.engine_kwargs.vllm.kv_cache_memory_bytes")
    told = reserves and engine == "vllm" and isinstance(kv_cache, int) and kv_cache > 0
    together = subject.value(f"{ROLLOUT}.checkpoint_engine.backend", "naive") == "naive"
    return Plan(
        facts=facts,
        actor=actor,
        critic=trained(
            subject,
            "critic",
            critic_facts,
            critic_facts.critic_parameters,
            "critic.fsdp",
            _int(subject, "critic.model.lora_rank", 0),
        )
        if critic_facts
        else None,
        critic_facts=critic_facts,
        critic_guessed=guessed,
        reference=reference,
        reference_first=reference_first(subject, reference),
        gpus=subject.gpus,
        longest=longest,
        update_tokens=tokens(
            mini, f"{ACTOR}.ppo_max_token_len_per_gpu", 16384, f"{ACTOR}.ppo_micro_batch_size_per_gpu"
        ),
        log_prob_tokens=tokens(
            batch, f"{ROLLOUT}.log_prob_max_token_len_per_gpu", 16384, f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"
        ),
        critic_tokens=tokens(
            mini,
            "critic.ppo_infer_max_token_len_per_gpu",
            CRITIC_TOKENS,
            "critic.ppo_micro_batch_size_per_gpu",
            by_tokens=critic_dynamic,
            packed=critic_packed,
        ),
        update_logit=update_logit,
        log_prob_logit=log_prob_logit,
        checkpointing=bool(subject.value(f"{MODEL}.enable_gradient_checkpointing", True)),
        activation_offload=bool(subject.value(f"{MODEL}.enable_activation_offload", False)),
        utilisation=float(utilisation) if reserves else None,
        kv_cache=kv_cache if told else None,
        max_num_seqs=_int(subject, f"{ROLLOUT}.max_num_seqs", 1024),
        max_num_batched_tokens=_int(subject, f"{ROLLOUT}.max_num_batched_tokens", 8192),
        bucket=_int(subject, f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes", BUCKET) << 20
        if reserves and together
        else 0,
        staged=not actor.fsdp2 or has_lora(subject),
        copied=copied(subject, actor, facts),
        of_free=engine == "sglang",
        sleeps=bool(subject.value(f"{ROLLOUT}.free_cache_engine", True)),
        eager=bool(subject.value(f"{ROLLOUT}.enforce_eager", False)),
        tensor_parallel=max(1, _int(subject, f"{ROLLOUT}.tensor_model_parallel_size", 1)),
        max_model_len=_int(subject, f"{ROLLOUT}.max_model_len", facts.sizes.context),
        judge=_judge(subject),
        judge_sleeps=bool(subject.value(f"{JUDGE}.rollout.free_cache_engine", True)),
    )


def logit_bytes(subject: Subject) -> tuple[float, float]:
    """Bytes that the actor's update and its log-probability pass need for each token and word.

    Measured on an H100 and on real runs (docs/memory.md). One copy of the logits in bf16 is 2. The backward
    pass of torch's log-softmax keeps another in fp32, flash-attn's works in place. Without remove-padding
    veRL gathers the valid rows into a second copy, and computes entropy outside of torch.compile: the
    logits, their softmax and the product in fp32.
    """
    if subject.value(f"{MODEL}.use_fused_kernels", False):
        return 0.5, 0.5
    scaled = 0 if subject.value(f"{ROLLOUT}.temperature", 1.0) == 1 else 2  # logits over temperature
    entropy = bool(subject.value(f"{ACTOR}.entropy_coeff", 0) or subject.value(f"{ACTOR}.calculate_entropy", False))
    if not subject.value(f"{MODEL}.use_remove_padding", False):
        return (24 if entropy else 8) + scaled, 14 + scaled
    update = (4 if entropy else 2) if _flash_attn(subject) else 6
    lean = subject.value(f"{ACTOR}.fsdp_config.use_torch_compile", True) or subject.value(
        f"{ACTOR}.fsdp_config.entropy_from_logits_with_chunking", False
    )
    return update + scaled, (2 if lean else 14) + scaled


def _flash_attn(subject: Subject) -> bool:
    """Whether flash-attn's cross entropy, which needs no second copy of the logits, will be used."""
    if subject.machine.assumed:
        return subject.value(f"{MODEL}.override_config.attn_implementation") in (None, "flash_attention_2")
    try:
        return "flash-attn" in verl_env.probe(subject.python).packages
    except UserError:
        return False


def _apart(subject: Subject) -> bool:
    """Whether the engine has GPUs of its own alone; otherwise there is one beside the trainer, too."""
    mode = subject.value("trainer.v1.trainer_mode") if is_v1(subject) else "sync"
    return mode == "separate_async" and not subject.value("actor_rollout_ref.hybrid_engine", True)


def _judge(subject: Subject) -> float | None:
    share = subject.value(f"{JUDGE}.rollout.gpu_memory_utilization", 0.5)
    shared = subject.value(f"{JUDGE}.enable") and not subject.value(f"{JUDGE}.enable_resource_pool")
    return float(share) if shared and isinstance(share, (int, float)) and not subject.cpu else None


def _int(subject: Subject, key: str, default: int) -> int:
    """A whole number above 0, else the default: wrong values are told by the checks of the configuration."""
    return whole(subject, key) or default

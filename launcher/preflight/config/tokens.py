"""Budgets in tokens: P15, P16 and P18 of verl.md, and what vLLM itself demands."""

from __future__ import annotations

from launcher.preflight.config.base import (
    ACTOR,
    CRITIC,
    DATA,
    DYNAMIC,
    REF,
    ROLLOUT,
    Findings,
    dynamic,
    error,
    has_critic,
    has_lora,
    has_reference,
    sequence_parallel,
    warning,
    whole,
)
from launcher.preflight.subject import Subject

PROMPT, RESPONSE = f"{DATA}.max_prompt_length", f"{DATA}.max_response_length"
LOG_PROB_DYNAMIC = f"{ROLLOUT}.log_prob_use_dynamic_bsz"
BATCHED, MODEL_LEN, SEQS = (f"{ROLLOUT}.max_num_batched_tokens", f"{ROLLOUT}.max_model_len", f"{ROLLOUT}.max_num_seqs")


def dynamic_everywhere(subject: Subject) -> Findings:
    """P15: the actor's update and its log-probabilities are both dynamic or both not (0.8 on)."""
    actor, rollout = subject.value(DYNAMIC), subject.value(LOG_PROB_DYNAMIC)
    if isinstance(actor, bool) and isinstance(rollout, bool) and actor != rollout and subject.at_least("0.8.0"):
        yield error(
            "P15",
            [DYNAMIC, LOG_PROB_DYNAMIC],
            f"{DYNAMIC} is {str(actor).lower()} and {LOG_PROB_DYNAMIC} is {str(rollout).lower()}: "
            "veRL wants them equal and dies of a bare AssertionError when the model is loaded",
            f"leave {LOG_PROB_DYNAMIC} out: it follows the actor",
        )


def budgets(subject: Subject) -> Findings:
    """P16: a dynamic micro-batch holds at least one prompt and answer of full length."""
    prompt, response = whole(subject, PROMPT), whole(subject, RESPONSE)
    if prompt is None or response is None:
        return
    parallel = sequence_parallel(subject)
    places = [
        (f"{ACTOR}.ppo_max_token_len_per_gpu", "actor.ppo_max_token_len_per_gpu", parallel, dynamic(subject)),
        (
            f"{ROLLOUT}.log_prob_max_token_len_per_gpu",
            "rollout.log_prob_max_token_len_per_gpu",
            parallel,
            dynamic(subject) and subject.is_set(f"{ROLLOUT}.log_prob_max_token_len_per_gpu"),
        ),
        (
            f"{REF}.log_prob_max_token_len_per_gpu",
            "ref.log_prob_max_token_len_per_gpu",
            parallel,
            dynamic(subject)
            and has_reference(subject)
            and not has_lora(subject)
            and subject.is_set(f"{REF}.log_prob_max_token_len_per_gpu"),
        ),
        (
            f"{CRITIC}.ppo_infer_max_token_len_per_gpu",
            "critic.ppo_max_token_len_per_gpu",
            whole(subject, f"{CRITIC}.fsdp.ulysses_sequence_parallel_size") or 1,
            has_critic(subject) and (subject.at_least("0.8.0") or dynamic(subject)),
        ),
    ]
    for key, field, gpus, used in places:
        budget = whole(subject, key)
        if budget is None or not used or budget * gpus >= prompt + response:
            continue
        need = -(-(prompt + response) // gpus)
        over = f" x {gpus} GPUs of a sequence" if gpus > 1 else ""
        yield error(
            "P16",
            [key, PROMPT, RESPONSE],
            f"{key} = {budget} tokens{over} cannot hold prompt {prompt} + answer {response} = "
            f"{prompt + response} tokens: veRL dies at the first sequence that does not fit",
            f"set it to {need} or more; {2 * need} and up is quick",
            {field: max(2 * need, 4096)},
        )


def context(subject: Subject) -> Findings:
    """P18: the engine's context has room for the longest prompt and its answer."""
    prompt, response, limit = whole(subject, PROMPT), whole(subject, RESPONSE), whole(subject, MODEL_LEN)
    if prompt is None or response is None or limit is None or limit >= prompt + response:
        return
    if limit <= prompt:
        message = f"leaves no room to answer a prompt of {prompt} tokens, which {PROMPT} allows"
    else:
        message = f"cuts answers to a prompt of {prompt} tokens at {limit - prompt} of {response} tokens"
    yield warning(
        "P18",
        [MODEL_LEN, PROMPT, RESPONSE],
        f"{MODEL_LEN} = {limit} {message}",
        f"set it to {prompt + response}",
        {"rollout.max_model_len": prompt + response},
    )


def engine_batches(subject: Subject) -> Findings:
    """ENGINE-1: vLLM's tokens a pass are no fewer than its sequences, nor than a prompt it cannot cut."""
    batched, limit = whole(subject, BATCHED), whole(subject, MODEL_LEN)
    sequences = whole(subject, SEQS)
    if batched is None or subject.value(f"{ROLLOUT}.name") != "vllm":
        return
    if sequences is not None and batched < sequences:
        yield error(
            "ENGINE-1",
            [BATCHED, SEQS],
            f"{BATCHED} = {batched} is below {SEQS} = {sequences}, which vLLM refuses",
            f"set {BATCHED} to {max(8192, sequences)}",
            {"rollout.max_num_batched_tokens": max(8192, sequences)},
        )
    chunked = subject.value(f"{ROLLOUT}.enable_chunked_prefill", True)
    if limit is not None and not chunked and batched < limit:
        yield error(
            "ENGINE-1",
            [BATCHED, MODEL_LEN, f"{ROLLOUT}.enable_chunked_prefill"],
            f"{BATCHED} = {batched} is below {MODEL_LEN} = {limit}, which vLLM refuses without chunked prefill",
            f"set {ROLLOUT}.enable_chunked_prefill to true, or {BATCHED} to {limit}",
            {"rollout.enable_chunked_prefill": True},
        )


RULES = (dynamic_everywhere, budgets, context, engine_batches)

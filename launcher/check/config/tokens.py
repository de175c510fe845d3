"""Token budgets: P15, P16 and P18, and vLLM's own requirements.

veRL: `verl/workers/engine_workers.py: ActorRolloutRefWorker.init_model`, `verl/utils/seqlen_balancing.py:
rearrange_micro_batches`.
"""

from launcher.check.config.base import Findings
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.core.format import counted
from launcher.verl.config import ACTOR, CRITIC, DYNAMIC, LOG_PROB_DYNAMIC, MODEL_LENGTH, PROMPT, REF, RESPONSE, ROLLOUT

BATCHED, SEQS = f"{ROLLOUT}.max_num_batched_tokens", f"{ROLLOUT}.max_num_seqs"


def dynamic_everywhere(subject: Subject) -> Findings:
    """P15: micro-batches are dynamic for the actor's update and its log-probabilities, or for neither (0.8 on)."""
    actor, rollout = subject.get(DYNAMIC), subject.get(LOG_PROB_DYNAMIC)
    if isinstance(actor, bool) and isinstance(rollout, bool) and actor != rollout and subject.at_least("0.8.0"):
        yield found("P15", actor=actor, rollout=rollout)


def budgets(subject: Subject) -> Findings:
    """P16: a dynamic micro-batch has room for the longest prompt and response."""
    prompt, response = subject.whole(PROMPT), subject.whole(RESPONSE)
    if prompt is None or response is None:
        return
    parallel = subject.sequence_parallel()
    places = [
        (f"{ACTOR}.ppo_max_token_len_per_gpu", "actor.ppo_max_token_len_per_gpu", parallel, subject.dynamic),
        (
            f"{ROLLOUT}.log_prob_max_token_len_per_gpu",
            "rollout.log_prob_max_token_len_per_gpu",
            parallel,
            subject.dynamic and subject.is_set(f"{ROLLOUT}.log_prob_max_token_len_per_gpu"),
        ),
        (
            f"{REF}.log_prob_max_token_len_per_gpu",
            "ref.log_prob_max_token_len_per_gpu",
            parallel,
            subject.dynamic
            and subject.has_reference
            and not subject.has_lora
            and subject.is_set(f"{REF}.log_prob_max_token_len_per_gpu"),
        ),
        (
            f"{CRITIC}.ppo_infer_max_token_len_per_gpu",
            "critic.ppo_max_token_len_per_gpu",
            subject.sequence_parallel(CRITIC),
            subject.has_critic and (subject.at_least("0.8.0") or subject.dynamic),
        ),
    ]
    for key, field, gpus, used in places:
        budget = subject.whole(key)
        if budget is None or not used or budget * gpus >= prompt + response:
            continue
        need = -(-(prompt + response) // gpus)
        over = f" x {counted(gpus, 'GPU')} per sequence" if gpus > 1 else ""
        yield found(
            "P16",
            key=key,
            budget=budget,
            over=over,
            prompt=prompt,
            response=response,
            longest=prompt + response,
            need=need,
            field=field,
            fast=max(2 * need, 4096),
        )


def context(subject: Subject) -> Findings:
    """P18: the engine's context has room for the longest prompt and response."""
    prompt, response, limit = subject.whole(PROMPT), subject.whole(RESPONSE), subject.whole(MODEL_LENGTH)
    if prompt is None or response is None or limit is None or limit >= prompt + response:
        return
    if limit <= prompt:
        message = f"leaves no room for a response to a prompt of {prompt} tokens, which {PROMPT} allows"
    else:
        message = f"cuts responses to a prompt of {prompt} tokens at {limit - prompt} of {response} tokens"
    yield found("P18.short", limit=limit, effect=message, longest=prompt + response)


def engine_batches(subject: Subject) -> Findings:
    """ENGINE-1: vLLM's tokens per pass are at least its sequences, and at least an unchunked prompt."""
    batched, limit = subject.whole(BATCHED), subject.whole(MODEL_LENGTH)
    sequences = subject.whole(SEQS)
    if batched is None or subject.get(f"{ROLLOUT}.name") != "vllm":
        return
    if sequences is not None and batched < sequences:
        yield found("ENGINE-1.sequences", batched=batched, sequences=sequences, enough=max(8192, sequences))
    chunked = subject.get(f"{ROLLOUT}.enable_chunked_prefill", True)
    if limit is not None and not chunked and batched < limit:
        yield found("ENGINE-1.chunks", batched=batched, limit=limit)


RULES = (dynamic_everywhere, budgets, context, engine_batches)

"""Token budgets: P15, P16 and P18, and what vLLM itself requires.

veRL: `verl/workers/engine_workers.py: ActorRolloutRefWorker.init_model`,
`verl/utils/seqlen_balancing.py: rearrange_micro_batches`.
"""

from launcher.check.config.base import Findings, error, warning
from launcher.check.subject import Subject
from launcher.core.format import counted
from launcher.verl.config import ACTOR, CRITIC, DYNAMIC, LOG_PROB_DYNAMIC, MODEL_LENGTH, PROMPT, REF, RESPONSE, ROLLOUT

BATCHED, SEQS = f"{ROLLOUT}.max_num_batched_tokens", f"{ROLLOUT}.max_num_seqs"


def dynamic_everywhere(subject: Subject) -> Findings:
    """P15: micro-batches are dynamic for the actor's update and its log-probabilities, or for neither (0.8 on)."""
    actor, rollout = subject.get(DYNAMIC), subject.get(LOG_PROB_DYNAMIC)
    if isinstance(actor, bool) and isinstance(rollout, bool) and actor != rollout and subject.at_least("0.8.0"):
        message = (
            f"{DYNAMIC} is {str(actor).lower()} and {LOG_PROB_DYNAMIC} is {str(rollout).lower()}: veRL requires equal "
            "values and fails with a bare AssertionError at model load"
        )
        yield error("P15", message, f"remove {LOG_PROB_DYNAMIC}; it follows the actor", [DYNAMIC, LOG_PROB_DYNAMIC])


def budgets(subject: Subject) -> Findings:
    """P16: a dynamic micro-batch has room for a prompt and response of full length."""
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
        message = (
            f"{key} = {budget} tokens{over} is less than prompt {prompt} + response {response} = "
            f"{prompt + response} tokens: veRL fails at the first sequence that does not fit"
        )
        fix = f"set it to {need} or more; {2 * need} or more is faster"
        yield error("P16", message, fix, [key, PROMPT, RESPONSE], {field: max(2 * need, 4096)})


def context(subject: Subject) -> Findings:
    """P18: the engine's context has room for the longest prompt and response."""
    prompt, response, limit = subject.whole(PROMPT), subject.whole(RESPONSE), subject.whole(MODEL_LENGTH)
    if prompt is None or response is None or limit is None or limit >= prompt + response:
        return
    if limit <= prompt:
        message = f"leaves no room for a response to a prompt of {prompt} tokens, which {PROMPT} allows"
    else:
        message = f"cuts responses to a prompt of {prompt} tokens at {limit - prompt} of {response} tokens"
    message = f"{MODEL_LENGTH} = {limit} {message}"
    fix = f"set it to {prompt + response}"
    yield warning("P18", message, fix, [MODEL_LENGTH, PROMPT, RESPONSE], {"rollout.max_model_len": prompt + response})


def engine_batches(subject: Subject) -> Findings:
    """ENGINE-1: vLLM's tokens per pass are not fewer than its sequences, nor than a prompt that is not chunked."""
    batched, limit = subject.whole(BATCHED), subject.whole(MODEL_LENGTH)
    sequences = subject.whole(SEQS)
    if batched is None or subject.get(f"{ROLLOUT}.name") != "vllm":
        return
    if sequences is not None and batched < sequences:
        message = f"{BATCHED} = {batched} is below {SEQS} = {sequences}, which vLLM rejects"
        fix = f"set {BATCHED} to {max(8192, sequences)}"
        yield error("ENGINE-1", message, fix, [BATCHED, SEQS], {"rollout.max_num_batched_tokens": max(8192, sequences)})
    chunked = subject.get(f"{ROLLOUT}.enable_chunked_prefill", True)
    if limit is not None and not chunked and batched < limit:
        message = f"{BATCHED} = {batched} is below {MODEL_LENGTH} = {limit}, which vLLM rejects without chunked prefill"
        fix = f"set {ROLLOUT}.enable_chunked_prefill to true, or set {BATCHED} to {limit}"
        change = {"rollout.enable_chunked_prefill": True}
        yield error("ENGINE-1", message, fix, [BATCHED, MODEL_LENGTH, f"{ROLLOUT}.enable_chunked_prefill"], change)


RULES = (dynamic_everywhere, budgets, context, engine_batches)

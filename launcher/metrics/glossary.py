"""What the keys in veRL's step lines mean, and in which unit they are.

Names that end in `/mean`, `/max`, `/min` are one figure over the samples of a batch; the table has that
figure once. `*` stands for anything. The first line that fits is the one that holds: exact names come first.
"""

import functools
import re
from fnmatch import translate
from typing import NamedTuple

_TABLE = """
# reward, advantage, critic
critic/score |  | reward of a response before any KL penalty; also logged without a critic
critic/rewards |  | reward of a response after the KL penalty; equals critic/score without one
critic/advantages |  | advantage of a token; all 0 means nothing to learn from
critic/returns |  | target of the critic (GRPO: the advantages)
critic/values |  | prediction of the critic for a token
critic/vf_explained_var |  | share of the variance of returns that the critic explains: 1 all, 0 none, <0 harmful
critic/vf_loss |  | squared error of the critic against the returns
critic/vf_clipfrac | share | tokens with a clipped value update
critic/vpred_mean |  | mean prediction of the critic during its update
critic/loss |  | total loss of the critic
critic/kl | nats | KL to the reference in the reward (veRL up to 0.3)
critic/kl_coeff |  | coefficient of that KL penalty (veRL up to 0.3)

# policy
actor/entropy | nats | uncertainty of the policy per token, before the update; near 0 it no longer explores
actor/entropy_loss | nats | entropy during the update, not a loss (main metric up to veRL 0.4.0)
actor/pg_loss |  | policy-gradient loss; normally near 0, its size means little
actor/loss |  | total loss of the actor: policy loss plus KL and entropy terms
actor/pg_clipfrac | share | tokens with a clipped update; 0 with one update per batch
actor/pg_clipfrac_lower | share | tokens clipped by the lower bound of dual-clip PPO
actor/ppo_kl | nats | drift of the policy within this step, not the distance to the reference
actor/kl_loss | nats | KL to the reference in the loss
actor/kl_coef |  | coefficient of the KL loss
actor/reward_kl_penalty | nats | KL to the reference, as subtracted from the reward; k1 can be negative
actor/reward_kl_penalty_coeff |  | current coefficient of the KL penalty in the reward
*/grad_norm |  | gradient norm before clipping; nan or inf means a skipped update
*/lr |  | learning rate after the step

# memory and speed
*perf/max_memory_allocated_gb | GiB | peak GPU memory of the training process held by tensors
*perf/max_memory_reserved_gb | GiB | peak GPU memory reserved by the training process
*perf/cpu_memory_used_gb | GiB | host memory in use on the machine
perf/mfu/* | share | achieved share of the GPU's peak FLOPS; 0 for GPUs that veRL does not recognize
perf/total_num_tokens | tok | prompt and response tokens in this step
perf/time_per_step | s | duration of the step; without validation since veRL 0.6
perf/throughput | tok/s | tokens per second per GPU
global_seqlen/minmax_diff | tok | difference between the largest and the smallest GPU share before balancing
global_seqlen/balanced_max | tok | largest GPU share of the batch after balancing
global_seqlen/balanced_min | tok | smallest GPU share of the batch after balancing
global_seqlen | tok | tokens of the batch on one GPU

# lengths and turns
response_length/clip_ratio | share | responses at the maximum length: of the batch in veRL 0.9, else the limit
response_length_non_aborted/clip_ratio | share | the same, without responses of length 0
response_length_non_aborted | tok | length of a response, without those of length 0
response_length | tok | length of a response
response/aborted_ratio | share | empty responses
prompt_length/clip_ratio | share | prompts at the maximum length: of the batch in veRL 0.9, else the limit
prompt_length | tok | length of a prompt
*num_turns | turns | messages in a chat; 2 is one prompt and one response
tool_call_counts | calls | tool calls in a chat

# progress, rollout against training
training/global_step |  | step number
training/epoch |  | epoch number, from 0
training/rollout_probs_diff_max |  | largest difference between rollout and training probability of a token
training/rollout_probs_diff_mean |  | mean difference between the two probabilities; above 0.01 is suspicious
training/rollout_probs_diff_std |  | standard deviation of the difference between the two probabilities
training/rollout_probs_diff_valid |  | 1 if that difference could be computed
training/rollout_actor_probs_pearson_corr |  | correlation of the two probabilities; should be near 1
rollout_corr/training_ppl |  | perplexity of the responses under the training engine
rollout_corr/rollout_ppl |  | perplexity of the responses under the rollout engine
rollout_corr/training_log_ppl | nats | log perplexity under the training engine
rollout_corr/rollout_log_ppl | nats | log perplexity under the rollout engine
rollout_corr/log_ppl_abs_diff | nats | absolute difference between the two log perplexities
rollout_corr/log_ppl_diff* | nats | difference between the two log perplexities
rollout_corr/ppl_ratio |  | training perplexity divided by rollout perplexity; 1 if the engines agree
rollout_corr/kl | nats | KL between rollout and training engine, not the KL to the reference
rollout_corr/k3_kl | nats | the same KL, with an estimator that is never negative
rollout_corr/chi2_token |  | chi-squared distance between the engines, per token
rollout_corr/chi2_seq |  | chi-squared distance between the engines, per response
rollout_corr/rollout_is_eff_sample_size | share | effective sample size after importance weighting
rollout_corr/rollout_is_* |  | importance weights that correct for the rollout engine
rollout_corr/rollout_rs_* |  | samples rejected because the engines disagree
training/off_policy/trajectory_spans | versions | model versions that generated one response; 1 if synchronous
training/off_policy/trajectory_staleness | versions | age of a response in model versions; 0 if synchronous
training/off_policy/trajectory_staleness_worst | versions | age of the oldest token of a response in model versions
training/off_policy/evicted_samples* |  | samples dropped because they were too old
training/rollout_failure/evicted_samples |  | samples dropped because their rollout failed
training/filter_groups/* |  | groups dropped because their rewards are equal (DAPO)
variance_proxy/* |  | estimated noise of the policy gradient

# time
timing_s/step | s | the whole step
timing_s/gen | s | generating all responses, with their rewards in veRL 0.9
timing_s/reward | s | computing rewards
timing_s/old_log_prob | s | computing log-probabilities under the policy before its update
timing_s/ref | s | computing log-probabilities under the reference
timing_s/values | s | computing the critic's predictions
timing_s/adv | s | computing advantages
timing_s/update_critic | s | training the critic
timing_s/update_actor | s | training the policy
timing_s/update_weights | s | sending the new weights to the rollout engine
timing_s/reshard | s | resharding weights between training and rollout
timing_s/save_checkpoint | s | writing a checkpoint
timing_s/testing | s | validation
timing_s/agent_loop/num_preempted |  | times that the engine restarted a response because the cache was full
timing_s/agent_loop/* | s | time of the agent loop of one response: generation, tools, reward
timing_s/generat* | s | time that a rollout worker spent generating responses
timing_s/* | s | time of this part of the step
timing_per_token_ms/* | ms/tok | time of this part of the step, per token

# validation
val/test_score/* |  | validation score of this data source (veRL up to 0.3)
val-aux/*/acc_success_only/* |  | validation accuracy, without prompts with a failed rollout
val-core/* |  | main validation metric of this data source
val-aux/* |  | additional validation metric of this data source
"""
_OVER = {"mean": "mean over the batch", "max": "highest of the batch", "min": "lowest of the batch"}
_VARIANT = re.compile(r"/(mean|std|best|worst|maj)@(\d+)(?:/(mean|std))?$")
_VARIANTS = {
    "mean": "mean of {n} responses per prompt",
    "std": "standard deviation of {n} responses per prompt",
    "best": "best of {n} responses",
    "worst": "worst of {n} responses",
    "maj": "most frequent of {n} responses",
}
UNKNOWN = "logged by veRL or your reward function"


class Metric(NamedTuple):
    """What a figure is: its unit ("" for a bare number) and its meaning in one line."""

    unit: str
    meaning: str


@functools.cache
def describe(key: str) -> Metric:
    """Unit and meaning of a key of veRL's step line; an unknown one says so."""
    figure, words = _taken_apart(key)
    if found := _look_up(figure):
        return Metric(found.unit, f"{found.meaning}; {words}" if words else found.meaning)
    return _look_up(key) or Metric("", UNKNOWN)


def _taken_apart(key: str) -> tuple[str, str]:
    """What was measured, and in words what the end of the name says about it (`/max`, `/best@4/mean`)."""
    if found := _VARIANT.search(key):
        kind, count, over = found.groups()
        words = _VARIANTS[kind].format(n=count) if (kind, count) != ("mean", "1") else "one response per prompt"
        return key, f"{words} (standard deviation)" if over == "std" else words
    figure, _, over = key.rpartition("/")
    return (figure, _OVER[over]) if over in _OVER else (key, "")


@functools.cache
def _patterns() -> list[tuple[re.Pattern[str], Metric]]:
    rows = (line.split(" | ") for line in _TABLE.splitlines() if " | " in line)
    return [(re.compile(translate(pattern)), Metric(unit.strip(), meaning)) for pattern, unit, meaning in rows]


def _look_up(key: str) -> Metric | None:
    return next((metric for pattern, metric in _patterns() if pattern.match(key)), None)

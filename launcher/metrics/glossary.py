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
critic/score |  | reward of a response before any KL penalty; logged without a critic, too
critic/rewards |  | reward of a response after the KL penalty; equals critic/score without one
critic/advantages |  | advantage of a token; 0 everywhere means that nothing can be learned
critic/returns |  | what the critic is trained to predict (GRPO: the advantages)
critic/values |  | what the critic predicts for a token
critic/vf_explained_var |  | how well the critic explains the returns: 1 fully, 0 not at all, <0 misleads
critic/vf_loss |  | the critic's squared error against the returns
critic/vf_clipfrac | share | tokens whose value update was clipped
critic/vpred_mean |  | mean prediction of the critic during its update
critic/loss |  | what the critic minimises
critic/kl | nats | KL to the reference inside the reward (veRL up to 0.3)
critic/kl_coeff |  | weight of that KL penalty (veRL up to 0.3)

# policy
actor/entropy | nats | how undecided the policy is per token, before the update; near 0 it explores no more
actor/entropy_loss | nats | entropy during the update: not a loss (main figure up to veRL 0.4.0)
actor/pg_loss |  | policy-gradient loss; near 0 by nature, its size says little
actor/loss |  | what the actor minimises: policy loss with its KL and entropy terms
actor/pg_clipfrac | share | tokens whose update PPO clipped; 0 with one update per batch
actor/pg_clipfrac_lower | share | tokens clipped by the lower bound of dual-clip PPO
actor/ppo_kl | nats | drift of the policy within this step; not the distance to the reference
actor/kl_loss | nats | KL to the reference as a part of the loss
actor/kl_coef |  | weight of the KL loss
actor/reward_kl_penalty | nats | KL to the reference as subtracted from the reward; k1 may be below 0
actor/reward_kl_penalty_coeff |  | present weight of the KL penalty in the reward
*/grad_norm |  | length of the gradient before clipping; nan or inf means a skipped update
*/lr |  | learning rate after the step

# memory and speed
*perf/max_memory_allocated_gb | GiB | most GPU memory held by tensors of the training process so far
*perf/max_memory_reserved_gb | GiB | most GPU memory reserved by the training process so far
*perf/cpu_memory_used_gb | GiB | main memory in use on the machine
perf/mfu/* | share | achieved share of the GPU's peak arithmetic; 0 for GPUs that veRL does not know
perf/total_num_tokens | tok | tokens of prompts and responses in this step
perf/time_per_step | s | duration of the step; from veRL 0.6 on without validation
perf/throughput | tok/s | tokens per second and GPU
global_seqlen/minmax_diff | tok | gap between the fullest and the emptiest GPU before balancing
global_seqlen/balanced_max | tok | tokens of the fullest GPU after balancing
global_seqlen/balanced_min | tok | tokens of the emptiest GPU after balancing
global_seqlen | tok | tokens of one GPU's share of the batch

# lengths and turns
response_length/clip_ratio | share | responses at the longest length: the batch's in veRL 0.9, else the limit
response_length_non_aborted/clip_ratio | share | the same, without responses of length 0
response_length_non_aborted | tok | length of a response, those of length 0 left out
response_length | tok | length of a response
response/aborted_ratio | share | responses without a single token
prompt_length/clip_ratio | share | prompts at the longest length: the batch's in veRL 0.9, else the limit
prompt_length | tok | length of a prompt
*num_turns | turns | messages in a chat; 2 is one question and one answer
tool_call_counts | calls | tool calls in a chat

# progress, rollout against training
training/global_step |  | number of the step
training/epoch |  | number of the pass over the data, from 0
training/rollout_probs_diff_max |  | largest gap between a token's probability in rollout and in training
training/rollout_probs_diff_mean |  | mean gap between both probabilities; above 0.01 is suspect
training/rollout_probs_diff_std |  | spread of the gap between rollout and training probabilities
training/rollout_probs_diff_valid |  | 1 when that gap could be computed
training/rollout_actor_probs_pearson_corr |  | correlation of both probabilities; near 1 is right
rollout_corr/training_ppl |  | perplexity of the responses under the training engine
rollout_corr/rollout_ppl |  | perplexity of the responses under the rollout engine
rollout_corr/training_log_ppl | nats | logarithm of the training engine's perplexity
rollout_corr/rollout_log_ppl | nats | logarithm of the rollout engine's perplexity
rollout_corr/log_ppl_abs_diff | nats | size of the gap between both logarithms
rollout_corr/log_ppl_diff* | nats | gap between both logarithms of perplexity
rollout_corr/ppl_ratio |  | training perplexity over rollout perplexity; 1 when the engines agree
rollout_corr/kl | nats | KL between rollout and training engine; not the KL to the reference
rollout_corr/k3_kl | nats | the same KL by an estimator that is never negative
rollout_corr/chi2_token |  | chi-squared distance of the two engines over tokens
rollout_corr/chi2_seq |  | chi-squared distance of the two engines over whole responses
rollout_corr/rollout_is_eff_sample_size | share | samples that still count after importance weighting
rollout_corr/rollout_is_* |  | importance weights that correct for the rollout engine
rollout_corr/rollout_rs_* |  | samples rejected because the two engines disagree
training/off_policy/trajectory_spans | versions | model versions that wrote one response; 1 when synchronous
training/off_policy/trajectory_staleness | versions | age of a response in model versions; 0 when synchronous
training/off_policy/trajectory_staleness_worst | versions | age of its oldest token in model versions
training/off_policy/evicted_samples* |  | samples thrown away because they were too old
training/rollout_failure/evicted_samples |  | samples thrown away because their rollout failed
training/filter_groups/* |  | groups dropped because all their rewards are equal (DAPO)
variance_proxy/* |  | estimate of how noisy the policy gradient is

# time
timing_s/step | s | the whole step
timing_s/gen | s | writing all responses, and in veRL 0.9 their rewards
timing_s/reward | s | computing rewards
timing_s/old_log_prob | s | probabilities of the responses under the policy before its update
timing_s/ref | s | probabilities of the responses under the reference
timing_s/values | s | predictions of the critic
timing_s/adv | s | computing advantages
timing_s/update_critic | s | training the critic
timing_s/update_actor | s | training the policy
timing_s/update_weights | s | handing the new weights to the rollout engine
timing_s/reshard | s | regrouping weights between training and rollout
timing_s/save_checkpoint | s | writing a checkpoint
timing_s/testing | s | validation
timing_s/agent_loop/num_preempted |  | times that the engine restarted a response for lack of cache
timing_s/agent_loop/* | s | time of one response's agent loop: writing, tools, reward
timing_s/generat* | s | time that a rollout worker spent writing responses
timing_s/* | s | time that this part of the step took
timing_per_token_ms/* | ms/tok | time of this part of the step, by token

# validation
val/test_score/* |  | validation score of this data source (veRL up to 0.3)
val-aux/*/acc_success_only/* |  | validation accuracy, prompts whose rollout failed left out
val-core/* |  | validation: the headline figure of this data source
val-aux/* |  | validation: a further figure of this data source
"""
_OVER = {"mean": "mean over the batch", "max": "highest of the batch", "min": "lowest of the batch"}
_VARIANT = re.compile(r"/(mean|std|best|worst|maj)@(\d+)(?:/(mean|std))?$")
_VARIANTS = {
    "mean": "mean of {n} answers a prompt",
    "std": "spread of {n} answers a prompt",
    "best": "best of {n} answers",
    "worst": "worst of {n} answers",
    "maj": "most frequent of {n} answers",
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
        words = _VARIANTS[kind].format(n=count) if (kind, count) != ("mean", "1") else "one answer a prompt"
        return key, f"{words} (its spread)" if over == "std" else words
    figure, _, over = key.rpartition("/")
    return (figure, _OVER[over]) if over in _OVER else (key, "")


@functools.cache
def _patterns() -> list[tuple[re.Pattern[str], Metric]]:
    rows = (line.split(" | ") for line in _TABLE.splitlines() if " | " in line)
    return [(re.compile(translate(pattern)), Metric(unit.strip(), meaning)) for pattern, unit, meaning in rows]


def _look_up(key: str) -> Metric | None:
    return next((metric for pattern, metric in _patterns() if pattern.match(key)), None)

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
gdpo/*/std |  | standard deviation of this part of the reward over the batch (GDPO)
gdpo/* |  | this part of the reward, which GDPO normalizes on its own
variance_proxy/proxy1_signal_strength |  | squared norm of the mean gradient: the signal
variance_proxy/proxy2_total_power |  | mean squared norm of the gradient of one response: signal and noise
variance_proxy/proxy3_pure_noise |  | variance of the mean gradient: the noise
variance_proxy/expected_a_squared |  | mean squared advantage of a response
variance_proxy/expected_w |  | mean squared norm of the score function of a response
variance_proxy/* |  | estimated noise of the policy gradient

# distillation from a teacher; veRL puts actor/ in front
*distillation/loss | nats | loss of the distillation: how far the student is from the teacher
*distillation/loss_max | nats | largest distillation loss of a token
*distillation/loss_min | nats | smallest distillation loss of a token; k1 can be negative
*distillation/abs_loss | nats | mean size of a token's distillation loss, whose signs do not cancel out
*distillation/student_mass* | share | probability that the student gives to the teacher's top tokens
*distillation/teacher_mass* | share | probability that the teacher gives to its own top tokens; near 1 if few count
*distillation/overlap_ratio | share | the teacher's top tokens that are the student's, too; rises if it learns
*distillation/overlap_token_advantage | nats | part of the distance to the teacher that lies on the shared top tokens
*distillation/ppo_kl | nats | drift of the policy within this step, of the distillation loss
*distillation/pg_clipfrac* | share | tokens with a clipped update, of the distillation loss
*/lr |  | learning rate after the step
actor/mtp_losses* |  | loss of the heads that predict several tokens (multi-token prediction)

# memory and speed
*perf/max_memory_allocated_gb | GiB | peak GPU memory of the training process held by tensors
*perf/max_memory_reserved_gb | GiB | peak GPU memory reserved by the training process
*perf/cpu_memory_used_gb | GiB | host memory in use on the machine
machine/run_memory_gb | GiB | host memory of the run's processes, without shared memory: its peak in the step
perf/mfu/* | share | achieved share of the GPU's peak FLOPS; 0 for GPUs that veRL does not recognize
perf/total_num_tokens | tok | prompt and response tokens that this step trained on; without discarded groups
perf/time_per_step | s | duration of the step with all its batches; without validation since veRL 0.6
perf/throughput | tok/s | trained tokens per second per GPU; separate_async counts the rollout's GPUs, too
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

# what the responses tell: ppo-tui's own figures, from the dump of the step
responses/unvaried_groups | share | prompts whose responses all score the same: they teach nothing to GRPO and its kin
responses/all_right_groups | share | prompts whose responses are all right
responses/all_wrong_groups | share | prompts whose responses are all wrong
responses/audit |  | what the reward function returns as `audit`, or `acc`, beside the score: not trained on
responses/near_equal | share | responses that are nearly the same text, whatever the prompt: the largest set of them
responses/equal_truths | share | prompts with the most frequent expected answer
responses/repetition | share | runs of four words in a response that stood in it before
responses/format_only | share | responses that mark the place of an answer and give none
responses/prompt_copied | share | responses that mostly repeat their prompt
responses/prompt_dependence |  | 1: responses to one prompt are alike, others differ; 0: they do not depend on it
responses/length_right | chars | mean length of a right response
responses/length_wrong | chars | mean length of a wrong response
responses/never_solved | share | of the prompts seen more than once: never a right response
responses/always_solved | share | of the prompts seen more than once: a right response each time
responses/forgotten | share | of the prompts of this step seen before: solved the last time, not now

# rollout engine
rollout/spec_accept_rate | share | draft tokens of speculative decoding that the model accepted
rollout/spec_accept_length | tok | tokens that one pass of speculative decoding yielded; 1 is no gain
rollout/moe/max_vio/* |  | load of the busiest expert above the mean load, by layer; 0 is balanced, 1 is twice the mean
rollout/moe/min_vio/* |  | load of the idlest expert below the mean load, by layer; -1 is an expert that is not used
rollout/moe/avg_vio/* |  | mean distance of an expert's load from the mean load, by layer; 0 is balanced
rollout/moe/routed_experts_found |  | 1 if the rollout engine told which experts it used
rollout/moe/routed_expert_assignments |  | tokens times experts that the load figures are counted from
checkpoint_engine/changed_ratio | share | weights that changed since the last transfer to the rollout engine
checkpoint_engine/changed_elems |  | weights that were sent to the rollout engine
checkpoint_engine/payload_mbytes | MiB | size of the transfer of weights to the rollout engine
checkpoint_engine/flushes |  | messages that the transfer of weights took

# progress, rollout against training
training/global_step |  | step number
training/epoch |  | epoch number, from 0
training/rollout_probs_diff_max |  | largest difference between rollout and training probability of a token
training/rollout_probs_diff_mean |  | mean difference between the two probabilities; above 0.01 is suspicious
training/rollout_probs_diff_std |  | standard deviation of the difference between the two probabilities
training/rollout_probs_diff_valid |  | 1 if that difference could be computed
training/rollout_actor_probs_pearson_corr |  | correlation of the two probabilities; should be near 1
*rollout_corr/training_ppl |  | perplexity of the responses under the training engine
*rollout_corr/rollout_ppl |  | perplexity of the responses under the rollout engine
*rollout_corr/training_log_ppl | nats | log perplexity under the training engine
*rollout_corr/rollout_log_ppl | nats | log perplexity under the rollout engine
*rollout_corr/log_ppl_abs_diff | nats | absolute difference between the two log perplexities
*rollout_corr/log_ppl_diff* | nats | difference between the two log perplexities
*rollout_corr/ppl_ratio |  | training perplexity divided by rollout perplexity; 1 if the engines agree
actor/rollout_corr/kl | nats | KL between the policy in training and the rollout, with the step's drift (bypass_mode)
*rollout_corr/kl | nats | KL between rollout and training engine, not the KL to the reference
*rollout_corr/k3_kl | nats | the same KL, with an estimator that is never negative
*rollout_corr/chi2_token |  | chi-squared distance between the engines, per token
*rollout_corr/chi2_seq |  | chi-squared distance between the engines, per response
*rollout_corr/rollout_is_eff_sample_size | share | effective sample size after importance weighting
*rollout_corr/rollout_is_oob_ratio | share | tokens whose importance weight is out of bounds and counts as 0 (IcePop)
*rollout_corr/rollout_is_batch_norm_factor |  | mean importance weight, by which all weights are divided
*rollout_corr/rollout_is_*fraction_high | share | tokens or responses with an importance weight above the upper limit
*rollout_corr/rollout_is_*fraction_low | share | tokens or responses with an importance weight below the lower limit
*rollout_corr/rollout_is_* |  | importance weights that correct for the rollout engine; 1 if the engines agree
*rollout_corr/rollout_rs_*seq_masked_fraction | share | responses with tokens rejected because the engines disagree
*rollout_corr/rollout_rs_*masked_fraction | share | tokens rejected because the engines disagree
*rollout_corr/rollout_rs_*fraction_high | share | tokens or responses above the limit of rejection
*rollout_corr/rollout_rs_*fraction_low | share | tokens or responses below the limit of rejection
*rollout_corr/rollout_rs_* |  | distance between the engines that decides which samples are rejected

# asynchronous training, refilled groups
training/off_policy/trajectory_spans | versions | model versions that generated one response; 1 if synchronous
training/off_policy/trajectory_staleness | versions | age of a response in model versions; 0 if synchronous
training/off_policy/trajectory_staleness_worst | versions | age of the oldest token of a response in model versions
training/off_policy/evicted_samples | groups | groups dropped because they were older than max_off_policy_threshold
training/off_policy/evicted_samples_staleness | versions | age of the groups dropped as too old
training/rollout_failure/evicted_samples | groups | groups dropped because their rollout failed
training/filter_groups/evicted_samples | groups | groups dropped because all their rewards are equal (DAPO)
training/filter_groups/discarded_surplus_samples | groups | good groups discarded as the batch was already full (DAPO)
training/filter_groups/* | groups | groups dropped because their rewards are equal, by reward (DAPO)
validation/*/evicted_samples* | groups | groups dropped from a validation
train/num_gen_batches | batches | rollout batches that it took to fill the training batch (DAPO recipe)
separate_async/switch/threshold_ratio | share | part of the batch that is ready when the trainer takes its GPUs back
separate_async/switch/wait_samples | groups | groups that were still missing when the trainer asked for them
separate_async/switch/idle |  | 1 if the trainer waited for samples in this step
separate_async/decision/sampleable_count | groups | groups that were ready at the end of the step
separate_async/decision/remaining | groups | groups that were missing for the next step
separate_async/decision/should_switch_to_rollout |  | 1 if the trainer lends its GPUs to the rollout until the next step
separate_async/decision/per_sample_time_seconds | s | time that the trainer waited for one group
separate_async/decision/effective_switch_cost_seconds | s | time that lending the GPUs and taking them back costs
fully_async/count/current_param_version | versions | version of the weights
fully_async/count/stale_trajectory_processed |  | responses trained on that older weights had generated
fully_async/count/dropped_stale_samples | groups | groups dropped because they were too old
fully_async/count/staleness_samples | groups | groups generated since the last transfer of weights
fully_async/count/total_generated_samples | groups | groups generated so far
fully_async/partial/total_partial_num |  | responses that more than one version of the weights generated
fully_async/partial/partial_ratio | share | responses that more than one version of the weights generated
fully_async/partial/max_partial_span | versions | most versions that one response reaches over
fully_async/total_wait_time | s | time that the trainer waited for samples
fully_async/trainer/idle_ratio | share | share of the step in which the trainer waited for samples
fully_async/processing_time/* | s | time from a prompt to its finished responses
fully_async/monitor/active_tasks_size | groups | groups that are being generated
fully_async/monitor/queue/* | groups | groups that wait in a queue
fully_async/static/* |  | a setting of the asynchronous rollout, which stays
fully_async/hybrid/num_hybrid_replicas |  | engines on the trainer's GPUs that generate now
fully_async/hybrid/* | s | when an engine on the trainer's GPUs was last added or removed
dynamic_resource/mq_size | groups | groups that wait for the trainer
dynamic_resource/*utilization | share | share of the time in which these GPUs did their work
dynamic_resource/*_time_s | s | time in which the trainer's GPUs computed, or were the trainer's

# time
timing_s/step | s | the whole step
timing_s/gen | s | generating all responses, with their rewards in veRL 0.9; asynchronous: waiting for enough of them
timing_s/gen_max | s | generating the greedy responses that ReMax compares with
timing_s/reward | s | computing rewards
timing_s/old_log_prob | s | computing log-probabilities under the policy before its update
timing_s/ref | s | computing log-probabilities under the reference
timing_s/values | s | computing the critic's predictions
timing_s/adv | s | computing advantages
timing_s/update_critic | s | training the critic
timing_s/update_actor | s | training the policy
timing_s/update_weights | s | sending the new weights to the rollout engine
timing_s/*param_sync | s | sending the new weights to the rollout engine (fully asynchronous)
timing_s/sync_rollout_weights | s | sending the new weights to the rollout engine (one step off-policy)
timing_s/generate_async | s | generating the next batch beside the training (one step off-policy)
timing_s/switch_wait | s | waiting for samples while the trainer's GPUs generate, too
timing_s/switch_to_rollout | s | lending the trainer's GPUs to the rollout
timing_s/switch_to_trainer | s | taking the trainer's GPUs back from the rollout
timing_s/wait_for_enough_samples | s | waiting for samples while the trainer's GPUs generate, too (fully asynchronous)
timing_s/dump_rollout_generations | s | writing the responses to disk
timing_s/*_profile | s | starting or stopping a profiler
*fully_async/rollouter/idle_ratio | share | share of the time in which the rollout waited for the trainer
*fully_async/rollouter/step_generated_samples | groups | groups generated since the last transfer of weights
*fully_async/rollouter/* | s | time in which the rollout worked, or was at one version of the weights
timing_s/rollouter/validate_time | s | validation by the rollout (fully asynchronous)
timing_s/reshard | s | resharding weights between training and rollout
timing_s/save_checkpoint | s | writing a checkpoint
timing_s/testing | s | validation
timing_s/agent_loop/num_preempted |  | times that the engine restarted a response because the cache was full
timing_s/agent_loop/slowest/num_preempted |  | times that the engine restarted the slowest response
timing_s/agent_loop/slowest/*_length | tok | length of the prompt or response that took longest
timing_s/agent_loop/slowest/* | s | time of the response that took longest: generation, tools, reward
timing_s/agent_loop/tool_calls | s | time that the tool calls of one response took in its agent loop
timing_s/agent_loop/compute_score | s | time that the reward of one response took
timing_s/agent_loop/* | s | time of the agent loop of one response: generation, tools, reward
timing_s/generation_timing/topk_ratio | share | rollout workers in the slowest tenth
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

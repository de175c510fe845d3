"""veRL's metric keys, current names before older ones: the first present key wins."""

SCORE = ("critic/score/mean", "critic/rewards/mean")  # rewards/mean includes the KL penalty
REWARD = ("critic/rewards/mean",)  # the score minus the KL penalty, where that is in the reward
RETURN = ("critic/returns/mean",)
RETURN_MAX = ("critic/returns/max",)
RETURN_MIN = ("critic/returns/min",)
SCORE_MAX = ("critic/score/max",)
SCORE_MIN = ("critic/score/min",)
ADVANTAGE_MAX = ("critic/advantages/max",)
ADVANTAGE_MIN = ("critic/advantages/min",)
KL_REWARD = ("actor/reward_kl_penalty", "critic/kl")
KL_LOSS = ("actor/kl_loss",)
KL = KL_REWARD + KL_LOSS
PPO_KL = ("actor/ppo_kl",)
CLIPPED = ("actor/pg_clipfrac",)
ENTROPY = ("actor/entropy", "actor/entropy_loss")
KL_COEFFICIENT = ("actor/reward_kl_penalty_coeff", "critic/kl_coeff", "actor/kl_coef")
POLICY_LOSS = ("actor/pg_loss",)
TRAINING_LOSS = ("actor/training_loss",)  # for a training without a sampled policy
# The critic's norm has another scale: during critic_warmup, when the actor has none, it must not stand in
# for it.
GRADIENT = ("actor/grad_norm",)
VALUE_LOSS = ("critic/vf_loss",)
EXPLAINED = ("critic/vf_explained_var",)
VALUES_CLIPPED = ("critic/vf_clipfrac",)
LENGTH = ("response_length/mean",)
LENGTH_MIN = ("response_length/min",)
LENGTH_MAX = ("response_length/max",)
TRUNCATED = ("response_length/clip_ratio",)
PROMPT = ("prompt_length/mean",)
PROMPT_MIN = ("prompt_length/min",)
PROMPT_MAX = ("prompt_length/max",)
PROMPTS_CUT = ("prompt_length/clip_ratio",)
EMPTY = ("response/aborted_ratio",)
LEARNING_RATE = ("actor/lr", "actor/lr(1e-4)")
STEP_TIME = ("timing_s/step", "perf/time_per_step", "timing/step")
VALIDATION_TIME = ("timing_s/testing", "timing/testing")
PARTS = "timing_s/"  # how the keys of timers start
OLD_PARTS = "timing/"  # each part of a step had such a key, the whole step had none
SAVING_TIME = ("timing_s/save_checkpoint", "timing/save_checkpoint")
TOKENS = ("perf/total_num_tokens",)
RESERVED_MEMORY = (  # each row: the larger of its keys
    ("actor/perf/max_memory_reserved_gb", "critic/perf/max_memory_reserved_gb"),
    ("perf/max_memory_reserved_gb",),
)
ALLOCATED_MEMORY = (
    ("actor/perf/max_memory_allocated_gb", "critic/perf/max_memory_allocated_gb"),
    ("perf/max_memory_allocated_gb",),
)
GPU_MEMORY = (*RESERVED_MEMORY, *ALLOCATED_MEMORY)
HOST_MEMORY = ("actor/perf/cpu_memory_used_gb", "perf/cpu_memory_used_gb")
RUN_MEMORY = ("machine/run_memory_gb",)  # ppo-tui's own, as the next three
CHECKPOINT_ROOM = ("machine/checkpoint_room",)
CHECKPOINTS_TO_COME = ("machine/checkpoints_to_come",)
CHECKPOINTS_LACKING = ("machine/checkpoints_lacking",)
PROBS_VALID = ("training/rollout_probs_diff_valid",)
PROBS_DIFF = ("training/rollout_probs_diff_mean",)
PROBS_DIFF_MAX = ("training/rollout_probs_diff_max",)
PROBS_CORRELATION = ("training/rollout_actor_probs_pearson_corr",)
ROLLOUT_KL = ("rollout_corr/kl",)
WEIGHT_MEAN = ("rollout_corr/rollout_is_mean",)
WEIGHT_SAMPLES = ("rollout_corr/rollout_is_eff_sample_size",)
CHI2 = ("rollout_corr/chi2_token",)
STALENESS = ("training/off_policy/trajectory_staleness/mean",)
# Groups of responses that were generated and not trained on, by reason.
EVICTED = ("training/off_policy/evicted_samples",)
FILTERED = ("training/filter_groups/evicted_samples",)
SURPLUS = ("training/filter_groups/discarded_surplus_samples",)
FAILED = ("training/rollout_failure/evicted_samples",)
GENERATION = ("timing_s/gen",)
ROLLOUT_IDLE = ("fully_async/rollouter/idle_ratio", "timing_s/fully_async/rollouter/idle_ratio")
SEPARATE = ("separate_async/", "fully_async/")  # key prefixes of runs with separate GPUs for the rollout
TURNS = ("num_turns/max", "training/num_turns/max")
TOOL_CALLS = ("tool_call_counts/max",)
# Of launcher.metrics.responses.
UNVARIED = ("responses/unvaried_groups",)
ALL_RIGHT = ("responses/all_right_groups",)
ALL_WRONG = ("responses/all_wrong_groups",)
ADVANTAGE_HIGH = ("responses/advantage_high",)
ADVANTAGE_LOW = ("responses/advantage_low",)
LONGER_PAYS = ("responses/longer_pays",)
TRUE_ANSWERS = ("responses/true_answers",)
REPEATED_PROMPT = ("responses/repeated_prompt",)
ONE_WORD = ("responses/one_word_prompts",)
PAST_TURN = ("responses/past_turn",)
AUDIT = ("responses/audit",)
NEAR_EQUAL = ("responses/near_equal",)
EQUAL_TRUTHS = ("responses/equal_truths",)
COPIED = ("responses/prompt_copied",)
REPEATED = ("responses/repetition",)
FORMAT_ONLY = ("responses/format_only",)
DEPENDENCE = ("responses/prompt_dependence",)

SUMMED = ENTROPY + KL_LOSS  # means like the losses: by `loss_agg_mode`
SCALE = {"actor/lr(1e-4)": 1e-4}  # factor for values under an old key
VALIDATION = ("val", "test_score/")  # how their keys start
_OLD_VALIDATION = ("val/test_score/", "test_score/")


def is_training(key: str) -> bool:
    """Whether records with this key are training steps."""
    return key.startswith(("actor/", "critic/"))


def is_validation_score(key: str) -> bool:
    """Whether the key is a headline score, which VAL-1 averages."""
    if key.startswith("val-core/"):
        return key.rpartition("/")[2].startswith("mean@")
    return key.startswith(_OLD_VALIDATION)


def is_validation(key: str) -> bool:
    """Whether the key is a metric of a validation."""
    return key.startswith(VALIDATION) or "@" in key

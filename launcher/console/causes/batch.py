"""Batch sizes that do not divide."""

from launcher.console.causes.entry import Cause

MICRO = "AssertionError: data size must be divisible by force_group_size \\* micro_batch_size_per_gpu"
DYNAMIC = "or actor_rollout_ref.actor.use_dynamic_bsz=True, which needs no micro-batch sizes"
LOG_PROB = "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu"
REF = "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu"
ACTOR = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
MINI = "actor_rollout_ref.actor.ppo_mini_batch_size"

CAUSES = (
    Cause(
        "batch-not-divisible",
        "The batch cannot be divided among the GPUs",
        "data.train_batch_size times actor_rollout_ref.rollout.n must be a multiple of the number of GPUs.",
        ("data.train_batch_size= a multiple of trainer.n_gpus_per_node * trainer.nnodes", DYNAMIC),
        raised=r"real_train_batch_size \(\d+\) must be divisible",
    ),
    Cause(
        "mini-batch-too-large",
        "The mini-batch is larger than the batch",
        "data.train_batch_size must be at least the ppo_mini_batch_size of actor and critic.",
        (f"{MINI} ↓, critic.ppo_mini_batch_size ↓", "or data.train_batch_size ↑"),
        raised=r"train_batch_size \(\d+\) must be >= (?:actor|critic)\.ppo_mini_batch_size",
    ),
    Cause(
        "mini-batch-not-divisible",
        "The mini-batch cannot be divided into micro-batches or among the GPUs",
        "ppo_mini_batch_size (times rollout.n) must be a multiple of the GPUs, and each GPU's part of the micro-batch.",
        (f"{MINI}= a multiple of the GPUs and of {ACTOR}", "the same for critic.ppo_mini_batch_size"),
        raised=r"ppo_mini_batch_size \(?\d+\)? (?:must|should) be|Got mini_batch_size=\d+ and self\.engine"
        r"|normalized ppo_mini_batch_size|ulysses_sequence_parallel_size \(\d+\) must be >= n_gpus",
    ),
    Cause(
        "batch-mini-batch",
        "The batch is not a multiple of the mini-batch",
        "The legacy trainer cuts the batch into whole mini-batches and does not pad.",
        (f"data.train_batch_size= a multiple of {MINI} and of critic.ppo_mini_batch_size",),
        raised=r"AssertionError: \d+ % \d+ != 0",
    ),
    Cause(
        "micro-batch-ref",
        "The reference log-prob micro-batch does not divide the batch",
        "The rows on each GPU are not a multiple of the micro-batch with which the reference policy is evaluated.",
        (f"{REF}= a divisor of the rows per GPU (train_batch_size * n / GPUs)", DYNAMIC),
        raised=MICRO,
        where=r"compute_ref_log_prob",
    ),
    Cause(
        "micro-batch-log-prob",
        "The rollout log-prob micro-batch does not divide the batch",
        "The rows on each GPU are not a multiple of the micro-batch with which old log-probabilities are computed.",
        (f"{LOG_PROB}= a divisor of the rows per GPU (train_batch_size * n / GPUs)", DYNAMIC),
        raised=MICRO,
        where=r"compute_log_prob\b",
    ),
    Cause(
        "micro-batch-actor",
        "The actor's micro-batch does not divide its mini-batch",
        "Each GPU's part of the mini-batch is not a multiple of the micro-batch of the update.",
        (f"{ACTOR}= a divisor of ppo_mini_batch_size * n / GPUs", DYNAMIC),
        raised=MICRO,
        where=r"update_actor|update_critic|critic_train",
    ),
    Cause(
        "micro-batch-unset",
        "A micro-batch size is missing",
        "Without dynamic batches each of actor, critic, rollout log-probs and reference needs a micro-batch size.",
        (f"{ACTOR}=8, critic.ppo_micro_batch_size_per_gpu=8", f"{LOG_PROB}=8, {REF}=8", DYNAMIC),
        raised=r"Please set at least one of '",
    ),
    Cause(
        "micro-batch-both",
        "A micro-batch size is given twice",
        "The old key for all GPUs and the key per GPU exclude each other.",
        ("remove the one without _per_gpu",),
        raised=r"You have set both '",
    ),
    Cause(
        "agent-workers",
        "The batch cannot be divided among the agent-loop workers",
        "Without the v1 trainer data.train_batch_size * rollout.n must be a multiple of rollout.agent.num_workers.",
        ("actor_rollout_ref.rollout.agent.num_workers= a divisor of the batch (e.g. 1)",),
        raised=r"only support equal chunk\. Got size of DataProto",
    ),
    Cause(
        "token-budget",
        "A sequence is longer than the token budget of a dynamic batch",
        "With use_dynamic_bsz the budget per GPU must hold the longest prompt plus answer.",
        (
            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu ↑ to max_prompt_length + max_response_length or more",
            "critic: +critic.ppo_infer_max_token_len_per_gpu ↑",
        ),
        raised=r"max_token_len must be greater than the sequence length",
    ),
    Cause(
        "dynamic-batch-mismatch",
        "Actor and rollout disagree on dynamic batches",
        "use_dynamic_bsz of the actor and log_prob_use_dynamic_bsz of the rollout must be the same; veRL only says "
        "AssertionError.",
        ("actor_rollout_ref.rollout.log_prob_use_dynamic_bsz= the same as actor_rollout_ref.actor.use_dynamic_bsz",),
        raised=r"^AssertionError$",
        where=r"log_prob_use_dynamic_bsz|actor_rollout_ref_init_model(?![\s\S]*\bassert )",
    ),
    Cause(
        "batch-size-zero",
        "The batch size is 0",
        "data.train_batch_size (or the validation batch) must be a positive number.",
        ("data.train_batch_size=64",),
        raised=r"batch_size should be a positive integer value, but got batch_size=0",
    ),
)

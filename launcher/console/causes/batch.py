"""Batch sizes that do not divide."""

from launcher.console.causes.entry import Cause

MICRO = "AssertionError: data size must be divisible by force_group_size \\* micro_batch_size_per_gpu"
DYNAMIC = "or set actor_rollout_ref.actor.use_dynamic_bsz=True, which needs no micro-batch sizes"
LOG_PROB = "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu"
REF = "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu"
ACTOR = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
MINI = "actor_rollout_ref.actor.ppo_mini_batch_size"

CAUSES = (
    Cause(
        "batch-not-divisible",
        "Batch size not divisible by the number of GPUs",
        "data.train_batch_size times actor_rollout_ref.rollout.n must be a multiple of the number of GPUs.",
        ("set data.train_batch_size to a multiple of trainer.n_gpus_per_node * trainer.nnodes", DYNAMIC),
        raised=r"real_train_batch_size \(\d+\) must be divisible",
    ),
    Cause(
        "mini-batch-too-large",
        "Mini-batch larger than the batch",
        "data.train_batch_size must be at least the ppo_mini_batch_size of the actor and of the critic.",
        (f"{MINI} ↓, critic.ppo_mini_batch_size ↓", "or data.train_batch_size ↑"),
        raised=r"train_batch_size \(\d+\) must be >= (?:actor|critic)\.ppo_mini_batch_size",
    ),
    Cause(
        "mini-batch-not-divisible",
        "Mini-batch not divisible by the micro-batch or the number of GPUs",
        "ppo_mini_batch_size (times rollout.n) must be a multiple of the number of GPUs, and each GPU's share a "
        "multiple of the micro-batch.",
        (
            f"set {MINI} to a multiple of the number of GPUs and of {ACTOR}",
            "do the same for critic.ppo_mini_batch_size",
        ),
        raised=r"ppo_mini_batch_size \(?\d+\)? (?:must|should) be|Got mini_batch_size=\d+ and self\.engine"
        r"|normalized ppo_mini_batch_size|ulysses_sequence_parallel_size \(\d+\) must be >= n_gpus",
    ),
    Cause(
        "batch-mini-batch",
        "Batch size not a multiple of the mini-batch",
        "The legacy trainer splits the batch into whole mini-batches and does not pad.",
        (f"set data.train_batch_size to a multiple of {MINI} and of critic.ppo_mini_batch_size",),
        raised=r"AssertionError: \d+ % \d+ != 0",
    ),
    Cause(
        "micro-batch-ref",
        "Reference log-prob micro-batch does not divide the batch",
        "The rows per GPU are not a multiple of the micro-batch for the reference's log-probabilities.",
        (f"set {REF} to a divisor of the rows per GPU (train_batch_size * n / GPUs)", DYNAMIC),
        raised=MICRO,
        where=r"compute_ref_log_prob",
    ),
    Cause(
        "micro-batch-log-prob",
        "Rollout log-prob micro-batch does not divide the batch",
        "The rows per GPU are not a multiple of the micro-batch for the old log-probabilities.",
        (f"set {LOG_PROB} to a divisor of the rows per GPU (train_batch_size * n / GPUs)", DYNAMIC),
        raised=MICRO,
        where=r"compute_log_prob\b",
    ),
    Cause(
        "micro-batch-actor",
        "Actor micro-batch does not divide its mini-batch",
        "Each GPU's share of the mini-batch is not a multiple of the micro-batch of the update.",
        (f"set {ACTOR} to a divisor of ppo_mini_batch_size * n / GPUs", DYNAMIC),
        raised=MICRO,
        where=r"update_actor|update_critic|critic_train",
    ),
    Cause(
        "micro-batch-unset",
        "Missing micro-batch size",
        "Without dynamic batches the actor, the critic, the rollout's log-probs and the reference each need a "
        "micro-batch size.",
        (f"set {ACTOR}=8, critic.ppo_micro_batch_size_per_gpu=8", f"set {LOG_PROB}=8, {REF}=8", DYNAMIC),
        raised=r"Please set at least one of '",
    ),
    Cause(
        "micro-batch-both",
        "Micro-batch size set twice",
        "The old key for all GPUs and the key per GPU are mutually exclusive.",
        ("remove the key without _per_gpu",),
        raised=r"You have set both '",
    ),
    Cause(
        "batch-union",
        "Responses and prompts of a batch differ in number",
        "The engine returned rollout.n responses a prompt, and the trainer did not repeat the prompts, or the "
        "other way round: parts of two veRL versions, or a trainer of one's own.",
        (
            "install one veRL everywhere, and base your own trainer on that version's",
            "set actor_rollout_ref.rollout.val_kwargs.n=1 if it fails in a validation",
        ),
        raised=r"Two tensor dict must have identical batch size",
    ),
    Cause(
        "agent-workers",
        "Batch size not divisible by the number of agent-loop workers",
        "Without the v1 trainer data.train_batch_size * rollout.n must be a multiple of rollout.agent.num_workers.",
        ("set actor_rollout_ref.rollout.agent.num_workers to a divisor of the batch (e.g. 1)",),
        raised=r"only support equal chunk\. Got size of DataProto",
    ),
    Cause(
        "token-budget",
        "Sequence longer than the token budget of a dynamic batch",
        "With use_dynamic_bsz the token budget per GPU must hold the longest prompt plus response.",
        (
            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu ↑ to max_prompt_length + max_response_length or more",
            "critic: +critic.ppo_infer_max_token_len_per_gpu ↑",
        ),
        raised=r"max_token_len must be greater than the sequence length",
    ),
    Cause(
        "dynamic-batch-mismatch",
        "Different dynamic-batch settings for actor and rollout",
        "The actor's use_dynamic_bsz and the rollout's log_prob_use_dynamic_bsz must be equal; veRL reports only "
        "AssertionError.",
        (
            "set actor_rollout_ref.rollout.log_prob_use_dynamic_bsz to the value of "
            "actor_rollout_ref.actor.use_dynamic_bsz",
        ),
        raised=r"^AssertionError$",
        where=r"log_prob_use_dynamic_bsz|actor_rollout_ref_init_model(?![\s\S]*\bassert )",
    ),
    Cause(
        "batch-size-zero",
        "Batch size of 0",
        "data.train_batch_size (or the validation batch size) must be a positive number.",
        ("set data.train_batch_size=64",),
        raised=r"batch_size should be a positive integer value, but got batch_size=0",
    ),
)

"""Out of memory, on the GPU and in the host."""

from launcher.console.causes.entry import Cause, Level

CUDA_OOM = r"(?:CUDA|HIP) out of memory|CUDA error: out of memory|(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED"
UTILISATION = "actor_rollout_ref.rollout.gpu_memory_utilization ↓ (e.g. 0.3)"
OFFLOAD = (
    "actor_rollout_ref.actor.fsdp_config.param_offload=True and .optimizer_offload=True",
    "critic.fsdp.param_offload=True critic.fsdp.optimizer_offload=True",
)
AWAKE = "actor_rollout_ref.rollout.free_cache_engine=True: the engine gives its share back while the models train"
CHUNKING = (
    "actor_rollout_ref.actor.entropy_from_logits_with_chunking=True (veRL 0.9.1: only with "
    "model.use_remove_padding=True)"
)
ESTIMATE = "see the estimate of every phase: `ppo-tui check PRESET`"
LOGITS = (
    "The logits of one micro-batch (tokens, without use_remove_padding=True the padding too, times the "
    "vocabulary) do not fit. The engine sleeps meanwhile: a lower gpu_memory_utilization changes nothing."
)
FEWER_PROCESSES = (
    "actor_rollout_ref.rollout.agent.num_workers ↓ (e.g. 2), reward.num_workers ↓, data.dataloader_num_workers ↓",
    "param_offload and optimizer_offload cost 12-16 bytes of host memory per parameter: switch off what fits the GPU",
)

CAUSES = (
    Cause(
        "engine-wake-up-oom",
        "The GPU ran out of memory when the rollout engine woke up",
        "From the first update on, weights and Adam states of actor and critic stay on the GPU, and the engine asks "
        "for its whole share again before each rollout. A run that survived the start can die here.",
        (UTILISATION, *OFFLOAD, "actor_rollout_ref.rollout.free_cache_engine=True", ESTIMATE),
        raised=CUDA_OOM + r"|CUDA Error: out of memory",
        where=r"wake_up|update_weights|resume_memory|rollout_mode|cumem|reload_weights",
        line=r"CUDA Error: out of memory at \S*cumem",
    ),
    Cause(
        "gpu-oom-critic",
        "The GPU ran out of memory in the critic",
        "From veRL 0.8 on the critic ignores its micro-batch size and packs up to 32768 tokens a GPU.",
        (
            "+critic.ppo_infer_max_token_len_per_gpu ↓ (e.g. 8192)",
            "critic.model.enable_gradient_checkpointing=True",
            OFFLOAD[1],
            AWAKE,
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"critic_(?:train|infer|update|compute)|update_critic|compute_values",
    ),
    Cause(
        "gpu-oom-update",
        "The GPU ran out of memory in the actor's update",
        "Activations and logits of a micro-batch, together with weights, gradients and Adam states, do not fit.",
        (
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu ↓ (e.g. 1), or with dynamic batches "
            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu ↓",
            "actor_rollout_ref.model.enable_gradient_checkpointing=True",
            OFFLOAD[0],
            CHUNKING,
            AWAKE,
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"update_actor|update_policy",
    ),
    Cause(
        "gpu-oom-ref",
        "The GPU ran out of memory while the reference's log-probabilities were computed",
        LOGITS,
        (
            "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu ↓ (e.g. 8, then 1), or with dynamic "
            "batches actor_rollout_ref.ref.log_prob_max_token_len_per_gpu ↓",
            *OFFLOAD,
            AWAKE,
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"compute_ref_log_prob",
    ),
    Cause(
        "gpu-oom-log-prob",
        "The GPU ran out of memory while log-probabilities were computed",
        LOGITS,
        (
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu ↓ (e.g. 8, then 1), or with dynamic "
            "batches actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu ↓",
            CHUNKING,
            *OFFLOAD,
            AWAKE,
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"compute_(?:old_)?log_prob|infer_batch",
    ),
    Cause(
        "gpu-oom-engine-start",
        "The GPU ran out of memory while the rollout engine started",
        "The engine's weights, profiling run or CUDA graphs do not fit beside the training models.",
        (
            UTILISATION,
            "actor_rollout_ref.rollout.enforce_eager=True",
            "actor_rollout_ref.rollout.max_num_seqs ↓ (e.g. 64)",
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"(?s)^(?=.*starting)(?=.*(?:from (?:Engine|(?i:vllm)|SGLang|Async|Worker\b)|launch_server"
        r"|vllm/|_build_rollout))",
    ),
    Cause(
        "gpu-oom-load",
        "The GPU ran out of memory while the models were loaded",
        "The weights of actor and critic alone need 4 bytes a parameter each, before any training.",
        (
            *OFFLOAD,
            "a smaller model: actor_rollout_ref.model.path",
            "LoRA: actor_rollout_ref.model.lora_rank=16",
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"init_model|critic_reset|_build_module|_build_model|load_checkpoint",
    ),
    Cause(
        "gpu-oom-rollout",
        "The GPU ran out of memory during the rollout",
        "The engine generates with its share of the GPU and what the training side left is not enough.",
        (UTILISATION, "actor_rollout_ref.rollout.max_num_seqs ↓ (e.g. 64)", "data.max_response_length ↓", ESTIMATE),
        raised=CUDA_OOM,
        where=r"(?s)^(?=.*stepping)(?=.*(?:from (?:Engine|(?i:vllm)|SGLang|Async|Worker\b|AgentLoop)|generate|vllm/))",
    ),
    Cause(
        "gpu-oom",
        "The GPU ran out of memory",
        "The log does not say in which phase.",
        (UTILISATION, *OFFLOAD, ESTIMATE),
        raised=CUDA_OOM,
        level=Level.GENERAL,
    ),
    Cause(
        "host-oom-ray",
        "The machine ran out of memory and Ray killed a worker",
        "Ray ends workers when the host's memory (RAM, not the GPU's) is 95 % full.",
        (*FEWER_PROCESSES, "env: RAY_memory_usage_threshold=0.98 moves the limit, not the need"),
        raised=r"OutOfMemoryError: Task was killed|ray\.exceptions\.OutOfMemoryError"
        r"|killed due to the node running low on memory|RayOutOfMemoryError",
        line=r"Task was killed due to the node running low on memory|Memory on the node \(IP: "
        r"|\d+ Workers? \(tasks / actors\) killed due to memory pressure"
        r"|\d+ worker\(s\) were killed due to the node running low on memory",
    ),
    Cause(
        "host-oom-killed",
        "The kernel killed the run because the machine ran out of memory",
        "A process ended by SIGKILL that nobody asked for: nearly always the kernel's out-of-memory killer, or the "
        "memory limit of a container.",
        (*FEWER_PROCESSES, "look at `dmesg | grep -i 'killed process'`", "raise the container's or job's memory limit"),
        line=r"(?:\S{1,200}: line \d+: +\d+ )?Killed(?:$| {3,}|\s+python)|Out of memory: Killed process"
        r"|Memory cgroup out of memory|oom-kill:|The actor is dead .*exceeded K8s pod memory limits",
        fatal=True,
    ),
    Cause(
        "host-memory",
        "The machine has no memory left for an allocation",
        "Python, torch or the system could not get memory from the host (RAM, not the GPU's).",
        FEWER_PROCESSES,
        raised=r"^MemoryError|DefaultCPUAllocator: can't allocate memory|Cannot allocate memory|std::bad_alloc",
    ),
    Cause(
        "shared-memory",
        "The shared memory (/dev/shm) is too small",
        "Data loaders, Ray's object store and NCCL exchange data there; containers often have 64 MB.",
        ("start the container with --shm-size=16g or --ipc=host", "data.dataloader_num_workers=0"),
        raised=r"out of shared memory|insufficient shared memory|unable to mmap .* bytes from file </torch"
        r"|ObjectStoreFullError|unable to open shared memory object",
        line=r"(?:ERROR: )?Unexpected bus error encountered in worker|\S{1,200}: line \d+: +\d+ Bus error",
    ),
)

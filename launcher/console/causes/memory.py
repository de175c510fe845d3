"""Out of memory, on the GPU and in the host."""

from launcher.console.causes.entry import Cause, Level

CUDA_OOM = r"(?:CUDA|HIP) out of memory|CUDA error: out of memory|(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED"
UTILISATION = "actor_rollout_ref.rollout.gpu_memory_utilization ↓ (e.g. 0.3)"
OFFLOAD = (
    "set actor_rollout_ref.actor.fsdp_config.param_offload=True and .optimizer_offload=True",
    "set critic.fsdp.param_offload=True critic.fsdp.optimizer_offload=True",
)
AWAKE = "set actor_rollout_ref.rollout.free_cache_engine=True: the engine frees its share during training"
CHUNKING = (
    "set actor_rollout_ref.actor.entropy_from_logits_with_chunking=True (veRL 0.9.1: only with "
    "model.use_remove_padding=True)"
)
ESTIMATE = "see the memory estimate of every phase: `ppo-tui check PRESET`"
LOGITS = (
    "The logits of one micro-batch do not fit: its tokens times the vocabulary, including padding unless "
    "use_remove_padding=True. The engine sleeps during this phase, so a lower gpu_memory_utilization does not help."
)
FEWER_PROCESSES = (
    "actor_rollout_ref.rollout.agent.num_workers ↓ (e.g. 2), reward.num_workers ↓, data.dataloader_num_workers ↓",
    "turn off param_offload and optimizer_offload for what fits on the GPU: they use 12-16 bytes of host memory "
    "per parameter",
)

CAUSES = (
    Cause(
        "engine-wake-up-oom",
        "GPU out of memory when the rollout engine woke up",
        "From the first update on, weights and Adam states of actor and critic stay on the GPU, and the engine "
        "allocates its whole share again before each rollout. A run can fail here after a successful start.",
        (UTILISATION, *OFFLOAD, "set actor_rollout_ref.rollout.free_cache_engine=True", ESTIMATE),
        raised=CUDA_OOM + r"|CUDA Error: out of memory",
        where=r"wake_up|update_weights|resume_memory|rollout_mode|cumem|reload_weights",
        line=r"CUDA Error: out of memory at \S*cumem",
    ),
    Cause(
        "gpu-oom-critic",
        "GPU out of memory in the critic",
        "From veRL 0.8 on the critic ignores its micro-batch size and packs up to 32768 tokens per GPU.",
        (
            "+critic.ppo_infer_max_token_len_per_gpu ↓ (e.g. 8192)",
            "set critic.model.enable_gradient_checkpointing=True",
            OFFLOAD[1],
            AWAKE,
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"critic_(?:train|infer|update|compute)|update_critic|compute_values",
    ),
    Cause(
        "gpu-oom-update",
        "GPU out of memory in the actor update",
        "Activations and logits of a micro-batch do not fit next to weights, gradients and Adam states.",
        (
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu ↓ (e.g. 1), or with dynamic batches "
            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu ↓",
            "set actor_rollout_ref.model.enable_gradient_checkpointing=True",
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
        "GPU out of memory in the reference's log-probabilities",
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
        "GPU out of memory in the old log-probabilities",
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
        "GPU out of memory at the start of the rollout engine",
        "The engine's weights, profiling run or CUDA graphs do not fit next to the training models.",
        (
            UTILISATION,
            "set actor_rollout_ref.rollout.enforce_eager=True",
            "actor_rollout_ref.rollout.max_num_seqs ↓ (e.g. 64)",
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"(?s)^(?=.*starting)(?=.*(?:from (?:Engine|(?i:vllm)|SGLang|Async|Worker\b)|launch_server"
        r"|vllm/|_build_rollout))",
    ),
    Cause(
        "gpu-oom-load",
        "GPU out of memory while loading the models",
        "The weights of actor and critic alone need 4 bytes per parameter each, before any training.",
        (
            *OFFLOAD,
            "use a smaller model: actor_rollout_ref.model.path",
            "use LoRA: actor_rollout_ref.model.lora_rank=16",
            ESTIMATE,
        ),
        raised=CUDA_OOM,
        where=r"init_model|critic_reset|_build_module|_build_model|load_checkpoint",
    ),
    Cause(
        "gpu-oom-rollout",
        "GPU out of memory in the rollout",
        "The engine's share and what the training models leave of the GPU are not enough for the rollout.",
        (UTILISATION, "actor_rollout_ref.rollout.max_num_seqs ↓ (e.g. 64)", "data.max_response_length ↓", ESTIMATE),
        raised=CUDA_OOM,
        where=r"(?s)^(?=.*stepping)(?=.*(?:from (?:Engine|(?i:vllm)|SGLang|Async|Worker\b|AgentLoop)|generate|vllm/))",
    ),
    Cause(
        "gpu-oom",
        "GPU out of memory",
        "The log does not show the phase.",
        (UTILISATION, *OFFLOAD, ESTIMATE),
        raised=CUDA_OOM,
        line=r"torch\.(?:cuda\.)?OutOfMemoryError: (?:CUDA|HIP) out of memory",  # Ray may drop the traceback
        level=Level.GENERAL,
    ),
    Cause(
        "nccl-gpu-memory",
        "GPU out of memory when NCCL allocated its buffers",
        "NCCL needs memory of its own, outside of torch, and the engine and the training models left none.",
        (UTILISATION, *OFFLOAD, "env: NCCL_CUMEM_ENABLE=0, or NCCL_BUFFSIZE=1048576 for smaller buffers", ESTIMATE),
        raised=r"Cuda failure (?:\d+ )?'out of memory'",
        line=r"\S+:\d+:\d+ \[\d+\] .*NCCL WARN Cuda failure (?:\d+ )?'out of memory'",
        explains="nccl",
    ),
    Cause(
        "host-oom-ray",
        "Host out of memory: Ray killed a worker",
        "Ray kills workers when the host's memory (RAM, not GPU memory) is 95 % full.",
        (
            *FEWER_PROCESSES,
            "env: RAY_memory_usage_threshold=0.98 to raise Ray's limit, which does not reduce memory use",
        ),
        raised=r"OutOfMemoryError: Task was killed|ray\.exceptions\.OutOfMemoryError"
        r"|killed due to the node running low on memory|RayOutOfMemoryError",
        line=r"Task was killed due to the node running low on memory|Memory on the node \(IP: "
        r"|\d+ Workers? \(tasks / actors\) killed due to memory pressure"
        r"|\d+ worker\(s\) were killed due to the node running low on memory",
    ),
    Cause(
        "host-oom-killed",
        "Host out of memory: the kernel killed the run",
        "A process was ended by an unrequested SIGKILL: nearly always the kernel's out-of-memory killer, or the "
        "memory limit of a container.",
        (*FEWER_PROCESSES, "run `dmesg | grep -i 'killed process'`", "raise the memory limit of the container or job"),
        line=r"(?:\S{1,200}: line \d+: +\d+ )?Killed(?:$| {3,}|\s+python)|Out of memory: Killed process"
        r"|Memory cgroup out of memory|oom-kill:|Exit code: -9$|Subprocess \w+ \(pid=\d+\) crashed with exit code -9\b"
        r"|slurmstepd: error: Detected \d+ oom[-_ ]kill event"
        r"|The actor is dead .*exceeded K8s pod memory limits",
        fatal=True,
    ),
    Cause(
        "host-memory",
        "Host out of memory: an allocation failed",
        "Python, torch or the system could not allocate host memory (RAM, not GPU memory).",
        FEWER_PROCESSES,
        raised=r"^MemoryError|DefaultCPUAllocator: can't allocate memory|Cannot allocate memory|std::bad_alloc",
    ),
    Cause(
        "shared-memory",
        "Shared memory (/dev/shm) too small",
        "Data loaders, Ray's object store and NCCL exchange data there; containers often have only 64 MB.",
        ("start the container with --shm-size=16g or --ipc=host", "set data.dataloader_num_workers=0"),
        raised=r"out of shared memory|insufficient shared memory|unable to mmap .* bytes from file </torch"
        r"|ObjectStoreFullError|unable to open shared memory object|shared memory segment|extend /dev/shm/nccl",
        line=r"(?:ERROR: )?Unexpected bus error encountered in worker|\S{1,200}: line \d+: +\d+ Bus error"
        r"|(?:\S+:\d+:\d+ \[\d+\] .*NCCL WARN .*)?(?:Error while creating shared memory segment "
        r"|Error: failed to extend /dev/shm/|Call to (?:posix_fallocate|ftruncate) failed : No space)",
        explains="nccl|disk-full|crashed",
    ),
)

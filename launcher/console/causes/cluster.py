"""Ray and the GPUs it hands out."""

from launcher.console.causes.entry import Cause, Level

STORAGE_UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units=1"

CAUSES = (
    Cause(
        "ray-cpus",
        "Ray waits for CPUs it does not have",
        "veRL 0.9 reserves num_data_storage_units + 1 CPUs for its transfer queue (8 + 1 by default) and 3 per "
        "GPU. With fewer CPUs it waits forever, without an error.",
        (
            STORAGE_UNITS,
            "set ray_kwargs.ray_init.num_cpus to more CPUs than the machine has; Ray allows it (e.g. 16)",
            "stop other runs on this Ray cluster",
        ),
        line=r"(?:Warning|Error): The following resource request cannot be scheduled|Error: No available node types can"
        r"|Warning: The following actor or task",
        level=Level.GENERAL,
        waits=True,
    ),
    Cause(
        "ray-placement",
        "Ray waits for GPUs or CPUs that no node has free: {request}",
        "The request fits no node: GPUs held by another run or hidden from Ray, more GPUs per node than a node has, a "
        "node that never joined, or too few CPUs next to the GPUs (3 per GPU). Ray waits forever, without an error.",
        (
            "run `ray status`: Demands shows what is missing, Active which nodes joined",
            "trainer.n_gpus_per_node ↓ or trainer.nnodes ↓ to what `ray status` shows",
            "stop other runs on this Ray cluster (`ray stop` for leftovers)",
            "if CPUs are short: ray_kwargs.ray_init.num_cpus ↑, " + STORAGE_UNITS,
        ),
        line=r"(?:Warning: The following resource request cannot be scheduled[^{]*"
        r"|Error: No available node types can fulfill[^{]*)(?P<request>\{[^}]*'?(?:GPU|NPU|accelerator_type:)[^}]*\})",
        waits=True,
    ),
    Cause(
        "too-few-gpus",
        "Run requires more GPUs than are available",
        "trainer.n_gpus_per_node times trainer.nnodes exceeds the GPUs that Ray detects. veRL's default is 8 GPUs "
        "per node.",
        ("set trainer.n_gpus_per_node=1", "check CUDA_VISIBLE_DEVICES and that no other run uses the GPUs"),
        raised=r"Total available GPUs [\d.]+ is less than total desired GPUs"
        r"|[Ww]orld size \(\d+\) is larger than the number of available GPUs",
    ),
    Cause(
        "gpus-zero",
        "Number of GPUs set to 0",
        "trainer.n_gpus_per_node and trainer.nnodes must be at least 1.",
        ("set trainer.n_gpus_per_node=1 trainer.nnodes=1",),
        raised=r"ZeroDivisionError: integer (?:division or )?modulo by zero",
        where=r"validate_config",
    ),
    Cause(
        "tensor-parallel",
        "Number of GPUs not divisible by the rollout's parallel size",
        "tensor_model_parallel_size (2 by default) times the data and pipeline parallel sizes must divide the "
        "number of GPUs.",
        ("set actor_rollout_ref.rollout.tensor_model_parallel_size=1",),
        raised=r"rollout world_size: \d+ is not divisible by infer_|gpus_per_node .*tensor_model_parallel_size"
        r"|expert_parallel_size must be equal|pipeline_model_parallel_size > 1",
    ),
    Cause(
        "socket-path",
        "Path of Ray's temporary folder too long",
        "Ray's sockets are in this folder and their paths must not exceed 107 bytes.",
        ("env: RAY_TMPDIR=/tmp/r", "or unset TMPDIR and RAY_TMPDIR"),
        raised=r"AF_UNIX path (?:length cannot exceed|too long)",
    ),
    Cause(
        "port-in-use",
        "Network port already in use",
        "Another run or one of its leftover processes listens on the same port.",
        ("stop the other run: `ppo-tui runs` lists them", "start the run again: veRL and Ray pick other ports"),
        raised=r"EADDRINUSE|[Aa]ddress already in use|Could not find a free port|failed to listen on any local network",
    ),
    Cause(
        "gpu-not-visible",
        "No visible GPU",
        "The NVIDIA driver is missing, or CUDA_VISIBLE_DEVICES hides every GPU from the worker.",
        (
            "check that nvidia-smi lists the GPU",
            "unset CUDA_VISIBLE_DEVICES",
            "without a GPU, use `ppo-tui run toy-cpu`",
        ),
        raised=r"No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device"
        r"|invalid device ordinal|Failed to infer device type",
    ),
    Cause(
        "torch-without-cuda",
        "torch built without CUDA",
        "veRL requires a GPU, and the installed torch cannot use one. A CPU run of ppo-tui fails here too when it "
        "is started by hand without its environment variables.",
        (
            "pip install 'verl[vllm]==0.9.1' (installs torch with CUDA), then check with `ppo-tui doctor`",
            "without a GPU, use `ppo-tui run toy-cpu`",
        ),
        raised=r"Torch not compiled with CUDA enabled|Distributed package doesn't have NCCL",
    ),
    Cause(
        "gpu-driver",
        "NVIDIA driver or torch does not support the GPU",
        "The driver is older than the CUDA version of torch, or torch was built without support for this GPU.",
        ("update the NVIDIA driver", "or install a torch built for this GPU; `ppo-tui doctor` shows both versions"),
        raised=r"driver on your system is too old|compiled with an unsupported toolchain"
        r"|driver version is insufficient|no kernel image is available"
        r"|forward compatibility was attempted|is not compatible with the current PyTorch installation",
    ),
    Cause(
        "visible-devices",
        "CUDA_VISIBLE_DEVICES, HIP_ and ROCR_VISIBLE_DEVICES contradict each other",
        "Slurm and Ray set several of these variables; Ray and veRL refuse values that differ.",
        (
            "unset HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES before the start (on AMD keep HIP_VISIBLE_DEVICES alone)",
            "env: RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES=1 if Ray sets them",
        ),
        raised=r"[Ii]nconsist[ae]nt values found|Please (?:use the same|use either|don't set) (?:HIP|ROCR)_VISIBLE_DEV"
        r"|Please use HIP_VISIBLE_DEVICES instead",
    ),
    Cause(
        "actor-name-taken",
        "Ray actor of that name already exists",
        "Workers of an earlier run are still alive in this Ray cluster, or a worker was restarted under its old name "
        "after it failed.",
        ("run `ray stop --force` on every node, then start again", "look further up for why a worker was restarted"),
        raised=r"The name \S+ \(namespace=[^)]*\) is already taken",
        level=Level.GENERAL,
    ),
    Cause(
        "runtime-env-size",
        "Working directory too large for Ray to upload",
        "Ray packs runtime_env.working_dir for the other nodes, with checkpoints, weights and data in it.",
        (
            "exclude them: `excludes: ['*.safetensors', 'checkpoints/', 'data/']` in the runtime environment",
            "or start the run in a folder with nothing but code",
        ),
        raised=r"exceeds the maximum size of|HTTPRequestEntityTooLarge|Request Entity Too Large",
    ),
    Cause(
        "runtime-env",
        "Ray could not set up the runtime environment of a worker",
        "A package, a folder or a variable of ray_kwargs.ray_init.runtime_env cannot be prepared on a node.",
        ("read the message below this line", "remove what the preset or the script adds to runtime_env, or correct it"),
        raised=r"RuntimeEnvSetupError|Failed to set up runtime environment",
        level=Level.GENERAL,
    ),
    Cause(
        "cuda-fork",
        "CUDA used before a process was forked",
        "vLLM starts its workers by fork, and this process had already used the GPU: code in a reward function, a "
        "custom class or the launcher that asks torch for the GPU when it is imported.",
        ("env: VLLM_WORKER_MULTIPROC_METHOD=spawn", "do not call torch.cuda when a module is imported"),
        raised=r"Cannot re-initialize CUDA in forked subprocess",
    ),
    Cause(
        "cuda-error",
        "CUDA error",
        "A kernel failed on the GPU: an illegal address, a failed assertion (often a token id outside the vocabulary, "
        "or NaN), or broken hardware.",
        (
            "env: CUDA_LAUNCH_BLOCKING=1 to find the line that fails",
            "check dmesg for Xid messages, which point to a hardware fault",
        ),
        raised=r"CUDA error(?!: device-side assert)|CUBLAS_STATUS_|CUDNN_STATUS_|cudaError(?!Assert)",
        level=Level.GENERAL,
    ),
    Cause(
        "ray-start",
        "Ray failed to start on this machine",
        "Ray's head process or a worker did not start in time: too few CPUs, too many workers at once, a full "
        "disk, or a proxy that intercepts local addresses.",
        (
            "ray_kwargs.ray_init.num_cpus ↓ (e.g. 16): Ray starts one worker per CPU",
            "set +ray_kwargs.ray_init.include_dashboard=False",
            "unset http_proxy and https_proxy, or set no_proxy=localhost,127.0.0.1",
        ),
        raised=r"node timed out during startup|Failed to start (?:the dashboard|GCS)"
        r"|Unable to register worker with raylet"
        r"|Failed to register worker to Raylet|RaySystemError|Raylet could not connect",
        line=r"Failed to start the dashboard|The current node timed out during startup"
        r"|Unable to register worker with raylet",
        level=Level.GENERAL,
    ),
    Cause(
        "worker-died",
        "Worker process exited without an error message",
        "Ray lost a process that neither raised an exception nor was stopped: killed for memory (host RAM), or "
        "crashed in native code.",
        (
            "watch the host's memory use: actor_rollout_ref.rollout.agent.num_workers ↓, data.dataloader_num_workers ↓",
            "read the log of the process in the Ray session folder: /tmp/ray/session_latest/logs",
            "run `dmesg | grep -i 'killed process'`",
        ),
        raised=r"ActorDiedError|WorkerCrashedError|RayActorError|NodeDiedError|ActorUnavailableError"
        r"|LocalRayletDiedError|OwnerDiedError|ObjectLostError",
        line=r"The actor is dead because its worker process has died|A worker died or was killed while executing",
        level=Level.SYMPTOM,
        cause_in=r"^(?!AgentLoop|RewardLoop)",
    ),
)

"""Ray, the GPUs it hands out, and what connects them."""

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
        "ray-address",
        "RAY_ADDRESS points to a stopped or different Ray cluster",
        "Ray could not join the existing cluster, or the arguments are only valid for a new one.",
        (
            "unset RAY_ADDRESS to start a new Ray cluster",
            "or set cluster.address to a running cluster; `ray status` shows it",
        ),
        raised=r"Could not find any running Ray instance|When connecting to an existing cluster"
        r"|Failed to connect to Ray cluster|Ray Client is already connected"
        r"|Version mismatch: The cluster was started",
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
        "nccl",
        "Communication between GPUs failed (NCCL)",
        "A collective operation failed or hung: a GPU process exited, peer-to-peer transfer is broken on this "
        "machine, or two ranks use the same GPU.",
        (
            "env: NCCL_P2P_DISABLE=1 where peer-to-peer transfer is broken",
            "env: NCCL_DEBUG=INFO to see which connection fails",
            "look further up in the log for the rank that failed first",
        ),
        raised=r"NCCL error|nccl(?:System|UnhandledCuda|Internal|Invalid|Remote)\w*|DistBackendError|DistStoreError"
        r"|DistNetworkError|Duplicate GPU detected|Watchdog caught collective operation timeout"
        r"|Timed out waiting for clients to join|client socket has timed out",
        line=r"Watchdog caught collective operation timeout|(?:Some"
        r"|Process group watchdog).*NCCL operations have failed",
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
        raised=r"driver on your system is too old|driver version is insufficient|no kernel image is available"
        r"|forward compatibility was attempted|is not compatible with the current PyTorch installation",
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
        raised=r"CUDA error: |CUDA error|CUBLAS_STATUS_|CUDNN_STATUS_|device-side assert|cudaError|AcceleratorError",
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

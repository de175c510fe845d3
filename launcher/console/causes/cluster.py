"""Ray, the GPUs it hands out, and what connects them."""

from launcher.console.causes.entry import Cause, Level

STORAGE_UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units=1"

CAUSES = (
    Cause(
        "ray-cpus",
        "Ray waits for CPUs that it does not have",
        "veRL 0.9 reserves num_data_storage_units + 1 CPUs for its transfer queue (8 + 1 by default) and 3 for each "
        "GPU. With fewer it waits for ever, without an error.",
        (
            STORAGE_UNITS,
            "ray_kwargs.ray_init.num_cpus= a larger number than there are CPUs is allowed (e.g. 16)",
            "end other runs that share this Ray cluster",
        ),
        line=r"(?:Warning|Error): The following resource request cannot be scheduled|Error: No available node types can"
        r"|Warning: The following actor or task",
        level=Level.GENERAL,
    ),
    Cause(
        "too-few-gpus",
        "The run wants more GPUs than there are",
        "trainer.n_gpus_per_node times trainer.nnodes is more than Ray sees. veRL's default is 8 GPUs a node.",
        ("trainer.n_gpus_per_node=1", "check CUDA_VISIBLE_DEVICES and that no other run holds the GPUs"),
        raised=r"Total available GPUs [\d.]+ is less than total desired GPUs"
        r"|[Ww]orld size \(\d+\) is larger than the number of available GPUs",
    ),
    Cause(
        "gpus-zero",
        "The run asks for no GPU",
        "trainer.n_gpus_per_node and trainer.nnodes must be at least 1.",
        ("trainer.n_gpus_per_node=1 trainer.nnodes=1",),
        raised=r"ZeroDivisionError: integer (?:division or )?modulo by zero",
        where=r"validate_config",
    ),
    Cause(
        "tensor-parallel",
        "The GPUs cannot be divided by the rollout's parallel size",
        "tensor_model_parallel_size (2 by default) times data and pipeline parallel size must divide the number of "
        "GPUs.",
        ("actor_rollout_ref.rollout.tensor_model_parallel_size=1",),
        raised=r"rollout world_size: \d+ is not divisible by infer_|gpus_per_node .*tensor_model_parallel_size"
        r"|expert_parallel_size must be equal|pipeline_model_parallel_size > 1",
    ),
    Cause(
        "ray-address",
        "RAY_ADDRESS points to another or a dead Ray cluster",
        "Ray was told to join an existing cluster and could not, or may not with the arguments of a new one.",
        (
            "unset RAY_ADDRESS to start a Ray of its own",
            "or cluster.address= a cluster that lives; `ray status` shows it",
        ),
        raised=r"Could not find any running Ray instance|When connecting to an existing cluster"
        r"|Failed to connect to Ray cluster|Ray Client is already connected"
        r"|Version mismatch: The cluster was started",
    ),
    Cause(
        "socket-path",
        "The path of Ray's temporary folder is too long",
        "Ray's sockets live there and their paths must not exceed 107 bytes.",
        ("env: RAY_TMPDIR=/tmp/r", "or unset TMPDIR and RAY_TMPDIR"),
        raised=r"AF_UNIX path (?:length cannot exceed|too long)",
    ),
    Cause(
        "port-in-use",
        "A network port is already taken",
        "Another run, or the leftover of one, listens on the same port.",
        ("end the other run: `ppo-tui runs`", "start again: veRL and Ray pick other ports"),
        raised=r"EADDRINUSE|[Aa]ddress already in use|Could not find a free port|failed to listen on any local network",
    ),
    Cause(
        "nccl",
        "The GPUs could not talk to each other (NCCL)",
        "A collective operation failed or hung: a GPU process died, peer-to-peer transfer is broken on this machine, "
        "or two ranks use the same GPU.",
        (
            "env: NCCL_P2P_DISABLE=1 on machines with broken peer-to-peer transfer",
            "env: NCCL_DEBUG=INFO shows which connection fails",
            "look further up for a rank that died first",
        ),
        raised=r"NCCL error|nccl(?:System|UnhandledCuda|Internal|Invalid|Remote)\w*|DistBackendError|DistStoreError"
        r"|DistNetworkError|Duplicate GPU detected|Watchdog caught collective operation timeout"
        r"|Timed out waiting for clients to join|client socket has timed out",
        line=r"Watchdog caught collective operation timeout|(?:Some"
        r"|Process group watchdog).*NCCL operations have failed",
    ),
    Cause(
        "gpu-not-visible",
        "No GPU is visible",
        "There is no NVIDIA driver, or CUDA_VISIBLE_DEVICES cause_in every GPU from the worker.",
        ("nvidia-smi must list the GPU", "unset CUDA_VISIBLE_DEVICES", "without a GPU: `ppo-tui run toy-cpu`"),
        raised=r"No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device"
        r"|invalid device ordinal|Failed to infer device type",
    ),
    Cause(
        "torch-without-cuda",
        "This torch was built without CUDA",
        "veRL takes a GPU for granted, and the torch beside it cannot use any. A run of ppo-tui's for the "
        "CPU ends here as well when it is started by hand without its environment variables.",
        (
            "pip install 'verl[vllm]==0.9.1' (it brings a torch with CUDA); check with `ppo-tui doctor`",
            "without a GPU: `ppo-tui run toy-cpu`",
        ),
        raised=r"Torch not compiled with CUDA enabled|Distributed package doesn't have NCCL",
    ),
    Cause(
        "gpu-driver",
        "The NVIDIA driver or this torch does not fit the GPU",
        "The driver is older than the CUDA that torch was built with, or torch has no code for this GPU.",
        ("update the driver", "or install a torch built for it; `ppo-tui doctor` shows both versions"),
        raised=r"driver on your system is too old|driver version is insufficient|no kernel image is available"
        r"|forward compatibility was attempted|is not compatible with the current PyTorch installation",
    ),
    Cause(
        "cuda-error",
        "A CUDA error",
        "A kernel failed on the GPU: an illegal address, a failed assertion (often a token id outside the vocabulary, "
        "or NaN), or broken hardware.",
        (
            "env: CUDA_LAUNCH_BLOCKING=1 shows the line that fails",
            "check dmesg for Xid messages: the GPU itself may be at fault",
        ),
        raised=r"CUDA error: |CUDA error|CUBLAS_STATUS_|CUDNN_STATUS_|device-side assert|cudaError|AcceleratorError",
        level=Level.GENERAL,
    ),
    Cause(
        "ray-start",
        "Ray could not start on this machine",
        "Its head process or a worker did not come up in time: too few CPUs, too many workers at once, a full disk, or "
        "a proxy that catches local addresses.",
        (
            "ray_kwargs.ray_init.num_cpus ↓ (e.g. 16): Ray starts a worker a CPU",
            "+ray_kwargs.ray_init.include_dashboard=False",
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
        "A worker process died without saying why",
        "Ray lost a process that neither raised an exception nor was asked to end: killed for memory (host RAM), or "
        "crashed in native code.",
        (
            "watch the host's memory: actor_rollout_ref.rollout.agent.num_workers ↓, data.dataloader_num_workers ↓",
            "look for the process's own log in the Ray session folder: /tmp/ray/session_latest/logs",
            "`dmesg | grep -i 'killed process'`",
        ),
        raised=r"ActorDiedError|WorkerCrashedError|RayActorError|NodeDiedError|ActorUnavailableError"
        r"|LocalRayletDiedError|OwnerDiedError|ObjectLostError",
        line=r"The actor is dead because its worker process has died|A worker died or was killed while executing",
        level=Level.SYMPTOM,
        cause_in=r"^(?!AgentLoop|RewardLoop)",
    ),
)

"""What connects processes, GPUs and nodes: NCCL, Gloo, Ray's control service."""

from launcher.console.causes.entry import Cause, Level

CAUSES = (
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
        level=Level.SYMPTOM,
        cause_in=r"^(?!AgentLoop|RewardLoop)",
        fatal=True,
    ),
    Cause(
        "nccl-interface",
        "No network interface for NCCL",
        "NCCL found no interface of the given name, or none at all, to reach the other ranks.",
        (
            "env: NCCL_SOCKET_IFNAME= an interface that `ip addr` lists on every node (e.g. eth0)",
            "unset NCCL_SOCKET_IFNAME if it names an interface of another machine",
        ),
        raised=r"[Nn]o socket interface found",
        line=r"\S+:\d+:\d+ \[\d+\] .*NCCL WARN .*[Nn]o socket interface found",
        explains="nccl",
    ),
    Cause(
        "peer-access",
        "GPUs cannot read each other's memory",
        "Peer access is not available between these GPUs: consumer cards, GPUs of different kinds or sockets, or a "
        "virtual machine that hides it.",
        (
            "set +actor_rollout_ref.rollout.engine_kwargs.vllm.disable_custom_all_reduce=True",
            "set actor_rollout_ref.rollout.tensor_model_parallel_size=1",
            "env: NCCL_P2P_DISABLE=1",
        ),
        raised=r"peer access is not supported between these two devices",
    ),
    Cause(
        "gloo-network",
        "Nodes do not reach each other (Gloo)",
        "Gloo connects every rank with every other one by TCP and picks the wrong interface where a node has "
        "several, or its host name resolves to 127.0.0.1 or 127.0.1.1.",
        (
            "env: GLOO_SOCKET_IFNAME= and NCCL_SOCKET_IFNAME= the interface that connects the nodes (`ip addr`)",
            "check that the host name resolves to the node's own address: hostname -i",
        ),
        raised=r"connectFullMesh failed|gloo/transport/tcp/\S+: ?\d*\]? .*(?:refused|timed out|no error)",
    ),
    Cause(
        "ray-unauthenticated",
        "Ray cluster requires a token",
        "The cluster was started with token authentication (Ray's default from 2.60 on), and this process has no "
        "token or another one.",
        (
            "env: RAY_AUTH_MODE=token, and copy ~/.ray/auth_token of the head node, or set RAY_AUTH_TOKEN_PATH",
            "on a trusted machine, start the cluster with RAY_AUTH_MODE=disabled",
        ),
        raised=r"InvalidAuthToken|Unauthenticated: |ray\.exceptions\.AuthenticationError",
        line=r".{0,160}(?:InvalidAuthToken|Unauthenticated: RPC error)",
        explains="ray-address|ray-start|ray-control",
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
        "ray-control",
        "Ray's control service does not answer",
        "The head node's GCS is not reachable: leftovers of an older Ray, a head node that ended or was killed, or a "
        "firewall or proxy between the nodes.",
        (
            "run `ray stop` on every node, then start again",
            "unset http_proxy and https_proxy, or set no_proxy to the nodes' addresses",
            "read gcs_server.out in the Ray session folder of the head node: /tmp/ray/session_latest/logs",
        ),
        raised=r"Failed to connect to GCS|Failed to get cluster ID from GCS|RpcError.*GCS|GCS may have been killed",
        line=r"Failed to connect to GCS|Failed to get cluster ID from GCS server",
        level=Level.SYMPTOM,
        cause_in=r"^(?!AgentLoop|RewardLoop)",
    ),
)

"""Python packages, limits of the system, signals."""

from launcher.console.causes.entry import Cause, Level

DOCTOR = "`ppo-tui doctor` lists what is missing and how to get it"
CRASH = (
    "look for the process's own log in the Ray session folder: /tmp/ray/session_latest/logs",
    "env: PYTHONFAULTHANDLER=1 shows where it happens",
)

CAUSES = (
    Cause(
        "verl-missing",
        "veRL is not installed in this Python",
        "The interpreter that was started cannot import verl.",
        ("PPO_TUI_PYTHON= the interpreter of the environment with veRL, or python: in the preset", DOCTOR),
        raised=r"No module named 'verl(?:\.[\w.]+)?'",
        line=r"\S*python\S*: (?:No module named verl|Error while finding module specification for 'verl)",
        fatal=True,
    ),
    Cause(
        "transfer-queue-missing",
        "The package TransferQueue is missing",
        "The trainer of veRL 0.9 needs it and a plain `pip install verl` does not bring it along.",
        ("pip install TransferQueue==0.1.11, or 'verl[vllm]==0.9.1'", "stop-gap: trainer.use_v1=False", DOCTOR),
        raised=r"No module named 'transfer_queue|No module named 'TransferQueue",
    ),
    Cause(
        "orjson-missing",
        "The package orjson is missing",
        "veRL's logger imports it without declaring it.",
        ("pip install orjson", DOCTOR),
        raised=r"No module named 'orjson'",
    ),
    Cause(
        "tensordict-version",
        "The installed tensordict does not fit",
        "veRL 0.9.1 with TransferQueue 0.1.11 needs tensordict 0.10.0 exactly.",
        ("pip install tensordict==0.10.0", DOCTOR),
        raised=r"TensorDict does not support membership checks|(?:No module named|cannot import name).*tensordict"
        r"|cannot import name 'ForkingPickler'",
    ),
    Cause(
        "module-missing",
        "The Python module '{module}' is missing",
        "A package that this run needs is not installed in veRL's environment.",
        ("pip install the package that provides {module}", DOCTOR),
        raised=r"No module named '?(?P<module>[\w.]+)'?",
        level=Level.GENERAL,
    ),
    Cause(
        "package-versions",
        "Two installed packages do not fit together",
        "A package was found, but not the name or binary that another one expects of it.",
        ("install the versions that belong to this veRL: pip install 'verl[vllm]==0.9.1'", DOCTOR),
        raised=r"ImportError: cannot import name |undefined symbol: |numpy\.dtype size changed|_ARRAY_API not found"
        r"|ImportError: .*version .* is required|ContextualVersionConflict|cannot open shared object file",
        level=Level.GENERAL,
    ),
    Cause(
        "cpu-platform-version",
        "ppo-tui's CPU platform does not support this veRL",
        "It replaces parts of veRL and was made for one version; with another it refuses to start.",
        ("pip install 'ppo-tui[cpu]' in the environment of veRL", "or choose a preset for GPUs"),
        raised=r"UnsupportedVerl|CPU platform .*works with veRL",
    ),
    Cause(
        "plugin-missing",
        "ppo-tui's plugin is not loaded",
        "The platform cpu, the rollout engine hf and the module launcher are no part of veRL: they come from "
        "ppo-tui, whose runs load them by environment variables. This run was started without those.",
        (
            "start it with `ppo-tui run PRESET`",
            "or by hand with every environment variable that `ppo-tui command PRESET` prints",
            "in a script of your own for GPUs: actor_rollout_ref.rollout.name=vllm, without VERL_PLATFORM",
        ),
        raised=r"Unknown platform 'cpu'|No module named 'launcher(?:\.[\w.]+)?'"
        r"|Rollout hf with mode|Unknown rollout mode: hf\b",
    ),
    Cause(
        "open-files",
        "Too many open files",
        "The limit of open files is too low for Ray's sockets and workers.",
        ("ulimit -n 65535 in the shell that starts the run",),
        raised=r"\[Errno 24\]|Too many open files",
        line=r".{0,60}Too many open files",
    ),
    Cause(
        "process-limit",
        "Too many processes or threads",
        "The limit of processes (ulimit -u, or the container's pids limit) is reached: Ray and veRL start hundreds of "
        "threads.",
        (
            "ulimit -u 65535, or raise the container's pids limit",
            "env: OMP_NUM_THREADS=1",
            "actor_rollout_ref.rollout.agent.num_workers ↓, reward.num_workers ↓",
        ),
        raised=r"can't start new thread|\[Errno 11\]|Resource temporarily unavailable",
        line=r"(?:Unhandled exception: .*)?(?:thread: )?Resource temporarily unavailable \[system:11\]"
        r"|Unhandled exception: .*Resource temporarily|pthread_create failed"
        r"|OpenBLAS blas_thread_init: pthread_create",
    ),
    Cause(
        "permission-denied",
        "Permission denied: {path}",
        "The run may not read or write a file or folder.",
        ("check the owner of the path, or choose another",),
        raised=r"PermissionError: (?:.*?(?P<path>'[^']*'))?",
        level=Level.GENERAL,
    ),
    Cause(
        "crashed",
        "A process crashed in native code",
        "A segmentation fault or an abort outside Python: incompatible binaries, broken GPU memory, or a bug in a "
        "library.",
        CRASH,
        line=r"\*\*\* SIG(?:SEGV|BUS|ILL|FPE|ABRT) received|Fatal Python error: |!!!!!!! Segfault encountered"
        r"|\S{1,200}: line \d+: +\d+ (?:Segmentation fault|Illegal instruction)|Segmentation fault"
        r"|terminate called after throwing",
        level=Level.GENERAL,
        fatal=True,
    ),
    Cause(
        "killed-by-signal",
        "The run was ended by a signal",
        "A signal that nobody sent through ppo-tui ended the driver: a lost terminal (SIGHUP), a limit of the job "
        "scheduler, or a crash in native code.",
        ("start it detached: `ppo-tui run PRESET --detach`", *CRASH),
        line=r"\S{1,200}: line \d+: +\d+ (?:Hangup|Aborted|Terminated|CPU time limit exceeded)|Hangup$"
        r"|Aborted(?:$| \(core)",
        level=Level.GENERAL,
        fatal=True,
    ),
)

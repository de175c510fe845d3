"""Python packages, limits of the system, signals."""

from launcher.console.causes.entry import Cause, Level

DOCTOR = "run `ppo-tui doctor` to see what is missing and how to install it"
CRASH = (
    "read the log of the process in the Ray session folder: /tmp/ray/session_latest/logs",
    "env: PYTHONFAULTHANDLER=1 to see where it crashed",
)

CAUSES = (
    Cause(
        "verl-missing",
        "veRL is not installed in this Python",
        "The Python interpreter of the run cannot import verl.",
        ("set PPO_TUI_PYTHON, or python: in the preset, to the interpreter of the environment with veRL", DOCTOR),
        raised=r"No module named 'verl(?:\.[\w.]+)?'",
        line=r"\S*python\S*: (?:No module named verl|Error while finding module specification for 'verl)",
        fatal=True,
    ),
    Cause(
        "transfer-queue-missing",
        "Package TransferQueue missing",
        "The trainer of veRL 0.9 requires TransferQueue, which a plain `pip install verl` does not install.",
        (
            "pip install TransferQueue==0.1.11, or 'verl[vllm]==0.9.1'",
            "as a workaround, set trainer.use_v1=False",
            DOCTOR,
        ),
        raised=r"No module named 'transfer_queue|No module named 'TransferQueue",
    ),
    Cause(
        "orjson-missing",
        "Package orjson missing",
        "veRL's logger imports orjson, but veRL does not declare it as a dependency.",
        ("pip install orjson", DOCTOR),
        raised=r"No module named 'orjson'",
    ),
    Cause(
        "tensordict-version",
        "Incompatible tensordict version",
        "veRL 0.9.1 with TransferQueue 0.1.11 requires tensordict 0.10.0 exactly.",
        ("pip install tensordict==0.10.0", DOCTOR),
        raised=r"TensorDict does not support membership checks|(?:No module named|cannot import name).*tensordict"
        r"|cannot import name 'ForkingPickler'",
    ),
    Cause(
        "module-missing",
        "Python module '{module}' missing",
        "A package that this run requires is not installed in veRL's environment.",
        ("pip install the package that provides {module}", DOCTOR),
        raised=r"No module named '?(?P<module>[\w.]+)'?",
        level=Level.GENERAL,
    ),
    Cause(
        "package-versions",
        "Incompatible installed packages",
        "A package is installed, but lacks a name or binary that another package requires from it.",
        ("install the versions for this veRL: pip install 'verl[vllm]==0.9.1'", DOCTOR),
        raised=r"ImportError: cannot import name |undefined symbol: |numpy\.dtype size changed|_ARRAY_API not found"
        r"|ImportError: .*version .* is required|ContextualVersionConflict|cannot open shared object file",
        level=Level.GENERAL,
    ),
    Cause(
        "cpu-platform-version",
        "CPU platform of ppo-tui does not support this veRL",
        "The CPU platform replaces parts of one veRL version and does not start with another.",
        ("pip install verl==0.9.1 in veRL's environment", "or choose a preset for GPUs"),
        raised=r"UnsupportedVerl|CPU platform .*works with veRL",
    ),
    Cause(
        "plugin-missing",
        "Plugin of ppo-tui not loaded",
        "The platform cpu, the rollout engine hf and the module launcher are not part of veRL: they come from "
        "ppo-tui, which loads them with environment variables. This run was started without those variables.",
        (
            "start the run with `ppo-tui run PRESET`",
            "or start it by hand with every environment variable that `ppo-tui command PRESET` prints",
            "in your own script for GPUs: actor_rollout_ref.rollout.name=vllm, without VERL_PLATFORM",
        ),
        raised=r"Unknown platform 'cpu'|No module named 'launcher(?:\.[\w.]+)?'"
        r"|Rollout hf with mode|Unknown rollout mode: hf\b",
    ),
    Cause(
        "open-files",
        "Too many open files",
        "The limit of open files is too low for Ray's sockets and workers.",
        ("run `ulimit -n 65535` in the shell that starts the run",),
        raised=r"\[Errno 24\]|Too many open files",
        line=r".{0,60}Too many open files",
    ),
    Cause(
        "process-limit",
        "Too many processes or threads",
        "The limit of processes is reached (ulimit -u, or the container's pids limit): Ray and veRL start hundreds "
        "of threads.",
        (
            "run `ulimit -u 65535`, or raise the container's pids limit",
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
        "The run has no permission to read or write a file or folder.",
        ("check the owner of the path, or choose another path",),
        raised=r"PermissionError: (?:.*?(?P<path>'[^']*'))?",
        level=Level.GENERAL,
    ),
    Cause(
        "crashed",
        "Process crashed in native code",
        "A segmentation fault or an abort outside Python: incompatible binaries, broken GPU memory, or a bug in a "
        "library.",
        CRASH,
        line=r"\*\*\* SIG(?:SEGV|BUS|ILL|FPE|ABRT) received|Fatal Python error: |!!!!!!! Segfault encountered"
        r"|\S{1,200}: line \d+: +\d+ (?:Segmentation fault|Illegal instruction)|Segmentation fault"
        r"|terminate called after throwing|Subprocess \w+ \(pid=\d+\) crashed with exit code -(?:4|6|7|8|11)\b",
        level=Level.GENERAL,
        fatal=True,
    ),
    Cause(
        "killed-by-signal",
        "Run ended by a signal",
        "A signal that was not sent through ppo-tui ended the driver: a lost terminal (SIGHUP), a limit of the job "
        "scheduler, or a crash in native code.",
        ("start the run detached: `ppo-tui run PRESET --detach`", *CRASH),
        line=r"\S{1,200}: line \d+: +\d+ (?:Hangup|Aborted|Terminated|CPU time limit exceeded)|Hangup$"
        r"|Aborted(?:$| \(core)",
        level=Level.GENERAL,
        fatal=True,
    ),
)

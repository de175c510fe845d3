"""Forks Ray's workers from one process that has imported torch, transformers and veRL.

A run on the CPU has about ten workers. Each would import the same packages, for 5 s of CPU time, most of the start on
two cores. The driver starts this server as soon as it has imported veRL; the server imports the packages once, while
the driver reads its configuration and starts Ray. For each worker Ray runs `setup_worker.py`, which requests a fork
from the server. If the server declines or is gone, Ray starts the worker as usual.

Ray draws task ids from a C++ generator seeded at its first use, and a fork copies its state: two forks would give
different tasks the same ids, and Ray ends a process that gets both. So nothing may draw before the fork.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from . import setup_worker

SWITCH = "PPO_TUI_FORK_WORKERS"  # 0: each worker imports everything for itself
DRIVER = "verl.trainer.main_ppo"
OWN_RAY = "ray_init.address=local"  # end of the argument by which a driver starts its own Ray
PRELOADED = (DRIVER, "verl.trainer.ppo.v1", f"{__package__}.plugin.rollout", "transformers.models.qwen2.modeling_qwen2")
READ_AT_IMPORT = ("LD_", "MALLOC_", "MKL_", "OMP_", "PYTHON", "TORCH")  # variables that a fork cannot change any more
_THREADS = "OMP_NUM_THREADS"  # without it Ray chooses one per worker
_JOB, _FIRST_JOB = "RAY_JOB_ID", "01000000"
_CODE = f"from {__package__} import fork_server; fork_server.main()"
_STALLED = 10.0  # seconds after which an asking process is given up
_server: "subprocess.Popen[bytes] | None" = None  # ends with the driver, which holds its stdin


def install() -> None:
    """Starts the server and makes Ray use it for workers. Does nothing outside a driver that starts its own Ray."""
    global _server
    arguments = sys.orig_argv
    driver = DRIVER in arguments and any(argument.endswith(OWN_RAY) for argument in arguments)
    if not driver or sys.platform != "linux" or os.environ.get(SWITCH) == "0" or _THREADS not in os.environ:
        return
    from ray._private import ray_constants, services

    own = Path(services.__file__).parent / "workers" / ray_constants.SETUP_WORKER_FILENAME
    address = f"ppo-tui-{os.getpid()}-{os.urandom(8).hex()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + address)
        listener.listen(64)
        _server = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(listener.fileno())],
            # Ray's core reads both once, at import, and requires them in a worker. The second is a process without
            # which a worker ends: the driver will do, because its Ray ends with it.
            env={**os.environ, _JOB: _FIRST_JOB, "RAY_RAYLET_PID": str(os.getpid())},
            pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    os.environ[setup_worker.ADDRESS] = address
    os.environ[setup_worker.INSTEAD_OF] = str(own)
    ray_constants.SETUP_WORKER_FILENAME = setup_worker.__file__  # Ray joins it to a folder; an absolute path stays


class Worker(NamedTuple):
    """A worker as requested by Ray. `files`: its stdin, stdout and stderr."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    files: Sequence[int]

    def run(self) -> NoReturn:
        """Becomes the worker, as if Python had started with its script."""
        import numpy
        from ray._raylet import Config

        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)  # like Ray's own workers
        for target, file in enumerate(self.files):
            os.dup2(file, target)
            os.close(file)
        os.chdir(self.cwd)
        os.environ.clear()
        os.environ.update(self.env)
        Config.initialize("")  # rereads Ray's variables
        numpy.random.seed()  # different from other workers' numbers; Python's `random` does this itself
        sys.argv = list(self.argv)
        sys.path[0] = str(Path(self.argv[0]).parent)
        runpy.run_path(self.argv[0], run_name="__main__")
        sys.exit()


def main() -> None:
    """Serves until the driver ends. In a worker it ends with the worker."""
    import ray.actor

    listener = socket.socket(fileno=int(sys.argv[1]))
    ray.actor.ActorClassID = _ClassId
    for name in PRELOADED:
        importlib.import_module(name)
    if _forks_share_ids():
        return
    gc.collect()
    gc.freeze()  # no collection in a worker writes to the memory that all share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the workers
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        worker, here = None, False
        with contextlib.suppress(OSError, ValueError, KeyError), listener.accept()[0] as connection:
            worker = _receive(connection)
            if worker is not None:
                here = os.fork() == 0
                if not here:
                    connection.sendall(setup_worker.STARTED)
        if worker is not None and here:
            listener.close()
            worker.run()
        for file in worker.files if worker is not None else ():
            os.close(file)


class _ClassId:
    """Ids of actor classes from the system: the only ids that Ray draws at import, for each class with `ray.remote`."""

    @staticmethod
    def from_random() -> Any:
        import ray

        return ray.ActorClassID(os.urandom(ray.ActorClassID.size()))


def _forks_share_ids() -> bool:
    """Whether something nevertheless drew from Ray's generator."""
    import ray

    reader, writer = os.pipe()
    for _ in range(2):
        child = os.fork()
        if child == 0:
            os.write(writer, ray.ObjectRef.from_random().binary())
            os._exit(0)
        os.waitpid(child, 0)
    first, second = (os.read(reader, ray.ObjectRef.size()) for _ in range(2))
    return first == second


def _receive(connection: socket.socket) -> Worker | None:
    """The worker requested by a process of this user; None if Ray should start it."""
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if uid != os.getuid():
        return None
    connection.settimeout(_STALLED)
    connection.sendall(setup_worker.GREETING)
    data, files, _, _ = socket.recv_fds(connection, 1, 3)
    while part := connection.recv(1 << 16):
        data += part
    asked = json.loads(data)
    found = understand(asked["argv"], asked["env"])
    if found is not None and len(files) == 3:
        return Worker(*found, asked["cwd"], files)
    for file in files:
        os.close(file)
    return None


def understand(words: Sequence[str], env: Mapping[str, str]) -> tuple[Sequence[str], Mapping[str, str]] | None:
    """Arguments and environment of a worker's script, from the arguments of `setup_worker.py`; None if a fork is not
    possible.

    That is so if Ray prepared another interpreter or container, and if the packages' imports would have read other
    values than the server's.
    """
    options, argv = {}, []
    for word in words:
        name, given, value = word.partition("=")
        if given and name in ("--serialized-runtime-env-context", "--language"):
            options[name] = value
        else:
            argv.append(word)
    context = json.loads(options.get("--serialized-runtime-env-context") or "{}")
    prepared = context.get("command_prefix") or context.get("override_worker_entrypoint")
    python = context.get("py_executable") or sys.executable
    if options.get("--language") != "PYTHON" or prepared or python != sys.executable or not argv[0].endswith(".py"):
        return None
    added = context.get("env_vars") or {}
    if any("$" in value for value in added.values()):  # Ray would replace them
        return None
    wanted = {**env, **added}
    read = (name for name in wanted if name == _JOB or name.startswith(READ_AT_IMPORT))
    return (argv, wanted) if all(wanted[name] == os.environ.get(name) for name in read) else None

"""Starts a Ray worker: requests one from the run's fork server, or does the work of Ray's own `setup_worker.py`.

Ray runs this file instead of its own and requires its name. It imports nothing of this package, to start in 30 ms.
Python puts this folder first on its path, so no module here may have a name of the standard library.
"""

import contextlib
import json
import os
import socket
import sys

ADDRESS = "PPO_TUI_FORK_SERVER"  # name of the server's abstract socket
INSTEAD_OF = "PPO_TUI_SETUP_WORKER"  # Ray's own script
GREETING, STARTED = b"?", b"+"


def main() -> None:
    started = False
    with contextlib.suppress(OSError, KeyError):
        started = ask(os.environ[ADDRESS])
    if not started:
        os.execv(sys.executable, [sys.executable, os.environ[INSTEAD_OF], *sys.argv[1:]])


def ask(address: str) -> bool:
    """Whether the server started a worker with our arguments, environment, folder and output."""
    request = json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}).encode()  # noqa: PTH109 (pathlib is slow to import)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + address)
        # The server may still be importing. Ray ends a process that has not become a worker in 60 s and starts another.
        if connection.recv(1) != GREETING:
            return False
        socket.send_fds(connection, [request[:1]], [0, 1, 2])
        connection.sendall(request[1:])
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(1) == STARTED


if __name__ == "__main__":
    main()

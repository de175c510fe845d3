"""Runs of other machines in the list, in a real terminal: through a real sshd where one is installed."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from terminal import Terminal
from waiting import wait_until

from tui.entry import main

LOG = Path(__file__).parents[1] / "data" / "logs" / "grpo.log.gz"
PPO_TUI = [sys.executable, "-c", f"from {main.__module__} import main; main()"]

# In place of ssh where there is no sshd: runs the command here, as that would there with the user's shell; one machine
# does not answer.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
[ "$2" = away ] && { echo "ssh: connect to host away port 22: Connection refused" >&2; exit 255; }
exec sh -c "$3"
"""
THEIRS = f"""#!/bin/sh
cd {Path.cwd()}
PPO_TUI_HOME="HERE/elsewhere" exec {sys.executable} -c 'from {main.__module__} import main; main()' "$@"
"""
SSHD = ("ListenAddress=127.0.0.1", "PidFile=none", "StrictModes=no", "UsePAM=no")
CLIENT = """
Host away
  Port 1
Host *
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking no
  UserKnownHostsFile {folder}/known
  LogLevel ERROR
"""


@contextmanager
def sshd(folder, programs):
    """A server of our own, which takes one key; `ssh` in the folder of programs reaches it as any host.

    Where it is not installed, or lets nobody in, that folder is left as it is.
    """
    server, ssh = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin"), shutil.which("ssh")
    if server is None or ssh is None:
        yield
        return
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    folder.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    user = subprocess.check_output(["id", "-un"], text=True).strip()
    (folder / "client").write_text(CLIENT.format(port=port, folder=folder, user=user))
    keys, log = (f"HostKey={folder}/key", f"AuthorizedKeysFile={folder}/key.pub"), folder / "log"
    options = [part for each in (*SSHD, f"Port={port}", *keys) for part in ("-o", each)]
    process = subprocess.Popen([server, "-D", "-f", "/dev/null", "-E", log, *options])
    try:
        wait_until(lambda: process.poll() is not None or (log.exists() and "listening" in log.read_text()))
        if subprocess.run([ssh, "-F", folder / "client", "box", "true"], capture_output=True).returncode == 0:
            (programs / "ssh").write_text(f'#!/bin/sh\nexec {ssh} -F {folder}/client "$@"\n')
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def terminal(tmp_path):
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir(exist_ok=True)
    theirs = programs / "their-ppo-tui"
    for name, text in (("ssh", SSH), (theirs.name, THEIRS.replace("HERE", str(tmp_path)))):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    hosts = f"hosts:\n  bare: {tmp_path}/nothing\n  box: {theirs}\n  away:\nclusters: ['127.0.0.1:1']\n"
    (home / "config.yaml").write_text(hosts)
    env = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PPO_TUI_HOME": str(home)}
    env |= {"XDG_RUNTIME_DIR": str(tmp_path)}  # too long for a socket
    subprocess.run([theirs, "import", LOG], env=env, check=True, capture_output=True)
    with sshd(tmp_path / "sshd", programs):
        opened = Terminal(PPO_TUI, env, rows=40)
        yield opened
        opened.close()


@pytest.mark.slow
def test_a_run_of_another_machine_is_opened_there_and_the_way_back_is_here(terminal):
    parts = ("Other machines", "box  1 run", "Connection refused", "bare  away", "Start a new run")
    parts += ("127.0.0.1:1  away: the Ray dashboard",)
    shown = terminal.wait_for(lambda text: all(part in text for part in parts))
    (listed,) = (line for line in shown.splitlines() if "grpo · " in line)
    assert "stopped" in listed and shown.index("Other machines") < shown.index(listed) < shown.index("Start a new")
    for keys, shows in (
        ("g", "enter opens ppo-tui on bare through ssh"),
        ("\r", "is not on the PATH of bare"),
        ("/grpo\r", "/grpo"),
        ("gj", "opens this run on box through ssh"),
        ("\r", "q quit"),
        ("q", "opens this run on box through ssh"),
    ):
        terminal.send(keys)
        terminal.wait_for(lambda text, shows=shows: shows in text)

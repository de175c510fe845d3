"""The fork server of a run on the CPU: what it forks, what it leaves to Ray, and that it ends with its driver."""

import json
import sys
from pathlib import Path

import psutil
import pytest
from verl_process import WITH_VERL, Parent
from waiting import wait_until

from launcher.inside.ppo_tui_inside import fork_server

pytestmark = WITH_VERL

# What Ray starts; and what it says, with the word of our stand-in for Ray's own script where the server declines.
WORKER = """
import json, os, sys
from ray import ObjectRef
print(json.dumps({"id": ObjectRef.from_random().hex(), "argv": sys.argv[1:],
                  "shared": "verl.trainer.ppo.v1" in sys.modules, "mark": os.environ["MARK"], "folder": os.getcwd(),
                  "leads": os.getpgrp() == os.getpid(), "server": os.getppid()}))
"""
DRIVER = """
import json, os, signal, subprocess, sys, time
from pathlib import Path

folder = Path(sys.argv[1])
(folder / "worker.py").write_text({worker!r})
(folder / "rays.py").write_text("print('as Ray starts it')")
sys.orig_argv[:] = ["python", "-m", "verl.trainer.main_ppo", "+ray_kwargs.ray_init.address=local"]
import verl
from ppo_tui_inside import fork_server, setup_worker
from ray._private import ray_constants

def ask(context="{{}}", **env):
    env = {{**os.environ, "RAY_JOB_ID": "01000000", setup_worker.INSTEAD_OF: str(folder / "rays.py"), **env}}
    words = ["--language=PYTHON", "--serialized-runtime-env-context=" + context, str(folder / "worker.py"), "--id=1"]
    argv = [sys.executable, ray_constants.SETUP_WORKER_FILENAME, *words]
    done = subprocess.run(argv, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip()

server = fork_server._server
workers = [json.loads(ask('{{"env_vars": {{"MARK": "3"}}}}')) for _ in range(2)]
print(json.dumps({{"server": server.pid, "ids": [worker.pop("id") for worker in workers], "worker": workers[0]}}))
print(ask(MARK="0", OMP_NUM_THREADS="4"))
print(ask(MARK="0", RAY_JOB_ID="02000000"))
print(ask('{{"py_executable": "podman"}}', MARK="0"))
server.kill()
server.wait()
print(ask(MARK="0"))
"""


def test_a_worker_is_a_fork_where_it_would_import_the_same(verl: Parent, tmp_path: Path) -> None:
    done = verl.python(DRIVER.format(worker=WORKER), str(tmp_path), **CPU)
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    found = json.loads(first)
    assert found["worker"] == {
        "argv": ["--id=1"],
        "shared": True,
        "mark": "3",
        "folder": str(tmp_path),
        "leads": True,
        "server": found["server"],
    }
    assert found["ids"][0] != found["ids"][1], "Ray's generator was used before the fork: tasks would share ids"
    assert others == ["as Ray starts it"] * 4, done.stderr


START = """
import sys
sys.orig_argv[:] = ["python", "-m", "verl.trainer.main_ppo", "+ray_kwargs.ray_init.address=local"]
from ppo_tui_inside import fork_server
fork_server.install()
print(fork_server._server.pid)
"""
CPU = {"VERL_PLATFORM": "cpu", "OMP_NUM_THREADS": "1"}
OWN = "+ray_kwargs.ray_init.address=local"


def test_the_server_ends_with_its_driver(verl: Parent) -> None:
    pid = int(verl.python(START, **CPU).stdout.split()[-1])
    wait_until(lambda: not psutil.pid_exists(pid))


@pytest.mark.parametrize(("switch", "threads", "argument"), [("0", "1", OWN), ("", "", OWN), ("", "1", "a=b")])
def test_without_a_server_workers_start_as_ray_starts_them(
    switch: str, threads: str, argument: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Switched off, with threads that Ray chooses per worker, and in a driver that joins a cluster."""
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "verl.trainer.main_ppo", argument])
    monkeypatch.setenv("PPO_TUI_FORK_WORKERS", switch)
    monkeypatch.setenv("OMP_NUM_THREADS", threads) if threads else monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    fork_server.install()
    assert fork_server._server is None


def test_it_sees_whether_forks_would_share_ids_of_ray(verl: Parent) -> None:
    draw = "from ppo_tui_inside.fork_server import _forks_share_ids as share; import ray; print(share()); "
    done = verl.python(draw + "ray.ObjectRef.from_random(); print(share())")
    assert done.stdout.split() == ["False", "True"], done.stderr

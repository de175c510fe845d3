"""A Ray cluster that was there before the runs: two join it, one is submitted as a job and followed from elsewhere."""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from conduct import KIT, RESULTS, Experiment, conduct, left, mark
from host import PPO_TUI, Lane, ppo_tui, told

PYTHON = os.environ.get("PPO_TUI_PYTHON", sys.executable)
PORT, DASHBOARD, AGENT = 6399, 8299, 52399
ADDRESS, SUBMIT = f"127.0.0.1:{PORT}", f"127.0.0.1:{DASHBOARD}"
JOINS = (f"cluster.address={ADDRESS}",)
SUBMITS = (f"cluster.address={SUBMIT}", "cluster.submit=true", f"python={PYTHON}")


def on_a_cluster(joined: Sequence[Experiment], submitted: Experiment, gpus: tuple[int, ...], cpus: int) -> None:
    """Runs them and writes cluster.json: how the job looks from elsewhere, and that the head lives in the end."""
    token = secrets.token_hex(16)
    lane = Lane(gpus, (("RAY_AUTH_TOKEN", token), ("RAY_AUTH_MODE", "token"), ("RAY_USAGE_STATS_ENABLED", "0")))
    result: dict[str, Any] = {"name": "cluster"}
    try:
        with _head(lane, cpus):
            result["answers_before"] = _answers(lane)
            with ThreadPoolExecutor(len(joined)) as pool:
                list(pool.map(lambda experiment: conduct(experiment, lane), joined))
            result["answers_between"] = _answers(lane)
            result |= {"job": _submitted(submitted, lane), "answers_after": _answers(lane)}
    except Exception as error:
        result["broken"] = repr(error)
    (RESULTS / "cluster.json").write_text(json.dumps(result, indent=1))
    mark(f"cluster: {result}")


@contextmanager
def _head(lane: Lane, cpus: int) -> Iterator[None]:
    home = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # its sockets must have short names
    words = {
        "port": PORT,
        "dashboard-port": DASHBOARD,
        "dashboard-agent-listen-port": AGENT,
        "dashboard-host": "127.0.0.1",
        "num-gpus": max(1, len(lane.gpus)),  # of the CPU toy Ray wants one that it can count
        "num-cpus": cpus,
        "temp-dir": home,
    }
    command = [PYTHON, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    command += [f"--{name}={value}" for name, value in words.items()]
    with (RESULTS / "cluster.log").open("wb") as log:
        head = subprocess.Popen(command, env=lane.env(), stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 150
        while not _answers(lane) and head.poll() is None and time.monotonic() < deadline:
            time.sleep(1)
        if head.poll() is not None:
            raise RuntimeError(f"the head ended with {head.poll()}; its log is cluster.log")
        yield
    finally:
        head.terminate()
        with suppress(subprocess.TimeoutExpired):
            head.wait(15)
        for process in Path("/proc").glob("[0-9]*"):  # its workers end with it
            with suppress(OSError):
                if home.encode() in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)


def _answers(lane: Lane) -> bool:
    """Whether the head lists its jobs to somebody with the token."""
    return ppo_tui(lane, "attach", SUBMIT, patience=60).returncode == 0


def _submitted(experiment: Experiment, lane: Lane) -> dict[str, Any]:
    """Submits a run as a job and follows it from a second home while it goes on."""
    there = replace(lane, more=(*lane.more, ("PPO_TUI_HOME", str(KIT / "second-home"))))
    follower: list[subprocess.Popen[bytes]] = []

    def follow(_: Lane, run: str, found: dict[str, Any]) -> None:
        with (RESULTS / "second-home.log").open("wb") as log:
            words = [PPO_TUI, "attach", SUBMIT, run, "--plain"]
            follower.append(subprocess.Popen(words, env=there.env(), stdout=log, stderr=log))
        time.sleep(min(40.0, max(0.0, left())))

    conduct(replace(experiment, first=follow), lane)
    seen = told(there, "runs")
    for process in follower:
        process.terminate()
        process.wait(30)
    stranger = replace(lane, more=(*lane.more, ("RAY_AUTH_TOKEN", "0" * 32)))
    refused = ppo_tui(stranger, "attach", SUBMIT)
    return {"seen_from_second_home": seen, "with_a_wrong_token": [refused.returncode, refused.stderr[-300:]]}

"""Queries a Ray cluster's resources: a short driver joins it from here, or is a job if the run is one."""

import contextlib
import os
import re
import secrets
import shlex
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from launcher import inside
from launcher.check.subject import Subject
from launcher.core.errors import UserError
from launcher.core.files import make_folder
from launcher.inside.ppo_tui_inside.probes import cluster as cluster_probe
from launcher.machine.ray_jobs import Cluster, Trouble, Unreachable, authentication
from launcher.record.json import Record
from launcher.verl.config import RAY

PACKAGES = ("verl", "torch", "vllm", "sglang", "transformers", "TransferQueue")
PATIENCE = 60  # seconds for the probe tasks of all nodes
_LIMIT = 120.0  # seconds for the whole driver; Ray alone waits 40 for a cluster that does not answer
_KNOCK = 5.0  # seconds for a connection
_ENV = f"{RAY}.runtime_env.env_vars."
_HOST = re.compile(r"(.+):(\d{1,5})")


@dataclass(frozen=True)
class Node(Record):
    """A node as `ppo_tui_inside.probes.cluster` saw it; `sizes` has the existing paths. `python` is None if the probe
    task did not run in time; `error` is the reason.
    """

    ip: str = ""
    total: dict[str, float] = field(default_factory=dict)
    free: dict[str, float] = field(default_factory=dict)
    python: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    sizes: dict[str, float] = field(default_factory=dict)
    error: str | None = None


class NotJoined(UserError):
    """A cluster that no driver can join; `trouble`: the reason, if known."""

    def __init__(self, where: str, why: str, trouble: Trouble | None = None) -> None:
        super().__init__(f"the Ray cluster at {where} cannot be joined: {why}")
        self.trouble = trouble


@dataclass(frozen=True)
class View:
    """The current state of a cluster. `rest` is its dashboard, None without one."""

    where: str
    ray: str
    python: str
    nodes: tuple[Node, ...]
    rest: Cluster | None

    def sum(self, name: str, *, free: bool) -> float:
        """The sum of a resource over all nodes."""
        return sum((node.free if free else node.total).get(name, 0.0) for node in self.nodes)


def ask(subject: Subject, paths: Sequence[str]) -> View:
    """The cluster of a run, and the `paths` that its nodes have. Raises UserError with the reason."""
    own = subject.loaded.preset.cluster
    request = {
        "address": "auto" if own.submit else own.address,
        "runtime_env": _runtime_env(subject),
        "packages": PACKAGES,
        "modules": [inside.PLUGIN],
        "paths": list(paths),
        "patience": PATIENCE,
    }
    argv = [subject.python, "-c", Path(cluster_probe.__file__).read_text("utf-8"), orjson.dumps(request).decode()]
    where = str(own.address or "auto")
    if own.submit:
        rest: Cluster | None = Cluster(own.address)
        where = Cluster(own.address).url
        found = _answer(where, _as_job(Cluster(own.address), argv, subject.loaded.preset.env))
    else:
        _require_reachable(where)
        found = _answer(where, _from_here(where, argv, {**subject.env, **authentication()}))
        rest = Cluster(found["dashboard"]) if found.get("dashboard") else None
    nodes = tuple(Node.from_json(each) for each in found["nodes"])
    return View(where, str(found["ray"]), str(found["python"]), nodes, rest)


def _runtime_env(subject: Subject) -> Mapping[str, object]:
    """The runtime environment of veRL's workers."""
    python = subject.get(f"{RAY}.runtime_env.py_executable")
    env = {name.removeprefix(_ENV): str(each.value) for name, each in subject.settings.items() if name.startswith(_ENV)}
    return {"env_vars": env} | ({"py_executable": str(python)} if python else {})


def _require_reachable(address: str) -> None:
    """Checks that the address answers; Ray would wait for 40 s."""
    if found := _HOST.fullmatch(address):
        try:
            socket.create_connection((found[1].strip("[]"), int(found[2])), _KNOCK).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(f"no Ray cluster answers at {address} ({reason})") from None


def _from_here(where: str, argv: Sequence[str], env: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            argv, env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=_LIMIT, cwd="/", text=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer in {_LIMIT:.0f} s"
        raise UserError(f"the Ray cluster at {where} cannot be joined ({reason})") from None
    return done.stdout + done.stderr


def _as_job(cluster: Cluster, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Runs a command as a job and removes the job; returns its output."""
    cluster.version()  # without an answer, there is nothing to wait for
    id = f"ppo-tui-check-{secrets.token_hex(4)}"
    deadline = time.monotonic() + _LIMIT
    try:
        while True:
            try:
                cluster.submit(id, f"exec {shlex.join(argv)}", env, {})
                break
            except Unreachable:  # no agent is there yet, soon after a start
                if time.monotonic() > deadline:
                    raise
                time.sleep(1.0)
        while (job := cluster.job(id)) is not None and not job.ended:
            if time.monotonic() > deadline:
                raise UserError(f"a job on {cluster.url} returned no result in {_LIMIT:.0f} s ({job.status.lower()})")
            time.sleep(0.3)
        said = b"".join(cluster.log(job, follow=False)).decode(errors="replace") if job is not None else ""
        return said or (job.message if job is not None else "")
    finally:
        with contextlib.suppress(UserError):
            cluster.stop(id)
            cluster.delete(id)


def _answer(where: str, text: str) -> Mapping[str, Any]:
    for line in text.splitlines():
        if line.startswith(cluster_probe.MARK):
            found: dict[str, object] = orjson.loads(line.removeprefix(cluster_probe.MARK))
            if "error" not in found:
                return found
            text = f"{text}\n{found['error']}"
    raise _refusal(where, text)


def _refusal(where: str, text: str) -> NotJoined:
    """Why a cluster cannot be joined, from Ray's output: the decisive line, or the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no output"]
    mismatch = next((line for line in lines if Trouble.VERSION.is_in(line)), None)
    if Trouble.TOKEN.is_in(text):
        return NotJoined(where, "the token is missing or does not match", Trouble.TOKEN)
    if mismatch is not None:
        return NotJoined(where, mismatch[:300], Trouble.VERSION)
    return NotJoined(where, lines[-1][:300])


@contextlib.contextmanager
def shown(folder: Path) -> Any:
    """Makes a file in `folder` during the block; a node with a file at this path shares the folder."""
    make_folder(folder)
    mark = folder / f".seen-{os.getpid()}-{secrets.token_hex(4)}"
    mark.touch()
    try:
        yield str(mark)
    finally:
        mark.unlink(missing_ok=True)

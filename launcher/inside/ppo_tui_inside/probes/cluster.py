"""Inspects a Ray cluster from within: run by veRL's interpreter on one of its nodes, or as a job.

Needs the standard library and Ray. Takes a JSON object as its argument (`address`, `runtime_env`, `packages`,
`modules`, `paths`, `patience` in seconds) and prints one line, `MARK` and a JSON object: `error`, or `ray`, `python`,
`dashboard` and `nodes`. A node has `ip`, `total` and `free` resources and, if its probe task ran, the result of `look`.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

MARK = "PPO-TUI-CLUSTER "


def look(packages: list[str], modules: list[str], paths: list[str]) -> Mapping[str, object]:
    """Inspects a worker's node: versions of packages, missing modules, bytes of files (-1 for folders)."""
    versions, sizes = {}, {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    for path in paths:
        try:
            sizes[path] = -1 if os.path.isdir(path) else os.stat(path).st_size  # noqa: PTH112, PTH116
        except OSError:
            continue
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return {"python": sys.executable, "packages": versions, "missing": missing, "sizes": sizes}


def main(request: dict[str, Any]) -> Mapping[str, object]:
    ray: Any = importlib.import_module("ray")
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    try:
        _show_token(request["address"])
        joined = ray.init(
            address=request["address"],
            runtime_env=request["runtime_env"],
            logging_level="ERROR",
            log_to_driver=False,
            configure_logging=False,
        )
    except BaseException as error:  # Ray also exits
        return {"error": f"{type(error).__name__}: {error}"}
    free = ray._private.state.available_resources_per_node()
    nodes = {}
    for node in ray.nodes():
        if node["Alive"]:
            id, ip = node["NodeID"], node["NodeManagerAddress"]
            nodes[id] = {"ip": ip, "total": _plain(node["Resources"]), "free": _plain(free.get(id, {}))}
    # no CPU is reserved: a cluster whose CPUs are all taken answers, too
    probe = ray.remote(num_cpus=0, max_retries=0)(look)
    tasks = {}
    for id in nodes:
        there = probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(id, soft=False))
        tasks[there.remote(request["packages"], request["modules"], request["paths"])] = id
    done, _ = ray.wait(list(tasks), num_returns=len(tasks), timeout=request["patience"])
    for task in done:
        try:
            nodes[tasks[task]].update(ray.get(task))
        except Exception as error:
            nodes[tasks[task]]["error"] = str(error)
    return {
        "ray": ray.__version__,
        "python": sys.version.split()[0],
        "dashboard": joined.dashboard_url,
        "nodes": list(nodes.values()),
    }


def _show_token(address: str) -> None:
    """Raises the cluster's error for a wrong token; `ray.init` would retry for 40 s (2.60) and give no reason."""
    try:
        raylet: Any = importlib.import_module("ray._raylet")
        services: Any = importlib.import_module("ray._private.services")
        raylet.GcsClient(address=services.canonicalize_bootstrap_address(address))
    except Exception as error:
        if type(error).__name__ == "AuthenticationError":
            raise
        # `ray.init` tells the rest, and other versions have other parts


def _plain(resources: dict[str, float]) -> dict[str, float]:
    """CPUs, GPUs and custom resources, without each node's own resource."""
    return {name: value for name, value in resources.items() if not name.startswith("node:")}


if __name__ == "__main__":
    print(MARK + json.dumps(main(json.loads(sys.argv[1]))), flush=True)

"""Resources that a Ray waits for, from its head; needs no dashboard, which veRL's own Ray lacks.

Run by veRL's interpreter with the head's address (`ip:port`) as its argument. Prints one line, `MARK` and a JSON
object: waiting or dead `actors`, waiting `groups`, `nodes`, `total` and `free` resources.
"""

import importlib
import json
import sys
from collections.abc import Mapping
from typing import Any

MARK = "PPO-TUI-RAY "
_MOST = 50
WAITING = ("DEPENDENCIES_UNREADY", "PENDING_CREATION", "RESTARTING", "DEAD")


def main(address: str) -> Mapping[str, object]:
    raylet: Any = importlib.import_module("ray._raylet")
    state: Any = importlib.import_module("ray._private.state").GlobalState()
    state._initialize_global_state(
        raylet.GcsClientOptions.create(address, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=True)
    )
    actors = [actor for actor in state.actor_table(None).values() if actor.get("State") in WAITING]
    needs = _needs(state)
    groups = [group for group in state.placement_group_table().values() if group.get("state") == "PENDING"]
    nodes = [node for node in state.node_table() if node.get("Alive", node.get("alive"))]
    return {
        "actors": [
            {
                "name": actor.get("ActorClassName") or actor.get("Name"),
                "state": actor.get("State"),
                "pid": actor.get("Pid"),
                "needs": needs.get(actor.get("ActorID"), {}),
                "cause": _cause(actor.get("DeathCause")),
            }
            for actor in actors[:_MOST]
        ],
        "groups": [
            {"bundles": list((group.get("bundles") or {}).values()), "state": (group.get("stats") or {})}
            for group in groups[:_MOST]
        ],
        "nodes": len(nodes),
        "total": _sum([node.get("Resources", {}) for node in nodes]),
        "free": _sum(state.available_resources_per_node().values()),
    }


def _needs(state: Any) -> dict[str, dict[str, float]]:
    """The resources requested by each actor, which `actor_table` omits."""
    protocol: Any = importlib.import_module("ray.core.generated.gcs_pb2")
    found = {}
    for content in state._connect_and_get_accessor().get_actor_table(None, None):
        actor = protocol.ActorTableData.FromString(content)
        found[actor.actor_id.hex()] = dict(actor.required_resources)
    return found


def _cause(found: Any) -> str:
    return " ".join(str(found or "").split())[:600]


def _sum(parts: Any) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, amount in part.items():
            if ":" not in name and "_group_" not in name:
                total[name] = total.get(name, 0.0) + amount
    return total


if __name__ == "__main__":
    print(MARK + json.dumps(main(sys.argv[1])), flush=True)

"""What fits on a cluster that is described, by `--assume` or by its own answers; a real one: test_ray_jobs.py."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quoted import quoted

from launcher.check import cluster
from launcher.check.cluster_view import Node, View, shown
from launcher.check.config.resources import gpus
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.core.errors import UserError
from launcher.machine.capacity import assumed
from launcher.preset.files import load
from launcher.record.machine import GpuSample, HostSample, MachineSample, NodeSample, ProcessesSample
from launcher.verl.env import probe
from presets import __path__ as presets


def of(*settings: str, assume: str | None = None, preset: str = "gsm8k-0.5b-24gb") -> Subject:
    return subject(load(preset, settings), assume=assume)


@pytest.mark.parametrize("preset", sorted(path.stem for path in Path(presets[0]).glob("*-8gpu.yaml")))
def test_presets_for_eight_gpus_fit_a_machine_that_has_them(preset: str) -> None:
    assert not list(gpus(of(assume="1x8x80", preset=preset)))
    assert list(gpus(of(assume="2x4x80", preset=preset)))


def test_no_machines_are_no_cluster() -> None:
    with pytest.raises(UserError, match="4x8x80"):
        assumed("0x8x80")


def nodes(*sizes: tuple[float, float]) -> list[Node]:
    """Nodes with so many GPUs and CPUs free, of 8 and 64."""
    total = {"GPU": 8.0, "CPU": 64.0}
    return [Node(f"10.0.0.{at}", total, {"GPU": gpu, "CPU": cpu}, "python") for at, (gpu, cpu) in enumerate(sizes)]


def room(what: Subject, there: Sequence[Node], holders: Mapping[str, float] | None = None) -> list[Finding]:
    return list(cluster.room(what, there, holders or {}))


def test_room_is_where_a_node_has_it() -> None:
    eight = of("trainer.gpus=8")
    assert room(eight, nodes((8, 64))) == []
    (apart,) = room(eight, nodes((4, 64), (4, 64)))
    assert "each free on one node" in apart.message and apart.change == {"trainer.nodes": 2, "trainer.gpus": 4}
    (taken,) = room(eight, nodes((2, 64)), {"raysubmit_1": 5, "python train.py": 1})
    assert "2 of 8 GPUs are free (taken: 5 by raysubmit_1, 1 by python train.py)" in taken.message
    (small,) = room(of("trainer.gpus=8", "trainer.nodes=3"), nodes((8, 64), (8, 64)))
    assert small.message.startswith("the run requires 24 GPUs, but the cluster has 16")
    (cpus,) = room(eight, nodes((8, 8)))
    assert "24 CPUs" in cpus.message and cpus.change == {"trainer.nodes": 1, "trainer.gpus": 2}
    (few,) = room(eight, nodes((8, 24)))
    assert "the run requires 26 CPUs on the cluster, but 24 are free" in few.message


@given(
    sizes=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 64)), min_size=1, max_size=4),
    per=st.integers(1, 9),
    machines=st.integers(1, 5),
)
def test_the_suggested_layout_fits(sizes: list[tuple[int, int]], per: int, machines: int) -> None:
    what, there = of(), nodes(*sizes)
    found = room(what.with_fields({"trainer.gpus": per, "trainer.nodes": machines}), there)
    for each in found:
        if each.change:
            left = room(what.with_fields(each.change), there)
            assert all("CPUs on the cluster" in other.message for other in left)


def test_workers_without_verl_or_with_another_one_and_without_files(tmp_path: Path) -> None:
    model, data = tmp_path / "model", tmp_path / "data.parquet"
    model.mkdir()
    data.write_bytes(b"x" * 10)
    what = of(f"model.path={model}", f"data.train={data}", f"data.val={data}", "cluster.address=auto")
    here = dict(probe(what.python).packages) | {"verl": "0.9.1"}
    sizes = {str(model): -1.0, str(data): 10.0}
    well = Node("10.0.0.1", python="/usr/bin/python", packages=here, sizes=sizes)
    bare = Node("10.0.0.2", python="/usr/bin/python", packages={}, sizes={str(data): 9.0})
    without = Node("10.0.0.3", python="/usr/bin/python", packages=here, missing=("ppo_tui_inside.plugin",), sizes=sizes)
    silent = Node("10.0.0.4")

    def found(*there: Node) -> list[tuple[str, str, list[str]]]:
        view = View("head:6379", "2.60.0", "3.11.9", there, None)
        with shown(tmp_path) as mark:
            all_ = [*cluster.software(what, view), *cluster.files(what, there, mark)]
        return [(each.id, each.level, quoted(each.message.replace(str(tmp_path), "folder"))) for each in all_]

    no_verl = ("CLUSTER-5", "error", ["10.0.0.2"])
    assert [each for each in found(well, bare, without, silent) if each != no_verl] == [
        ("CLUSTER-5", "error", ["10.0.0.4", "60"]),
        ("CLUSTER-5", "error", ["10.0.0.3"]),
        ("CLUSTER-6", "error", ["9", "10"]),
        ("CLUSTER-6", "error", ["10.0.0.2"]),
        ("CLUSTER-6", "warning", ["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
    ]
    assert found(well) == [] and not list(tmp_path.glob(".seen-*"))


def test_nodes_as_the_dashboard_tells_them() -> None:
    """Keys as Ray 2.60 answers on two nodes, the figures of a GPU made up: none was at hand."""
    gpu = {"index": 0, "name": "NVIDIA H100", "utilizationGpu": 97, "memoryUsed": 40960, "memoryTotal": 81559}
    gpu |= {"powerMw": 612_400, "temperatureC": 61}
    alive = {"state": "ALIVE", "nodeId": "abcdef"}
    node = {"hostname": "box", "mem": [100, 40, 60.0, 60], "gpus": [gpu], "raylet": alive}
    tight = {**node, "mem": [100, 10, 90.0, 90], "gpus": [], "raylet": {**alive, "nodeId": "123456"}}
    dead = {**node, "raylet": {"state": "DEAD"}}
    sample = MachineSample.of_cluster(7.0, [node, tight, dead, {"hostname": "new"}, None, {**node, "mem": "?"}])
    assert [each.name for each in sample.nodes] == ["box", "box-1234"] and sample.host.used == 90
    (seen,) = sample.gpus
    assert (seen.index, seen.util, seen.power, seen.temp) == ("box/0", 97, 612, 61)
    assert seen.used == 40960 << 20 and sample.missing is None
    assert MachineSample.from_json(sample.to_json()) == sample

    own = MachineSample(8.0, HostSample(61, 100), ProcessesSample(20), (GpuSample(0, used=7, run_used=3),))
    joined = own.among(sample, "box")
    assert joined.nodes == (NodeSample("box", 61, 100, 20), sample.nodes[1]) and joined.host.used == 90
    assert [(gpu.index, gpu.run_used) for gpu in joined.gpus] == [("box/0", 3)] and joined.t == 8.0
    assert [gpu.index for gpu in own.among(sample, "desk").gpus] == ["desk/0", "box/0"]

"""What the sampler makes of NVML, on a fake one: the hardware is not here, its recorded figures are."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from fake_nvml import FakeGpu, FakeNvml

from launcher.machine import capacity, gpu_holders
from launcher.machine.sampler import Sampler
from launcher.record.machine import GpuSample, Holder

GIB = 1 << 30
RECORDED = Path(__file__).parent.parent / "data" / "memory" / "nvml-4gpu.jsonl.gz"
NOBODY = 2**22 + 7  # above the largest pid of Linux


@pytest.fixture
def other() -> Iterator[int]:
    """A process of a session of its own, with a secret in its command line."""
    words = [sys.executable, "-c", "input()", "--token=hunter2"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process.pid
        process.kill()


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pids of NVML are pids of ours, wherever the tests run."""
    here = str(Path("/proc/self/ns/pid").readlink()) if Path("/proc/self/ns/pid").exists() else ""
    monkeypatch.setattr(gpu_holders, "_FIRST_NAMESPACE", here)


def sampled(
    patch: pytest.MonkeyPatch, *gpus: FakeGpu, visible: list[str] | None = None, **of: Any
) -> Sequence[GpuSample]:
    FakeNvml(list(gpus)).install(patch)
    return Sampler(visible).sample(**of).gpus


def holders_of(gpu: GpuSample) -> dict[int, Holder]:
    return {holder.pid: holder for holder in gpu.holders or ()}


def test_the_run_is_told_from_others_by_its_session_before_its_pids_are_known(
    monkeypatch: pytest.MonkeyPatch, other: int
) -> None:
    gpu = FakeGpu(used=12 * GIB, processes=[(os.getpid(), 8 * GIB)], graphics=[(other, 3 * GIB)])
    (found,) = sampled(monkeypatch, gpu, session=os.getsid(0))
    assert found.run_used == 8 * GIB
    holders = holders_of(found)
    assert holders[os.getpid()].whose == "run" and holders[other].whose == "others"
    assert holders[other].user == psutil.Process().username() and holders[other].used == 3 * GIB


def test_a_worker_that_outlives_the_driver_is_still_of_the_run(monkeypatch: pytest.MonkeyPatch, other: int) -> None:
    monkeypatch.setattr("launcher.machine.sampler._DETAILS", 0.0)
    FakeNvml([FakeGpu(used=9 * GIB, processes=[(other, 8 * GIB)])]).install(monkeypatch)
    sampler = Sampler()
    whose = [holders_of(sampler.sample(pids).gpus[0])[other].whose for pids in ((), (other,), ())]
    assert whose == ["others", "run", "run"]


def test_of_a_process_only_its_short_name_is_written_down(monkeypatch: pytest.MonkeyPatch, other: int) -> None:
    (found,) = sampled(monkeypatch, FakeGpu(used=GIB, processes=[(other, GIB)]))
    assert "hunter2" not in repr(found)
    name = holders_of(found)[other].name
    assert name is not None and 0 < len(name) <= 15


def test_pids_of_another_namespace_are_unknown_and_not_others(monkeypatch: pytest.MonkeyPatch, other: int) -> None:
    monkeypatch.setattr(gpu_holders, "_FIRST_NAMESPACE", "pid:[1]")  # a container
    for pid in (NOBODY, other):  # `other` exists here, but has no GPU open: it is not the one NVML means
        (found,) = sampled(monkeypatch, FakeGpu(used=9 * GIB, processes=[(pid, 8 * GIB)]))
        assert found.holders == (Holder(pid, "unknown", None, None, 8 * GIB),)
        assert found.run_used is None


@pytest.mark.parametrize(
    ("gpu", "run_used"),
    [
        (FakeGpu(used=9 * GIB, processes=[]), None),  # a container hides the list
        (FakeGpu(used=GIB // 2, processes=[]), 0),  # nobody is there: that is the driver's own
        (FakeGpu(used=9 * GIB, processes=None), None),  # the driver does not tell
        (FakeGpu(used=9 * GIB, processes=[(os.getpid(), None)]), None),  # it tells pids, but no bytes
        (FakeGpu(used=None, util=None, power=None, temp=None, limit=None, slow_at=None, reasons=None), 0),
    ],
)
def test_what_cannot_be_known_is_none(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu, run_used: int | None) -> None:
    (found,) = sampled(monkeypatch, gpu, pids=[os.getpid()])
    assert found.run_used == run_used
    assert (found.used, found.util, found.temp) == (gpu.used, gpu.util, gpu.temp)


def test_slow_clocks_are_told_with_their_reason_but_idling_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    heat, idle = sampled(monkeypatch, FakeGpu(reasons=0x04 | 0x20 | 0x40), FakeGpu(reasons=0x01))
    assert heat.slowed == ("heat", "power limit") and idle.slowed == ()
    assert (heat.power, heat.power_limit, heat.slow_at) == (120, 700, 87)


def test_limits_and_holders_come_every_ten_seconds_and_holders_when_they_change(
    monkeypatch: pytest.MonkeyPatch, other: int
) -> None:
    now = [1000.0]
    monkeypatch.setattr("launcher.core.clock.now", lambda: now[0])
    gpu = FakeGpu(used=5 * GIB)
    FakeNvml([gpu]).install(monkeypatch)
    sampler = Sampler()
    told = []
    for second in range(12):
        now[0] = 1000.0 + second
        held = {4: 40 * GIB, 6: 40 * GIB + 1, 7: GIB}.get(second)
        gpu.processes = [(other, held)] if held else gpu.processes
        (found,) = sampler.sample().gpus
        written = found.to_json()
        told.append((second, "power_limit" in written, "holders" in written))
    slept = (7, False, True)  # an engine
    assert [entry for entry in told if any(entry[1:])] == [(0, True, True), (4, False, True), slept, (10, True, True)]


def test_mig_slices_are_devices_of_their_own_with_the_heat_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = [
        FakeGpu(uuid=f"MIG-{n}", name="NVIDIA H100 MIG 3g.40gb", used=n * GIB, total=40 * GIB, util=None, power=None)
        for n in (1, 2)
    ]
    whole = FakeGpu(uuid="GPU-w", slices=halves, temp=61)
    found = sampled(monkeypatch, FakeGpu(), whole)
    assert [gpu.index for gpu in found] == [0, "1:0", "1:1"]
    assert [gpu.total for gpu in found[1:]] == [40 * GIB] * 2
    assert (found[1].temp, found[1].power, found[1].util) == (61, 120, None)
    (one,) = sampled(monkeypatch, FakeGpu(), whole, visible=["MIG-2"])
    assert one.index == "1:1" and one.used == 2 * GIB


@pytest.mark.parametrize(
    ("visible", "indices"),
    [(None, [0, 1]), (["1"], [1]), (["GPU-bbbb"], [1]), (["GPU-"], [0, 1]), (["0", "GPU-bbbb-2"], [0, 1])],
)
def test_the_devices_that_the_run_may_use(
    monkeypatch: pytest.MonkeyPatch, visible: list[str] | None, indices: list[int]
) -> None:
    found = sampled(monkeypatch, FakeGpu(uuid="GPU-aaaa-1"), FakeGpu(uuid="GPU-bbbb-2"), visible=visible)
    assert [gpu.index for gpu in found] == indices


def test_a_gpu_that_fell_off_the_bus_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [gpu.index for gpu in sampled(monkeypatch, FakeGpu(lost=True), FakeGpu())] == [1]


@pytest.mark.parametrize(
    ("nvml", "visible", "why"),
    [
        (FakeNvml([], broken="Driver Not Loaded"), None, "does not start here (Driver Not Loaded)"),
        (FakeNvml([]), None, "NVML finds no GPU"),
        (FakeNvml([FakeGpu()]), ["-1"], "CUDA_VISIBLE_DEVICES hides all 1 GPU"),
    ],
)
def test_why_there_are_no_figures_is_in_the_samples(
    monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml, visible: list[str] | None, why: str
) -> None:
    nvml.install(monkeypatch)
    sampler = Sampler(visible)
    first, second = sampler.sample(), sampler.sample()
    sampler.close()
    assert first.missing is not None and why in first.missing
    assert first.gpus == () and sampler.smallest_gpu is None
    assert second.missing is None and not nvml.open


def test_the_preflight_names_who_is_on_a_gpu_already(monkeypatch: pytest.MonkeyPatch, other: int) -> None:
    FakeNvml([FakeGpu(used=9 * GIB, processes=[(NOBODY, GIB), (other, 8 * GIB)])]).install(monkeypatch)
    (gpu,) = capacity.here().gpus
    assert gpu.used == 9 * GIB and f"of {psutil.Process().username()} (pid {other})" in gpu.others[0]
    assert gpu.others[1] == f"pid {NOBODY}"


@pytest.mark.slow
def test_recorded_figures_of_a_real_run_come_out_as_they_went_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four H200 with an engine and a trainer each: what is used is theirs, and the driver's."""
    rows = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    gpus = [FakeGpu(uuid=f"GPU-{n}", total=rows[0]["total"]) for n in range(4)]
    FakeNvml(gpus).install(monkeypatch)
    sampler = Sampler()
    assert sampler.smallest_gpu == rows[0]["total"]
    ours = {pid for row in rows for pid, _ in row["procs"]}
    busy = 0
    for row in rows:
        gpu = gpus[row["gpu"]]
        gpu.used, gpu.util, gpu.temp, gpu.power = row["used"], row["util"], row["temp"], row["power"]
        gpu.reasons, gpu.processes = row["thr"], [(pid, size) for pid, size in row["procs"]]
        found = sampler.sample(ours).gpus[row["gpu"]]
        held = sum(size for _, size in row["procs"])
        assert (found.used, found.util, found.run_used) == (row["used"], row["util"], held)
        assert found.slowed == ()  # their only reason was idling
        assert abs(row["used"] - held) < 2 * GIB  # asked one after the other: either may be ahead
        busy += bool(held)
    assert busy > 400


@pytest.mark.parametrize(("reserved", "usable"), [(615 << 20, 142_741 << 20), (None, 143_356 << 20)])
def test_what_the_driver_keeps_is_not_usable(
    monkeypatch: pytest.MonkeyPatch, reserved: int | None, usable: int
) -> None:
    """An older driver does not tell it: then all of the GPU counts."""
    FakeNvml([FakeGpu(total=143_356 << 20, used=700 << 20, reserved=reserved)]).install(monkeypatch)
    (gpu,) = capacity.here().gpus
    assert (gpu.usable, gpu.total, gpu.used) == (usable, 143_356 << 20, 700 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_page_that_forks_share_counts_once() -> None:
    """The toy's workers are forks: their sum was twice what the host had in use."""
    held = 200 << 20
    code = f"import os, sys; data = b'x' * {held}; os.fork(); os.fork()\n"
    code += "os.write(1, b'%d\\n' % os.getpid()); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(4)]
        found = Sampler().sample(pids, None).run.rss
        process.kill()
    assert found is not None and held < found < 2 * held

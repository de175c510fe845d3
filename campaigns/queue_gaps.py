"""Measures how long a GPU stays free while checked runs wait for it: docs/evidence/queue.md.

`python campaigns/queue_gaps.py GPUS [ROUNDS] [SECONDS]` queues ROUNDS runs per GPU and as many that the preflight
refuses, in front. Queue, preflights, supervisors and run directories are the real ones. The GPUs are files that NVML's
stand-in reads, and the trainer is a process that holds one for SECONDS: its GPU is free after it exits.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

FAKES = """
import importlib.abc, importlib.util, os, sys
from pathlib import Path
from types import SimpleNamespace as Found

GPUS = Path(os.environ["FAKE_GPUS"])

class NVML:
    class NVMLError(Exception): pass
    nvmlMemory_v2, NVML_TEMPERATURE_GPU, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 2, 0, 1
    def nvmlInit(self): pass
    def nvmlShutdown(self): pass
    def nvmlDeviceGetCount(self): return len([*GPUS.iterdir()])
    def nvmlDeviceGetHandleByIndex(self, index): return index
    def nvmlDeviceGetUUID(self, gpu): return f"GPU-{gpu}"
    def nvmlDeviceGetName(self, gpu): return "simulated"
    def nvmlDeviceGetMigMode(self, gpu): raise self.NVMLError
    def holder(self, gpu):
        text = (GPUS / str(gpu)).read_text()
        return int(text) if text and Path("/proc", text).exists() else None
    def nvmlDeviceGetMemoryInfo(self, gpu, version=None):
        return Found(total=80 << 30, used=40 << 30 if self.holder(gpu) else 0, reserved=0)
    def nvmlDeviceGetComputeRunningProcesses(self, gpu):
        return [Found(pid=self.holder(gpu), usedGpuMemory=40 << 30)] if self.holder(gpu) else []
    def nvmlDeviceGetGraphicsRunningProcesses(self, gpu): return []
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        def missing(*_): raise self.NVMLError
        return missing

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "launcher.runs.act.start": return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        def changed(module):
            load(module)
            build = module.build_launch
            def trainer(*args, **kwargs):
                launch = build(*args, **kwargs)
                launch.argv[:] = [sys.executable, "-S", os.environ["FAKE_TRAINER"]]
                return launch
            module.build_launch = trainer
        spec.loader.exec_module = changed
        return spec

sys.modules["pynvml"] = NVML()
sys.meta_path.insert(0, Watch())
"""
TRAINER = """
import os, time
started, gpu = time.time(), os.environ["CUDA_VISIBLE_DEVICES"]
with open(os.path.join(os.environ["FAKE_GPUS"], gpu), "w") as file: file.write(str(os.getpid()))
time.sleep(float(os.environ["FAKE_SECONDS"]))
with open(os.environ["FAKE_LOG"], "a") as file: file.write(f"{gpu} {started} {time.time()}\\n")
"""


def main() -> None:
    """Queues the runs, waits for their end and prints the gaps."""
    given = [int(word) for word in sys.argv[1:]]
    measure(*given, *(1, 3, 40)[len(given) :])


def measure(count: int, rounds: int, seconds: int) -> None:
    """Measures one queue of `count` GPUs."""
    home = Path(tempfile.mkdtemp(prefix="queue-gaps-"))
    fakes, gpus, log = home / "fakes", home / "gpus", home / "log"
    if given := os.environ.get("PPO_TUI_HOME"):
        (home / "cache").symlink_to(Path(given, "cache"))  # where the toy task may be built already
    for folder in (fakes, gpus):
        folder.mkdir()
    (fakes / "sitecustomize.py").write_text(FAKES)
    (trainer := fakes / "trainer.py").write_text(TRAINER)
    for gpu in range(count):
        (gpus / str(gpu)).touch()
    os.environ |= {
        "PPO_TUI_HOME": str(home),
        "PYTHONPATH": str(fakes),
        "FAKE_GPUS": str(gpus),
        "FAKE_LOG": str(log),
        "FAKE_TRAINER": str(trainer),
        "FAKE_SECONDS": str(seconds),
    }
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    from launcher.data import toy
    from launcher.record import queued
    from launcher.runs.act.queue_runner import add
    from launcher.runs.supervise.spawn import wake_queue
    from launcher.verl import env as verl_env

    toy.ensure(python=verl_env.interpreter(None), progress=print)
    queued.pause(on=True)
    settings = ["trainer.device=cuda", "trainer.gpus=1", "rollout.engine=vllm"]
    for number in range(rounds * count):
        add("toy-cpu", settings, force=False)  # torch has no CUDA here: refused
        add("toy-cpu", settings, force=True, note=f"{number}")
    queued.pause(on=False)
    begun = time.time()
    wake_queue()
    ready = 0.0
    while len(lines := log.read_text().splitlines() if log.exists() else []) < rounds * count:
        left = queued.entries()
        if not ready and all(queued.checked(each.id).ended for each in left):
            ready = time.time()
        time.sleep(0.2)
        if time.time() - begun > 1800:
            sys.exit(f"still waiting: {left}")
    used: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        gpu, start, end = line.split()
        used.setdefault(gpu, []).append((float(start), float(end)))
    gaps = [
        (later[0] - earlier[1], earlier[1] > ready)
        for runs in used.values()
        for earlier, later in zip(sorted(runs), sorted(runs)[1:], strict=False)
    ]
    found = sorted(gap for gap, checked in gaps if checked)
    print(json.dumps({
        "gpus": count, "runs": rounds * count, "refused": rounds * count, "all_checked_s": round(ready - begun, 1),
        "first_start_s": round(min(start for runs in used.values() for start, _ in runs) - begun, 1),
        "gaps": len(found), "median_s": round(statistics.median(found), 2), "longest_s": round(found[-1], 2),
        "before_all_were_checked": sorted(round(gap, 2) for gap, checked in gaps if not checked),
        "load": os.getloadavg()[0],
    }))  # fmt: skip


if __name__ == "__main__":
    main()

"""Planted hangs under the real supervisor: docs/evidence/stalls.md.

    python campaigns/stalls.py hangs [NAME ...]     # record each in tests/data/stalls/
    python campaigns/stalls.py toy [NAME ...]       # hangs of the whole veRL toy, under flock /tmp/toy.lock

Needs root for the file systems (`disk_full`, `disk_wait`).
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from launcher import inside
from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.process import run_members
from launcher.record.standstill import HangFacts, Standstill
from launcher.record.state import current
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests/data/stalls"
FAULTS = Path(__file__).with_name("stalls_faults.py")
AT_ONCE = 4  # hangs
LIMIT = 300.0  # seconds for a hang to be named

HANGS = {  # planted fault: the right reason
    "placement": "ray-placement",
    "cpus": "ray-cpus",
    "dead_actor": "ray-actor-dead",
    "store": "object-store",
    "queue": "queue-full",
    "missing": "collective-missing",
    "spinning": "collective-missing",
    "mismatch": "collective-mismatch",
    "killed_rank": "process-stopped",
    "lock": "lock",
    "flock": "lock",
    "twice": "lock",
    "disk_full": "disk-full",
    "disk_wait": "disk-wait",
    "download": "download",
    "data_loader": "data-loader",
    "fifo": "data-loader",
    "reward": "reward",
    "async_reward": "reward",
}
TOY_FILE = Path(__file__).with_name("stalls_toy.py")
_REWARD = f"reward.path={TOY_FILE}"
TOY = {  # hang of the toy: the right reason, and its settings
    "toy_reward": ("reward", [_REWARD, "reward.function=score"]),
    "toy_async_reward": ("reward", [_REWARD, "reward.function=score_async"]),
    "toy_engine": ("engine", ["env.STALLS_TOY=engine", "env.VERL_USE_EXTERNAL_MODULES=stalls_toy"]),
    "toy_data": (
        "data-loader",
        [f"data.custom_cls_path={TOY_FILE}", "data.custom_cls_name=Rows", "env.STALLS_TOY=data"],
    ),
    "toy_fifo": (
        "data-loader",
        [
            *(f"data.custom_cls_path={TOY_FILE}", "data.custom_cls_name=FifoRows", "env.STALLS_TOY=data"),
            "data.dataloader_num_workers=1",
        ],
    ),
    "toy_cpus": ("ray-cpus", ["cluster.cpus=3"]),
    "toy_stopped": ("process-stopped", []),
}


def started(name: str, folder: Path) -> RunDir:
    """A run whose driver is a function of stalls_faults.py."""
    run, now = create(name.replace("_", "-")), time.time()
    RunInfo(run.id, name, now).write(run.run_yaml)
    attempt = run.add_attempt()
    env = {"VERL_FILE_LOGGER_PATH": str(attempt.metrics.absolute()), "PYTHONPATH": str(inside.FOLDER)}
    env |= {"PYTHONUNBUFFERED": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    launch = Launch(argv=[sys.executable, str(FAULTS), name, str(folder)], env=env, unset=[], keys={})
    launch.keys.update({"ray_kwargs.ray_init.address": "local"})
    write_launch(run, attempt, launch, created=now, run_created=now)
    spawn_supervisor(run)
    return run


@contextlib.contextmanager
def places(name: str) -> Iterator[Path]:
    """A folder for the driver, with the file system that its fault needs."""
    with tempfile.TemporaryDirectory(prefix="stalls-") as made:
        folder = Path(made)
        small, frozen = folder / "small", folder / "frozen"
        if name == "disk_full":
            small.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(small)], check=True)
        if name == "store":
            (folder / "spill").mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "tmpfs", str(folder / "spill")], check=True)
        if name == "disk_wait":
            frozen.mkdir()
            image = folder / "image"
            image.write_bytes(b"")
            os.truncate(image, 32 << 20)
            subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
            subprocess.run(["mount", "-o", "loop", str(image), str(frozen)], check=True)
        try:
            yield folder
        finally:
            if name == "disk_wait":
                subprocess.run(["fsfreeze", "-u", str(frozen)], check=False)
                time.sleep(1)
            for place in (small, folder / "spill", frozen):
                if place.is_mount():
                    subprocess.run(["umount", "-l", str(place)], check=False)


def hang(name: str) -> dict[str, object]:
    """Plants a fault and waits for its reason; records what was seen."""
    with places(name) as folder:
        run = started(name, folder)
        begun, found = time.monotonic(), None
        try:
            while time.monotonic() - begun < LIMIT and not _over(name, found) and current(run).live:
                if name == "disk_wait" and (folder / "ready").exists():
                    (folder / "ready").unlink()
                    subprocess.run(["fsfreeze", "-f", str(folder / "frozen")], check=True)
                time.sleep(0.5)
                found = current(run).standstill
        finally:
            if name == "disk_wait":
                subprocess.run(["fsfreeze", "-u", str(folder / "frozen")], check=False)
            stop(run, by="stalls.py", wait=True)
    return recorded(run, name, HANGS[name], found)


def _over(name: str, found: Standstill | None) -> bool:
    """Whether the reason was given; of `twice` the second one."""
    return found is not None and (name != "twice" or found.reason == HANGS[name])


def toy(name: str) -> dict[str, object]:
    """As `hang`, in the whole veRL toy."""
    right, settings = TOY[name]
    words = ["trainer.steps=200", "trainer.validate_first=false", "trainer.validate_every=-1", "trainer.save_every=-1"]
    words += [*settings, f"env.PYTHONPATH={TOY_FILE.parent}"]
    argv = [sys.executable, str(ROOT / "ppo_tui.py"), "run", "toy-cpu", *words, "--detach", "--force", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    run, found, begun = RunDir(Path(json.loads(done.stdout)["dir"])), None, time.monotonic()
    while time.monotonic() - begun < 2 * LIMIT and found is None and (state := current(run)).live:
        if name == "toy_stopped" and (state.step or 0) >= 4 and state.driver is not None:
            members = {each.pid: " ".join(each.cmdline()) for each in run_members(state.driver, run.id)}
            pid = next(pid for pid, words in members.items() if words.startswith("ray::WorkerDict"))
            os.kill(pid, signal.SIGSTOP)
            name += " "
        time.sleep(0.5)
        found = current(run).standstill
    stop(run, by="stalls.py", wait=True)
    return recorded(run, name.strip(), right, found)


def recorded(run: RunDir, name: str, right: str, found: Standstill | None) -> dict[str, object]:
    attempt = run.attempt(1)
    facts = HangFacts.read(attempt.stall_facts)
    row: dict[str, object] = {"name": name, "right": right, "reason": found.reason if found else None}
    if found is not None:
        row |= {"title": found.title, "after": round(found.noticed - found.since, 1), "evidence": list(found.evidence)}
    said = {key: row[key] for key in ("reason", "title", "after", "evidence") if key in row}
    if facts is not None:
        DATA.mkdir(exist_ok=True)
        (DATA / f"{name}.json").write_text(
            json.dumps({"right": right, "found": said, "facts": facts.to_json()}, indent=1) + "\n"
        )
    print(json.dumps(row), flush=True)
    if found is None:
        print(attempt.console.read_text(errors="replace")[-1500:], file=sys.stderr)
    return row


def main() -> None:
    what, *names = sys.argv[1:]
    os.environ.setdefault("PPO_TUI_HOME", tempfile.mkdtemp(prefix="stalls-home-"))
    if what == "hangs":
        with ThreadPoolExecutor(AT_ONCE) as pool:
            rows = list(pool.map(hang, names or HANGS))
        print(f"{sum(row['reason'] == row['right'] for row in rows)} of {len(rows)} right")
    elif what == "toy":
        rows = [toy(name) for name in names or TOY]
        print(f"{sum(row['reason'] == row['right'] for row in rows)} of {len(rows)} right")


if __name__ == "__main__":
    main()

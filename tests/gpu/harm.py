"""What is done to runs on purpose, and what the product makes of it."""

import fcntl
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from conduct import CAPTURES, KIT, Hook, left
from host import ENDED, PPO_TUI, Lane, look, members, memory_free, ppo_tui, processes, status, told, wait
from measure import figures


def _until_it_failed(lane: Lane, run: str, found: dict[str, Any], patience: float = 150) -> None:
    began = time.monotonic()
    state = wait(lane, run, None, min(patience, left()))
    found["failed_after"] = round(time.monotonic() - began, 1)
    found |= {"state": state["state"], "memory_after": memory_free(lane, run), "processes_after": processes(run)}
    told_cause = told(lane, "diagnose", run)
    found |= {name: told_cause.get(name) for name in ("cause", "title", "evidence")}


NOTICED = 270.0  # seconds in which a hang is waited for
STOPPED = {"stopped": "WorkerDict", "engine-stopped": "VLLM::"}  # in the command line of what gets SIGSTOP
FREEZE, THAW = 0xC0045877, 0xC0045878  # FIFREEZE and FITHAW of linux/fs.h
_Undo = Callable[[], None]


def hanging(*kinds: str) -> Hook:
    """`reward`, `rank`, `engine` (asleep.py), a kind of STOPPED or `frozen`, one after another. The last one stays, but
    for a frozen disk: no signal ends what waits for it.
    """

    def act(lane: Lane, run: str, result: dict[str, Any]) -> None:
        found = result["hung"] = []
        for kind in kinds:
            planted, undo = _planted(kind, run, Path(result["dir"]))
            found.append(_noticed(kind, lane, run, planted, result))
            if kind is not kinds[-1] or kind == "frozen":
                undo()
                _until_it_moves(lane, run, found[-1])

    return act


def _planted(kind: str, run: str, folder: Path) -> tuple[float, _Undo]:
    """When the hang was planted, and what ends it."""
    if kind in STOPPED:
        pid = max(pid for pid, command in members(run).items() if STOPPED[kind] in command)
        os.kill(pid, signal.SIGSTOP)
        return time.time(), lambda: os.kill(pid, signal.SIGCONT)
    if kind == "frozen":
        disk = os.open(folder / "checkpoints", os.O_RDONLY)
        fcntl.ioctl(disk, FREEZE, 0)
        return time.time(), lambda: os.close(disk) if not fcntl.ioctl(disk, THAW, 0) else None
    flag = folder / f"attempts/1/asleep-{kind}"
    flag.touch()
    return time.time(), flag.unlink


def _noticed(kind: str, lane: Lane, run: str, planted: float, result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": kind, "planted": planted, "step": status(lane, run).get("step")}
    began = time.monotonic()
    while time.monotonic() - began < min(NOTICED, left()):
        state = status(lane, run)
        if state.get("standstill") or state["state"] in ENDED:
            break
        time.sleep(1)
    found |= {"seconds": round(time.monotonic() - began, 1), "state": state["state"]}
    if stands := state.get("standstill"):
        found["after_progress"] = round(stands["noticed"] - stands["since"], 1)
    found |= {name: state.get(name) for name in ("phase", "stall", "standstill", "phase_usual")}
    for name in ("stall.txt", "stall-facts.json"):
        with suppress(OSError):
            (CAPTURES / f"{result['name']}-{kind}-{name}").write_bytes(
                (Path(result["dir"]) / "attempts/1" / name).read_bytes()
            )
    with suppress(Exception):
        look(lane, run, f"{result['name']}-{kind}", CAPTURES)
    return found


def _until_it_moves(lane: Lane, run: str, found: dict[str, Any]) -> None:
    began, step = time.monotonic(), found["step"] or 0
    while time.monotonic() - began < min(120.0, left()):
        state = status(lane, run)
        if (state.get("step") or 0) > step + 1 or state["state"] in ENDED:
            break
        time.sleep(1)
    found["moved"] = {name: state.get(name) for name in ("state", "step", "standstill")}
    found["moved"]["seconds"] = round(time.monotonic() - began, 1)


def disk_full(size: str) -> Hook:
    """The folder of the checkpoints is a file system of this size from now on."""

    def act(lane: Lane, run: str, result: dict[str, Any]) -> None:
        folder = Path(result["dir"]) / "checkpoints"
        folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
        result["killed"] = {"what": f"disk of {size}", "step": status(lane, run).get("step")}
        _until_it_failed(lane, run, result["killed"], 120)

    return act


def disk_frozen(step: int) -> Hook:
    """The folder of the checkpoints is a disk of its own from now on, which freezes after a step."""

    def act(lane: Lane, run: str, result: dict[str, Any]) -> None:
        folder, disk = Path(result["dir"]) / "checkpoints", KIT / "disk"
        folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-o", "loop", str(disk), str(folder)], check=True)
        wait(lane, run, step, min(300.0, left()))
        hanging("frozen")(lane, run, result)

    return act


def starting(lane: Lane, run: str, result: dict[str, Any]) -> None:
    """What the page of the start and `status` show while the engine starts."""
    wait(lane, run, 1, min(300.0, left()), lambda state: state.get("phase") == "engine")
    time.sleep(10)
    result["starting"] = told(lane, "status", run), ppo_tui(lane, "status", run).stdout
    with suppress(Exception):
        look(lane, run, f"{result['name']}-starting", CAPTURES, awaited="usual")


def unmounted(lane: Lane, run: str, result: dict[str, Any]) -> None:
    subprocess.run(["umount", "-l", str(Path(result["dir"]) / "checkpoints")], check=False)


def tried(*, most: int = 1, settings: tuple[str, ...] = (), further: int = 0) -> Hook:
    """`try` of the run's first CRITICAL: a control run and the `most` fixes advised first, all at once on its GPU.

    The trial that is fixed continues for `further` steps.
    """

    def act(lane: Lane, run: str, result: dict[str, Any]) -> None:
        if not any(flag["step"] for flag in result["figures"]["flags"]):
            return
        began, said = time.monotonic(), ""
        told_of: list[Any] = []
        for start in ((), ("--checkpoint", "0")):  # a flag may be up before there is a checkpoint
            if not told_of and (not start or "no checkpoint" in said):
                told_of, more = _until(
                    lane, ["try", run, "--yes", "--force", "--limit", str(most), *settings, *start, "--json"], left()
                )
                said += more
        seconds = round(time.monotonic() - began)
        result["try"] = {"seconds": seconds, "said": said[-3000:], "told": told_of or told(lane, "try", "--list", run)}
        with suppress(Exception):
            look(lane, run, result["name"], CAPTURES, "at")
        arms = [
            arm for each in told_of for arm in each.get("trials") or () if arm["verdict"] in ("fixed", "partly fixed")
        ]
        if arms and further:
            result["continued"] = _continued(lane, arms[0], further, result["name"])

    return act


def _continued(lane: Lane, arm: dict[str, Any], further: int, name: str) -> dict[str, Any]:
    """What came of a trial that was resumed for so many steps."""
    run, steps = arm["run"], arm["planned"] + further
    resumed = ppo_tui(lane, "resume", run, f"trainer.steps={steps}", "--force", "--detach", "--json", patience=300)
    if resumed.returncode:
        return {"run": run, "refused": resumed.stderr[-3000:]}
    state = wait(lane, run, None, left() - 45)
    with suppress(Exception):
        look(lane, run, f"{name}-continued", CAPTURES)
    if state["state"] not in ENDED:
        ppo_tui(lane, "stop", run, "--wait")
    folder = Path(json.loads(resumed.stdout)["dir"])
    return {"run": run, "state": status(lane, run), "figures": figures(folder, 2), "time": told(lane, "time", run)}


def _until(lane: Lane, words: list[str], patience: float) -> tuple[list[Any], str]:
    """What a command prints, and what it says meanwhile; interrupted when the time is up.

    What it puts into the queue, which is its own (`Experiment.apart`), starts now: the queue keeps a GPU for one run.
    """
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen([PPO_TUI, *words], env=lane.env(), text=True, stdout=out, stderr=said) as command,
    ):
        deadline = time.monotonic() + max(5.0, patience)
        while command.poll() is None and time.monotonic() < deadline:
            time.sleep(2)
            _start_queued(lane)
        if command.poll() is None:
            command.send_signal(signal.SIGINT)  # stops the trials that go on
            command.wait(90)
        out.seek(0)
        said.seek(0)
        return [json.loads(line) for line in out if line.startswith("{")], said.read()


def _start_queued(lane: Lane) -> None:
    listed = told(lane, "queue")
    for entry in listed if isinstance(listed, list) else [listed]:
        if entry.get("state") in ("queued", "checking", "checked"):
            ppo_tui(lane, "queue", "start", entry["run"])

"""One experiment: a run through the product from its check to its end, and what came of it."""

import json
import os
import subprocess
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host import ENDED, Lane, look, memory_free, ppo_tui, processes, stacks, status, told, wait
from measure import figures, lines
from watching import Watching, beside_fixed_work, spans_beside_fixed_work

KIT = Path(os.environ.get("KIT", "kit"))
RESULTS, CAPTURES = KIT / "results", KIT / "results/captures"
WATCHED_SECONDS = 600
KEYS = ("", "h", "g")  # the dashboard, the checklist, the GPUs
BEGAN = time.time()
UNTIL = float(os.environ.get("UNTIL", "inf"))  # unix seconds at which everything has to be over

Hook = Callable[[Lane, str, dict[str, Any]], None]


@dataclass(frozen=True)
class Experiment:
    """One run: a preset with settings, how far it is followed, and what is done on the way."""

    name: str
    preset: str
    settings: tuple[str, ...] = ()
    step: int | None = None  # stopped when this one is done; None: it is expected to end by itself
    patience: float = 360.0  # seconds; more for the sake of a slow start only
    at: int = 2  # the step at which `first` is done
    first: Hook | None = None
    after: Hook | None = None  # when it has ended
    without_plugin: bool = False  # as a user without ppo-tui would start it
    gpus: tuple[int, ...] = ()  # its own, where experiments share GPUs
    by: float = float("inf")  # seconds from the start of the suite at which it is over, however far it came
    until_critical: bool = False  # it is over three steps after its first CRITICAL
    beside: Callable[[Lane], AbstractContextManager[object]] = lambda _: nullcontext()  # from its start to its end
    refused: bool = False  # by its preflight, as it should be
    apart: bool = False  # with a home, and a queue, of its own


def mark(text: str) -> None:
    print(f"== {time.strftime('%T')} {text}", flush=True)


def left(by: float = float("inf")) -> float:
    """Seconds that are left until an experiment, or everything, has to be over."""
    return min(BEGAN + by, UNTIL) - time.time()


def conduct(experiment: Experiment, lane: Lane, waiting: str | None = None) -> bool:
    """Runs one experiment and writes what came of it; nothing that happens here ends the others.

    `waiting` is the run that the queue is to start, with GPUs of its choice. Returns whether it was a run as it was
    meant: one that was to take steps took one.
    """
    mark(f"{experiment.name}: {'waits' if waiting else 'starts'} on {lane.gpus or 'any'}")
    result: dict[str, Any] = {
        "name": experiment.name,
        "preset": experiment.preset,
        "settings": list(experiment.settings),
        "gpus": list(lane.gpus),
        "begun": round(time.time() - BEGAN),
    }
    try:
        if experiment.without_plugin:
            _alone(experiment, lane, result)
        else:
            _through_the_product(experiment, lane, result, waiting)
        _keep(result)
        if experiment.after and "state" in result:
            experiment.after(lane, result["run"], result)
    except Exception:
        result["broken"] = traceback.format_exc()
        if "run" in result:
            ppo_tui(lane, "stop", result["run"], "--wait")
    _keep(result)
    mark(f"{experiment.name}: {_outcome(result)}")
    return experiment.step is None or bool(result.get("figures", {}).get("steps"))


def _keep(result: dict[str, Any]) -> None:
    (RESULTS / f"{result['name']}.json").write_text(json.dumps(result, indent=1))


def _outcome(result: dict[str, Any]) -> str:
    if "skipped" in result or "not_reached" in result:
        return f"the queue skipped it: {result['skipped']}" if "skipped" in result else "not reached"
    if "broken" in result:
        return "broken: " + result["broken"].splitlines()[-1]
    cause = result.get("diagnosis", {}).get("cause")
    step = result.get("figures", {}).get("last_step")
    return f"{result.get('state', {}).get('state', 'ended')} at step {step}, cause {cause}"


def _through_the_product(
    experiment: Experiment, lane: Lane, result: dict[str, Any], waiting: str | None = None
) -> None:
    words = (experiment.preset, *experiment.settings)
    if waiting is None:
        run, folder = _started(experiment, lane, result)
    elif (found := _its_turn(experiment, waiting, result)) is None:
        return
    else:
        (run, folder), lane = found
    result |= {"run": run, "dir": str(folder), "gpus": list(lane.gpus)}
    deadline = time.monotonic() + min(experiment.patience, left(experiment.by))
    with experiment.beside(lane):
        result["check"] = told(lane, "check", *words)  # while veRL is imported
        if experiment.first:
            state = wait(lane, run, experiment.at, deadline - time.monotonic())
            if state["state"] not in ENDED:
                experiment.first(lane, run, result)
        enough = _critical(folder) if experiment.until_critical else lambda _: False
        state = wait(lane, run, experiment.step, max(5.0, deadline - time.monotonic()), enough)
        result["memory_during"] = lane.memory(run)
        result["processes_during"] = sorted(processes(run))
        if state["state"] not in ENDED:
            if state.get("step") is None:
                stacks(run, RESULTS / "stacks" / experiment.name)
            _stop(lane, run, result)
        else:
            result["memory_after"] = memory_free(lane, run)
            result["processes_after"] = sorted(processes(run))
    result["state"] = status(lane, run)
    result["diagnosis"] = told(lane, "diagnose", run)
    result["figures"] = figures(folder)
    result["ended"] = round(time.time() - BEGAN)


def _started(experiment: Experiment, lane: Lane, result: dict[str, Any]) -> tuple[str, Path]:
    words = (experiment.preset, *experiment.settings)
    result["memory_before"] = lane.memory("")
    started = ppo_tui(lane, "run", *words, "--detach", "--json", patience=300)
    if started.returncode:
        result["refused"] = started.stderr[-3000:]
        mark(f"{experiment.name}: refused, so forced: {started.stderr[-400:]}")
        started = ppo_tui(lane, "run", *words, "--force", "--detach", "--json", patience=300)
    found = json.loads(started.stdout)
    return found["run"], Path(found["dir"])


def _its_turn(experiment: Experiment, run: str, result: dict[str, Any]) -> tuple[tuple[str, Path], Lane] | None:
    """The run, its folder and its GPUs once the queue has started it; None if it skipped it, or had no time for it."""
    looked, forced = time.monotonic(), False
    while left(experiment.by) > 0:
        folder = Path(os.environ["PPO_TUI_HOME"]) / "runs" / run
        launch = folder / "attempts/1/launch.json"
        if launch.exists():
            result["waited"] = round(time.time() - BEGAN - result["begun"])
            started = json.loads(launch.read_text())
            result["launched"], named = started["created"], started["env"].get("CUDA_VISIBLE_DEVICES") or ""
            return (run, folder), Lane(tuple(int(gpu) for gpu in named.split(",") if gpu.isdecimal()))
        if time.monotonic() - looked > 10:
            listed = told(Lane(), "queue")
            entries = listed if isinstance(listed, list) else [listed]
            mine = next((entry for entry in entries if entry.get("run") == run), {})
            if mine.get("state") in ("skipped", "refused"):
                result["skipped"] = mine["waits"]
                ppo_tui(Lane(), "queue", "remove", run)
                if experiment.refused or forced:
                    return None
                run, forced = queued(experiment, "--force"), True
            looked = time.monotonic()
        time.sleep(0.5)
    ppo_tui(Lane(), "queue", "remove", run)
    result["not_reached"] = True
    return None


def queued(experiment: Experiment, *options: str) -> str:
    """The id of the run that the queue will start."""
    done = ppo_tui(Lane(), "queue", "add", experiment.preset, *experiment.settings, *options, "--json")
    run: str = json.loads(done.stdout)["run"]
    return run


def _critical(folder: Path) -> Callable[[dict[str, Any]], bool]:
    """Whether a flag has been CRITICAL for three steps."""

    def stood(state: dict[str, Any]) -> bool:
        rose = [
            event["step"]
            for event in lines(folder / "events.jsonl")
            if event.get("kind") == "health" and event.get("to") == "CRITICAL"
        ]
        return bool(rose) and (state.get("step") or 0) >= rose[0] + 3

    return stood


def _stop(lane: Lane, run: str, result: dict[str, Any]) -> None:
    began = time.monotonic()
    ppo_tui(lane, "stop", run, "--wait")
    result["stop_seconds"] = round(time.monotonic() - began, 1)
    result["memory_after"] = memory_free(lane, run)
    result["memory_free_seconds"] = round(time.monotonic() - began, 1)
    result["processes_after"] = sorted(processes(run))


def _alone(experiment: Experiment, lane: Lane, result: dict[str, Any]) -> None:
    """The exact command of the run without our plugin, and then what `diagnose` says of its console."""
    command = told(lane, "command", experiment.preset, *experiment.settings)
    env = {**lane.env(), **command["env"], "VERL_USE_EXTERNAL_MODULES": ""}
    log = RESULTS / f"{experiment.name}.log"
    with log.open("wb") as out:
        driver = subprocess.Popen(command["argv"], env=env, stdout=out, stderr=out, start_new_session=True)
        try:
            result["exit"] = driver.wait(experiment.patience)
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, 15)
            result["exit"] = driver.wait(30)
    result["diagnosis"] = told(lane, "diagnose", str(log))


def looked_at(lane: Lane, run: str, result: dict[str, Any]) -> None:
    """Captures of the screens, live."""
    for key in KEYS:
        look(lane, run, result["name"], CAPTURES, key)


def watched(lane: Lane, run: str, result: dict[str, Any]) -> None:
    """What watching costs this run."""
    metrics = Path(result["dir"]) / "attempts/1/metrics.jsonl"
    steps = int(os.environ.get("WATCHED_STEPS", "1000"))
    result["watching"] = Watching(lane, run, metrics, block=3).measure(steps, WATCHED_SECONDS)


def fixed_work(kind: str, lane: Lane) -> None:
    """What watching costs steps that are the same work each."""
    name = f"fixed-{kind}"
    mark(f"{name}: starts")
    steps = int(os.environ.get("WATCHED_STEPS", "1000"))
    try:
        if kind == "spans":
            result = spans_beside_fixed_work(lane, RESULTS, float(os.environ.get("FIXED_SECONDS", "90")))
        else:
            result = beside_fixed_work(lane, kind, RESULTS, steps)
    except Exception:
        result = {"name": name, "broken": traceback.format_exc()}
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1))
    mark(f"{name}: {result.get('broken', 'done')}")


def resumed(lane: Lane, run: str, result: dict[str, Any]) -> None:
    """Goes on from the newest checkpoint in a second attempt, and looks at the joined curve."""
    before = result["figures"]["last_step"]
    done = ppo_tui(lane, "resume", run, "--detach", patience=120)
    result["resume"] = {"exit": done.returncode, "said": done.stderr[-500:], "stopped_at": before}
    if done.returncode:
        return
    state = wait(lane, run, before + 3, 300)
    look(lane, run, "resumed", CAPTURES)
    ppo_tui(lane, "stop", run, "--wait")
    folder = Path(result["dir"])
    result["resume"] |= {"state": state["state"], "step": state.get("step"), "figures": figures(folder, 2)}
    ppo_tui(lane, "export", run, "--to", str(RESULTS / "resumed.svg"))

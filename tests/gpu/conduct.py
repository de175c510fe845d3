"""One experiment: a run through the product from its check to its end, and what came of it."""

import json
import os
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host import ENDED, Lane, memory_free, ppo_tui, processes, stacks, status, told, wait
from measure import figures, lines

KIT = Path(os.environ.get("KIT", "kit"))
RESULTS, CAPTURES = KIT / "results", KIT / "results/captures"
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
    gpus: tuple[int, ...] = (0,)
    until_critical: bool = False  # it is over three steps after its first CRITICAL
    apart: bool = False  # with a home, and a queue, of its own
    delay: float = 0.0  # seconds before it starts

    @property
    def words(self) -> tuple[str, ...]:
        """What names it to a command."""
        return (self.preset, *once(self.settings))


def once(settings: Iterable[str]) -> Iterable[str]:
    """Of a field that is set twice the later value, as a command refuses both."""
    return {word.partition("=")[0]: word for word in settings}.values()


def mark(text: str) -> None:
    print(f"== {time.strftime('%T')} {text}", flush=True)


def left() -> float:
    """Seconds that are left until everything has to be over."""
    return UNTIL - time.time()


def conduct(experiment: Experiment, lane: Lane) -> None:
    """Runs one experiment and writes what came of it; nothing that happens here ends the others."""
    time.sleep(experiment.delay)
    mark(f"{experiment.name}: starts on {lane.gpus or 'any'}")
    result: dict[str, Any] = {
        "name": experiment.name,
        "preset": experiment.preset,
        "settings": list(experiment.settings),
        "gpus": list(lane.gpus),
        "begun": round(time.time() - BEGAN),
    }
    try:
        _through_the_product(experiment, lane, result)
        _keep(result)
        if experiment.after:
            experiment.after(lane, result["run"], result)
    except Exception:
        result["broken"] = traceback.format_exc()
        if "run" in result:
            ppo_tui(lane, "stop", result["run"], "--wait")
    _keep(result)
    mark(f"{experiment.name}: {_outcome(result)}")


def _keep(result: dict[str, Any]) -> None:
    (RESULTS / f"{result['name']}.json").write_text(json.dumps(result, indent=1))


def _outcome(result: dict[str, Any]) -> str:
    if "broken" in result:
        return "broken: " + result["broken"].splitlines()[-1]
    cause = result.get("diagnosis", {}).get("cause")
    step = result.get("figures", {}).get("last_step")
    return f"{result.get('state', {}).get('state', 'ended')} at step {step}, cause {cause}"


def _through_the_product(experiment: Experiment, lane: Lane, result: dict[str, Any]) -> None:
    run, folder = _started(experiment, lane, result)
    result |= {"run": run, "dir": str(folder)}
    deadline = time.monotonic() + min(experiment.patience, left())
    result["check"] = told(lane, "check", *experiment.words)  # while veRL is imported
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
    result["time"], result["start"] = told(lane, "time", run), ppo_tui(lane, "time", run).stdout
    result["ended"] = round(time.time() - BEGAN)


def _started(experiment: Experiment, lane: Lane, result: dict[str, Any]) -> tuple[str, Path]:
    words = experiment.words
    result["memory_before"] = lane.memory("")
    started = ppo_tui(lane, "run", *words, "--detach", "--json", patience=300)
    if started.returncode:
        result["refused"] = started.stderr[-3000:]
        mark(f"{experiment.name}: refused, so forced: {started.stderr[-400:]}")
        started = ppo_tui(lane, "run", *words, "--force", "--detach", "--json", patience=300)
    found = json.loads(started.stdout)
    return found["run"], Path(found["dir"])


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

"""`ppo-tui tune` in 24 GB and on a whole GPU against a grid by hand, and hangs of two GPUs.

Two cards of 24 GB (card/sitecustomize.py) share a GPU: one is tuned and then trains 30 steps, on the other one the
points of the grid run one after another. Their steps take turns (hang/turns.py), so only their starts overlap. Then the
best point and the tuned preset run once more, in turns, when nothing else starts. On a whole GPU all follow each other.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from campaign import CARD, PAIRS
from conduct import KIT, RESULTS, Experiment, conduct, left, mark
from harm import hanging
from host import PPO_TUI, Lane, ppo_tui, told

from experiments import REWARDED

HERE = Path(__file__).parent
PRESET = str(HERE / "card-0.5b.yaml")
START, LAST, GRIDDED, AGAIN = 170.0, 420.0, 600.0, 260.0  # seconds: a start; 30 steps with theirs; a grid; ten steps
BOTH = (*PAIRS, "trainer.gpus=2", "cluster.cpus=12", "env.VERL_USE_EXTERNAL_MODULES=asleep")
HANGS = Experiment(
    "hang-ranks",
    REWARDED,
    (*BOTH, f"reward.path={HERE}/hang/asleep.py", "reward.function=score"),
    step=1,
    patience=1000,
    at=4,
    first=hanging("rank", "reward"),
    gpus=(1, 0),  # the rank that waits in NCCL keeps its GPU busy: not the one that is measured
)
COURSE = (  # of the probes of `tune`
    "rollout.ignore_eos=true",
    "trainer.save_every=-1",
    "trainer.validate_every=-1",
    "trainer.validate_first=false",
)
TOKENS = ("actor.ppo_max_token_len_per_gpu", "critic.ppo_max_token_len_per_gpu")
ADAM = ("actor.optimizer_offload=true", "critic.optimizer_offload=true")


WHOLE = "whole"  # the home of the second GPU, which is no card of 24 GB


def _point(share: float, tokens: int, *more: str) -> Sequence[str]:
    return (f"rollout.gpu_memory_utilization={share}", *(f"{name}={tokens}" for name in TOKENS), *more)


GRID: Sequence[Sequence[str]] = (  # what somebody would try by hand, the likely best ones first
    _point(0.4, 16384),
    _point(0.3, 16384),
    _point(0.4, 8192),
    _point(0.5, 16384, *ADAM),
    _point(0.3, 8192),
    _point(0.6, 20480, *ADAM),
)


def card(gpus: tuple[int, ...], name: str) -> Lane:
    """A card of 24 GB with a home of its own, as far as there is a GPU; or the whole one."""
    more = {"PPO_TUI_HOME": f"{KIT}/home-{name}"}
    if name != WHOLE:
        more["TURNS"] = f"{KIT}/turn"
    if gpus:
        paths = [f"{KIT}/flash", os.environ["PYTHONPATH"]]
        if name != WHOLE:
            paths.insert(0, f"{HERE}/card")
            more |= {"CARD_MIB": str(CARD), "CARD_LANE": name}
        more["PYTHONPATH"] = os.pathsep.join(paths)
    return Lane(gpus, tuple(more.items()))


def tuned(lane: Lane, name: str, preset: str = PRESET, steps: int = 30, last: float = LAST, probes: int = 6) -> None:
    """Tunes the preset while there is time for that many steps afterwards, and takes them."""
    began = time.time()
    words = ["tune", preset, "--name", "card-tuned", "--force", "--json", "--probes"]
    with (RESULTS / f"tune-{name}.log").open("w") as log:
        asked = [PPO_TUI, *words, str(probes)]
        with subprocess.Popen(asked, env=lane.env(), stdout=subprocess.PIPE, stderr=log, text=True) as process:
            while process.poll() is None and left() > last:
                time.sleep(1)
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=90)[0]
    if process.returncode:  # what was measured in time
        listed = told(lane, "runs")
        states = [each.get("state") for each in (listed if isinstance(listed, list) else [listed])]
        probes = sum(state in ("finished", "failed") for state in states)
        mark(f"tune: {probes} probes in time, the last one {states[0]}")
        done = ppo_tui(lane, *words, str(max(1, probes)))
        said = done.stdout or done.stderr
    found: dict[str, Any] = json.loads(said) if said.startswith("{") else {"said": said[-3000:]}
    (RESULTS / f"tune-{name}.json").write_text(
        json.dumps({"seconds": round(time.time() - began), "tune": found}, indent=1)
    )
    mark(f"tune: {found.get('best', 'no preset')}")
    if "preset" in found:
        settings = (*COURSE, f"trainer.steps={steps}")
        patience = max(60.0, left())
        conduct(Experiment(f"tuned-{name}", found["preset"], settings, patience=patience), lane)


def grid(
    lane: Lane, name: str, preset: str = PRESET, points: Sequence[Sequence[str]] = GRID, kept: float = 0.0
) -> None:
    """Three steps of each point, while more than the kept seconds are left."""
    for number, point in enumerate(points, 1):
        if left() > START + kept:
            settings = (*COURSE, "trainer.steps=3", *point)
            patience = max(60.0, min(500.0, left()))
            conduct(Experiment(f"grid-{name}-{number}", preset, settings, patience=patience), lane)


def again(preset: str = PRESET, steps: int = 10) -> None:
    """The tuned preset of the cards and the best point of their grid, in turns, with no other start beside them."""
    found = [json.loads(path.read_text()) for path in RESULTS.glob("grid-24-*.json")]
    best = max(found, key=lambda run: run.get("figures", {}).get("tokens_per_second") or 0, default=None)
    tune = json.loads((RESULTS / "tune-24.json").read_text())["tune"]
    if best is None or "preset" not in tune or left() < AGAIN:
        return
    more = (f"trainer.steps={steps}",)
    runs = {
        "grid": Experiment("grid-24-again", preset, (*best["settings"], *more), patience=max(60.0, left())),
        "tune": Experiment("tuned-24-again", tune["preset"], (*COURSE, *more), patience=max(60.0, left())),
    }
    with ThreadPoolExecutor(2) as pool:
        for each in [
            pool.submit(conduct, run, card((0,) if preset == PRESET else (), name)) for name, run in runs.items()
        ]:
            each.result()


def hung() -> None:
    """On two GPUs, beside other runs."""
    conduct(HANGS, Lane(HANGS.gpus))


def cards() -> None:
    """On the first GPU, which nothing else has."""
    _wait_for_the_model()
    with ThreadPoolExecutor(2) as pool:
        going = [
            pool.submit(tuned, card((0,), "tune"), "24", last=LAST + AGAIN),
            pool.submit(grid, card((0,), "grid"), "24", kept=AGAIN),
        ]
        for each in going:
            each.result()
    again()


def whole(gpu: int) -> None:
    """On a GPU that nothing else has."""
    _wait_for_the_model()
    lane = card((gpu,), WHOLE)
    tuned(lane, "80", last=LAST + GRIDDED)
    grid(lane, "80")


def _wait_for_the_model() -> None:
    while not (KIT / "one-question.parquet").exists() and left() > 0:  # which models.py makes last
        time.sleep(1)


def rehearse() -> None:
    """The same on the CPU with `toy-cpu`; both runs train in turns."""
    turns = ("env.VERL_USE_EXTERNAL_MODULES=turns",)
    with ThreadPoolExecutor(2) as pool:
        going = [
            pool.submit(tuned, card((), "tune"), "24", "toy-cpu", 4, 0.0, 2),
            pool.submit(grid, card((), "grid"), "24", "toy-cpu", [turns, turns]),
        ]
        for each in going:
            each.result()
    again("toy-cpu", 4)

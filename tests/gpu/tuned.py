"""`ppo-tui tune` in 24 GB and in 80 GB against a grid by hand, and hangs of two GPUs.

Cards of these sizes (card/sitecustomize.py) share one GPU of 141 GB, each with cores of its own: two are tuned and then
train 30 steps, on the third one the points of the grids run one after another. Their steps take turns (hang/turns.py),
so only starts and first steps overlap. On a GPU of 80 GB all follow each other, without the smaller card.
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
from experiments import REWARDED
from harm import hanging
from host import PPO_TUI, Lane, on_cores, ppo_tui, told

FULL = 81_079  # MiB that torch has of an H100
HERE = Path(__file__).parent
PRESET = str(HERE / "card-0.5b.yaml")
START, LAST, GRIDDED = 200.0, 560.0, 480.0  # seconds: of a start; of 30 steps with theirs; for a grid at least
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


def _point(share: float, tokens: int, *more: str) -> Sequence[str]:
    return (f"rollout.gpu_memory_utilization={share}", *(f"{name}={tokens}" for name in TOKENS), *more)


ALL_LOG_PROBS = tuple(f"{name}.log_prob_max_token_len_per_gpu=32768" for name in ("rollout", "ref"))
GRID_24: Sequence[Sequence[str]] = (  # what somebody would try by hand, the likely best ones first
    _point(0.4, 16384),
    _point(0.3, 16384),
    _point(0.4, 8192),
    _point(0.5, 16384, *ADAM),
    _point(0.3, 8192),
    _point(0.6, 20480, *ADAM),
)
GRID_80: Sequence[Sequence[str]] = (  # with small shares, as three cards have one GPU: 64 responses need 1 GB
    _point(0.3, 16384),
    _point(0.3, 16384, *ALL_LOG_PROBS),
    _point(0.3, 8192),
    _point(0.2, 24576, *ALL_LOG_PROBS),
    _point(0.3, 16384, *ADAM),
    _point(0.3, 4096),
)


def card(gpu: int | None, name: str, mib: int | None = None) -> Lane:
    """A card with so many MiB and a home of its own on this GPU, as far as there is one; or the whole GPU."""
    more = {"PPO_TUI_HOME": f"{KIT}/home-{name}", "TURNS": f"{KIT}/turn"}
    if gpu is None:
        return Lane((), tuple(more.items()))
    paths = [f"{KIT}/flash", os.environ["PYTHONPATH"]]
    if mib is not None:
        paths.insert(0, f"{HERE}/card")
        more |= {"CARD_MIB": str(mib), "CARD_LANE": name}
    more["PYTHONPATH"] = os.pathsep.join(paths)
    return Lane((gpu,), tuple(more.items()))


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


def grid(lane: Lane, name: str, preset: str = PRESET, points: Sequence[Sequence[str]] = GRID_80) -> None:
    """Three steps of each point, as those of a probe."""
    for number, point in enumerate(points, 1):
        if left() > START:
            settings = (*COURSE, "trainer.steps=3", *point)
            patience = max(60.0, min(500.0, left()))
            conduct(Experiment(f"grid-{name}-{number}", preset, settings, patience=patience), lane)


def hung() -> None:
    """On two GPUs, beside other runs."""
    conduct(HANGS, Lane(HANGS.gpus))


def cards() -> None:
    """On a first GPU of 141 GB, which nothing else has."""

    def by_hand() -> None:
        grid(card(0, "grid-80", FULL), "80")
        grid(card(0, "grid-24", CARD), "24", points=GRID_24)

    works = (
        lambda: tuned(card(0, "tune-24", CARD), "24", probes=4),
        lambda: tuned(card(0, "tune-80", FULL), "80", probes=4),
        by_hand,
    )
    _wait_for_the_model()
    cores = sorted(os.sched_getaffinity(0))
    share = len(cores) // len(works)
    with ThreadPoolExecutor(len(works)) as pool:
        for each in [pool.submit(on_cores, cores[at * share :][:share], work) for at, work in enumerate(works)]:
            each.result()


def whole(gpu: int) -> None:
    """On a GPU that nothing else has."""
    _wait_for_the_model()
    lane = card(gpu, "whole")
    tuned(lane, "80", last=LAST + GRIDDED, probes=4)
    grid(lane, "80")


def _wait_for_the_model() -> None:
    while not (KIT / "one-question.parquet").exists() and left() > 0:  # which models.py makes last
        time.sleep(1)


def rehearse() -> None:
    """The same on the CPU with `toy-cpu`; the points load hang/turns.py."""
    turns = ("env.VERL_USE_EXTERNAL_MODULES=turns",)
    with ThreadPoolExecutor(2) as pool:
        going = [
            pool.submit(tuned, card(None, "tune"), "24", "toy-cpu", 4, 0.0, 2),
            pool.submit(grid, card(None, "grid"), "24", "toy-cpu", [turns, turns]),
        ]
        for each in going:
            each.result()
